package engine

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"oda"
)

// tryEvery is how often a small write is tried while writing fails.
const tryEvery = 5 * time.Second

// Health knows whether an engine can write. After a write failed for want of
// space, or because the disk or the database refuses, it tries a small one every
// few seconds until one succeeds.
type Health struct {
	log  *slog.Logger
	try  func(context.Context) error
	ctx  context.Context
	stop context.CancelFunc
	done sync.WaitGroup

	mu     sync.Mutex
	reason string // why writing fails; "": it does not
}

// NewHealth makes one that is well. Try makes a small write. It must be closed.
func NewHealth(log *slog.Logger, try func(context.Context) error) *Health {
	h := &Health{log: log, try: try}
	h.ctx, h.stop = context.WithCancel(context.Background())
	return h
}

// Refused notes that a write failed, and why, as part of a sentence.
func (h *Health) Refused(reason string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.reason
	h.reason = reason
	if before == "" && h.ctx.Err() == nil {
		h.log.Error("writing fails", "reason", reason, "error", err)
		h.done.Go(h.recover)
	}
}

// Err says why writing fails; nil where it does not.
func (h *Health) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reason == "" {
		return nil
	}
	return oda.Errorf(oda.Unavailable, "The archive can be read but not written: %s. It tries again every %d seconds.",
		h.reason, int(tryEvery.Seconds()))
}

// Close ends the trying.
func (h *Health) Close() {
	h.mu.Lock()
	h.stop()
	h.mu.Unlock()
	h.done.Wait()
}

// recover tries to write until it works.
func (h *Health) recover() {
	ticker := time.NewTicker(tryEvery)
	defer ticker.Stop()
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-ticker.C:
		}
		ctx, cancel := context.WithTimeout(h.ctx, tryEvery)
		err := h.try(ctx)
		cancel()
		if err == nil {
			h.mu.Lock()
			h.reason = ""
			h.mu.Unlock()
			h.log.Info("writing works again")
			return
		}
	}
}
