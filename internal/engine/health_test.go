package engine

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oda"
)

// health returns a Health whose small writes fail until works is set, and when they
// were tried.
func health(t *testing.T, works *atomic.Bool) (*Health, *[]time.Duration) {
	t.Helper()
	began := time.Now()
	var tried []time.Duration
	h := NewHealth(slog.New(slog.DiscardHandler), func(context.Context) error {
		tried = append(tried, time.Since(began))
		if !works.Load() {
			return errors.New("no")
		}
		return nil
	})
	t.Cleanup(h.Close)
	return h, &tried
}

// After a write was refused, the archive tries a small one every five seconds until one
// succeeds, and says why it cannot write as long.
func TestASmallWriteIsTriedUntilOneSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var works atomic.Bool
		h, tried := health(t, &works)
		if err := h.Err(); err != nil {
			t.Fatalf("no write has failed, but %v", err)
		}
		h.Refused("the disk is full", errors.New("no space"))
		h.Refused("the disk is full", errors.New("no space")) // does not try twice
		time.Sleep(12 * time.Second)
		if err := h.Err(); oda.CodeOf(err) != oda.Unavailable || !strings.Contains(err.Error(), "the disk is full") {
			t.Errorf("got %v", err)
		}
		works.Store(true)
		time.Sleep(5 * time.Second)
		if err := h.Err(); err != nil {
			t.Errorf("a small write has succeeded, but %v", err)
		}
		time.Sleep(time.Minute)
		h.Close()
		if want := []time.Duration{5 * time.Second, 10 * time.Second, 15 * time.Second}; len(*tried) != len(want) || (*tried)[0] != want[0] || (*tried)[2] != want[2] {
			t.Errorf("small writes were tried after %v, want %v", *tried, want)
		}
	})
}

// A write that fails while a small one succeeds is newer than what that shows.
func TestAWriteThatFailsBesideASmallOneCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h *Health
		full, small := errors.New("no space"), 0
		h = NewHealth(slog.New(slog.DiscardHandler), func(context.Context) error {
			if small++; small == 1 {
				h.Refused("the disk is full", full)
			}
			return nil
		})
		t.Cleanup(h.Close)
		h.Refused("the disk is full", full)
		time.Sleep(6 * time.Second)
		if h.Err() == nil {
			t.Error("the last write has failed, but all is well")
		}
		time.Sleep(5 * time.Second)
		if err := h.Err(); err != nil {
			t.Errorf("a small write has succeeded, but %v", err)
		}
	})
}

// A failure that may concern one write only counts if a small write fails as well.
func TestADoubtIsSettledByASmallWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var works atomic.Bool
		works.Store(true)
		h, tried := health(t, &works)
		h.Suspect("the database refuses writes", errors.New("strange"))
		synctest.Wait()
		if err := h.Err(); err != nil || len(*tried) != 1 {
			t.Errorf("after %d small writes: %v", len(*tried), err)
		}
		works.Store(false)
		h.Suspect("the database refuses writes", errors.New("strange"))
		synctest.Wait()
		if err := h.Err(); oda.CodeOf(err) != oda.Unavailable {
			t.Errorf("a small write has failed, but got %v", err)
		}
	})
}
