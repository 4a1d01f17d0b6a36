package engine

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"oda"
)

// tryEvery is the time between two small writes while writing fails.
const tryEvery = 5 * time.Second

// Health knows whether an engine can write. Once a write has failed because there
// is no space, or because the disk or the database refuses it, Health tries a
// small write every few seconds until one succeeds.
type Health struct {
	log  *slog.Logger
	try  func(context.Context) error
	ctx  context.Context
	stop context.CancelFunc
	done sync.WaitGroup

	mu       sync.Mutex
	reason   string // why writing fails; empty if it works
	refused  int    // writes so far
	doubtful bool   // a small write is finding out
}

// NewHealth returns a Health for an engine that can write. Try makes a small
// write. The caller must call Close.
func NewHealth(log *slog.Logger, try func(context.Context) error) *Health {
	h := &Health{log: log, try: try}
	h.ctx, h.stop = context.WithCancel(context.Background())
	return h
}

// Refused notes that a write failed. The reason is part of a sentence.
func (h *Health) Refused(reason string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.reason
	h.reason = reason
	h.refused++
	if before == "" && h.ctx.Err() == nil {
		h.log.Error("writing fails", "reason", reason, "error", err)
		h.done.Go(h.recover)
	}
}

// Suspect notes that the outcome of a write is unknown. That may be due to that
// write alone, so Suspect tries a small write at once to find out.
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

// Err returns an error that says why writing fails, nil if it works.
func (h *Health) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reason == "" {
		return nil
	}
	return oda.Errorf(oda.Unavailable, "The archive can be read but not written: %s. It tries again every %d seconds.",
		h.reason, int(tryEvery.Seconds()))
}

// Close stops the small writes.
func (h *Health) Close() {
	h.mu.Lock()
	h.stop()
	h.mu.Unlock()
	h.done.Wait()
}

// recover tries small writes until one succeeds.
func (h *Health) recover() {
	ticker := time.NewTicker(tryEvery)
	defer ticker.Stop()
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-ticker.C:
		}
		if h.works() {
			h.log.Info("writing works again")
			return
		}
	}
}

// works makes a small write, and notes that writing works if it succeeds and no other
// write fails meanwhile.
func (h *Health) works() bool {
	h.mu.Lock()
	before := h.refused
	h.mu.Unlock()
	if h.attempt() != nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refused != before {
		return false
	}
	h.reason = ""
	return true
}
