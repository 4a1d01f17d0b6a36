package web

import (
	"context"
	"sync"
	"time"
)

const (
	// measureEvery is how often the archive is measured.
	measureEvery = 5 * time.Second
	// measureTimeout bounds one measurement, so that two never overlap.
	measureTimeout = 4 * time.Second
)

// Run finds out what takes longer than a page may, until ctx ends: how much room the archive
// takes, and what was done tonight.
func (s *Site) Run(ctx context.Context) {
	var reporting sync.WaitGroup
	reporting.Go(func() { s.reportTonight(ctx) })
	s.keepUsage(ctx)
	reporting.Wait()
}

// keepUsage measures how much room the archive takes at once and then every five seconds.
// While that fails, what is known stays; the first failure and the recovery are logged.
func (s *Site) keepUsage(ctx context.Context) {
	ticker := time.NewTicker(measureEvery)
	defer ticker.Stop()
	failing := false
	for {
		err := s.measure(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			s.log.Warn("the home page does not know how much room the archive takes", "error", err)
		case err == nil && failing:
			s.log.Info("the home page knows again how much room the archive takes")
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// measure measures the archive once, in bounded time.
func (s *Site) measure(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, measureTimeout)
	defer cancel()
	usage, err := s.cfg.Archive.Usage(ctx)
	if err != nil {
		return err
	}
	s.usage.Store(&usage)
	return nil
}
