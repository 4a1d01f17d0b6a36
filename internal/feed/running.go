package feed

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"oda"
)

// The pause between two looks at what is running, and after one that was sent. Looking
// takes at most a twentieth of the time.
const (
	lookPause = 250 * time.Millisecond
	lookShare = 20
	sentPause = time.Second
)

// watch looks at what is running while anyone follows that.
type watch struct {
	hub *Hub
	ctx context.Context
	end context.CancelFunc

	mu    sync.Mutex
	now   *running      // nil before the first look
	moved chan struct{} // closed when that changes
	err   error         // why it will not change any more
}

// running is what was running at some time.
type running struct {
	calls []oda.RunningCall

	mu    sync.Mutex
	parts map[string]*part // by telescope; empty: any
}

// part is what was running at a telescope.
type part struct {
	calls []oda.RunningCall
	frame *frame
}

// of returns what was running at a telescope, or at any if it is empty.
func (r *running) of(telescope string) (*part, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.parts[telescope]; p != nil {
		return p, nil
	}
	calls := oda.RunningAt(r.calls, telescope)
	text, err := oda.RunningCalls{Running: calls}.JSON()
	if err != nil {
		return nil, err
	}
	frame := append(append(beginFrame(len(text)+32), "event: running\ndata: "...), text...)
	p := &part{calls, shared(endFrame(append(frame, "\n\n"...)))}
	r.parts[telescope] = p
	return p, nil
}

// same reports whether nothing has changed but leases.
func same(a, b []oda.RunningCall) bool {
	return slices.EqualFunc(a, b, func(x, y oda.RunningCall) bool { return x.Same(&y) })
}

// joinRunning adds a follower of what is running. It must leave.
func (h *Hub) joinRunning() (*watch, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.admit(); err != nil {
		return nil, err
	}
	if h.watch == nil || h.watch.ctx.Err() != nil {
		h.watch = &watch{hub: h, moved: make(chan struct{})}
		h.watch.ctx, h.watch.end = context.WithCancel(h.stop)
		go h.watch.run()
	}
	h.watched++
	return h.watch, nil
}

func (h *Hub) leaveRunning() {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.ended.Done()
	h.followers--
	if h.watched--; h.watched == 0 {
		h.watch.end()
		h.watch = nil
	}
}

// run looks until the watch ends or the engine fails.
func (w *watch) run() {
	defer w.end()
	var before []oda.RunningCall
	for first := true; ; first = false {
		began := time.Now()
		calls, err := w.hub.archive.Running(w.ctx, "")
		if w.hub.stop.Err() != nil {
			err = errStopping()
		}
		pause := min(max(lookPause, lookShare*time.Since(began)), sentPause)
		if err != nil || first || !same(before, calls) {
			w.tell(calls, err)
			before, pause = calls, sentPause
		}
		select {
		case <-time.After(pause):
		case <-w.ctx.Done():
		}
		if err != nil {
			return
		}
	}
}

// tell tells the followers what is running, or why nobody knows.
func (w *watch) tell(calls []oda.RunningCall, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now, w.err = &running{calls: calls, parts: make(map[string]*part)}, err
	close(w.moved)
	w.moved = make(chan struct{})
}

// next waits until something else is running than before. A beat ends the wait; then it
// returns the same.
func (w *watch) next(ctx context.Context, before *running, beat <-chan time.Time) (*running, error) {
	for {
		w.mu.Lock()
		now, moved, err := w.now, w.moved, w.err
		w.mu.Unlock()
		if err != nil || now != before {
			return now, err
		}
		select {
		case <-moved:
		case <-beat:
			return before, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// StreamRunning sends what is running at a telescope, or at any if it is empty, and
// again when it has changed, until the client or the archive ends the stream. It returns
// an error only if the answer has not begun.
func (h *Hub) StreamRunning(w http.ResponseWriter, r *http.Request, telescope string) (Sent, error) {
	watch, err := h.joinRunning()
	if err != nil {
		return Sent{}, err
	}
	defer h.leaveRunning()
	now, err := watch.next(r.Context(), nil, nil)
	if err != nil {
		return Sent{}, err
	}
	s, err := h.open(w, r, true)
	if s == nil {
		return Sent{}, err
	}
	defer s.close()
	if err == nil {
		err = s.sendShared(shared(noteFrame("retry: %d\n\n", reconnect)))
	}
	if err == nil {
		err = s.running(watch, now, telescope)
	}
	return s.outcome(err), nil
}

func (s *stream) running(w *watch, now *running, telescope string) error {
	var sent *part
	for {
		p, err := now.of(telescope)
		if err != nil {
			return err
		}
		if sent == nil || !same(p.calls, sent.calls) {
			if err := s.sendShared(p.frame); err != nil {
				return err
			}
			sent = p
		}
		before := now
		for now == before {
			if now, err = w.next(s.ctx, before, s.beats.C); err == nil && now == before {
				err = s.sendShared(shared(noteFrame(":\n\n")))
			}
			if err != nil {
				return err
			}
		}
	}
}
