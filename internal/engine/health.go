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

	mu       sync.Mutex
	reason   string // why writing fails; "": it does not
	doubtful bool   // a small write is under way, to find out
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

// Suspect notes that nobody knows how a write ended. That may have been its own
// fault, so a small write finds out, at once.
func (h *Health) Suspect(reason string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reason != "" || h.doubtful || h.ctx.Err() != nil {
		return
	}
	h.doubtful = true
	h.done.Go(func() {
		failed := h.attempt() != nil
		h.mu.Lock()
		h.doubtful = false
		h.mu.Unlock()
		if failed {
			h.Refused(reason, err)
		}
	})
}

// attempt makes one small write.
func (h *Health) attempt() error {
	ctx, cancel := context.WithTimeout(h.ctx, tryEvery)
	defer cancel()
	return h.try(ctx)
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
		if h.attempt() == nil {
			h.mu.Lock()
			h.reason = ""
			h.mu.Unlock()
			h.log.Info("writing works again")
			return
		}
	}
}
