package web

import (
	"context"
	"log/slog"
	"time"
)

const (
	// refreshEvery is how often entities are counted while nobody looks at the home page.
	refreshEvery = 5 * time.Second
	// refreshTimeout bounds one count, so that counts never overlap.
	refreshTimeout = 4 * time.Second
)

// Run keeps the counts of the home page, and how much room the archive takes, fresh
// until ctx ends. It counts at once and then every five seconds. While counting fails, the
// last known counts stay; the first failure and the recovery are logged.
func (s *Site) Run(ctx context.Context) {
	ticker := time.NewTicker(refreshEvery)
	defer ticker.Stop()
	failing := false
	for {
		err := s.refresh(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			s.log.Warn("The counts of the home page are out of date: counting failed.", slog.Any("error", err))
		case err == nil && failing:
			s.log.Info("The counts of the home page are up to date again.")
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// refresh counts once, in bounded time.
func (s *Site) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	counts, err := s.cfg.Counts(ctx)
	if err != nil {
		return err
	}
	s.counts.Store(&counts)
	if s.cfg.Archive == nil {
		return nil
	}
	usage, err := s.cfg.Archive.Usage(ctx)
	if err != nil {
		return err
	}
	s.usage.Store(&usage)
	return nil
}
