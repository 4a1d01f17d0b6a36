package web

import (
	"context"
	"net/url"
	"sync"
	"time"

	"oda/night"
)

// tonight is the report on the night that is going on. It is made for all pages that ask for
// it at a time, and one after the other: to read the calls of a busy night may take longer
// than a page may, and many pages ask again whenever something has changed.
type tonight struct {
	asked chan struct{} // holds something if somebody waits

	mu   sync.Mutex
	last *night.Report
	next chan struct{} // closed when the report is there that has not been begun yet
}

// Bounds of asking for it.
const (
	tonightTime  = 25 * time.Millisecond // that a page waits
	tonightShare = 4                     // parts of rest for each of work
	tonightPause = 2 * time.Second       // at most
)

func newTonight() *tonight {
	return &tonight{asked: make(chan struct{}, 1), next: make(chan struct{})}
}

// report returns the report, nil if there is none for the night at that time, and whether
// it was begun after it was asked for.
func (t *tonight) report(ctx context.Context, now time.Time) (last *night.Report, fresh bool) {
	t.mu.Lock()
	done := t.next
	t.mu.Unlock()
	select {
	case t.asked <- struct{}{}:
	default:
	}
	late := time.NewTimer(tonightTime)
	defer late.Stop()
	select {
	case <-done:
		fresh = true
	case <-late.C:
	case <-ctx.Done():
	}
	last = t.known()
	if last != nil && !now.Before(last.To.Time()) {
		return nil, false
	}
	return last, fresh
}

// known returns the report that was made last, nil if there is none.
func (t *tonight) known() *night.Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// reportTonight makes the report whenever it is asked for, until ctx ends. If it cannot be
// made, the last one stays; the first failure is logged.
func (s *Site) reportTonight(ctx context.Context) {
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.tonight.asked:
		}
		began := time.Now()
		s.tonight.mu.Lock()
		done := s.tonight.next
		s.tonight.next = make(chan struct{})
		s.tonight.mu.Unlock()
		report, err := s.readTonight(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			s.log.Warn("the home page does not know what was done tonight", "error", err)
		}
		if failing = err != nil; !failing {
			s.tonight.mu.Lock()
			s.tonight.last = report
			s.tonight.mu.Unlock()
			close(done)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(tonightShare*time.Since(began), tonightPause)):
		}
	}
}

func (s *Site) readTonight(ctx context.Context) (*night.Report, error) {
	q, err := s.cfg.Nights.Zones().Parse(url.Values{"date": {night.Of(s.nowIn(nil))}})
	if err != nil {
		return nil, err
	}
	return s.cfg.Nights.Report(ctx, q)
}
