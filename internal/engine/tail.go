package engine

import (
	"context"
	"sync"
	"sync/atomic"

	"oda"
)

// Tail is the end of a log of changes. Callers can wait for it to move. Moving it
// costs almost nothing while nobody waits.
type Tail struct {
	end     atomic.Int64
	waiting atomic.Int64

	mu     sync.Mutex
	moved  chan struct{} // closed when the end moves; nil while nobody waits
	closed bool
}

// End returns the last position.
func (t *Tail) End() oda.Position { return oda.Position(t.end.Load()) }

// Move sets the last position. It goes back only if a database was restored to an older
// state.
func (t *Tail) Move(end oda.Position) {
	t.end.Store(int64(end))
	if t.Awaited() {
		t.Call()
	}
}

func (t *Tail) wake() {
	if t.moved != nil {
		close(t.moved)
		t.moved = nil
	}
}

// Call wakes those who wait, to look for changes that have no position yet.
func (t *Tail) Call() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wake()
}

// Awaited reports whether anyone waits.
func (t *Tail) Awaited() bool { return t.waiting.Load() > 0 }

// Wait says that somebody waits, until end is called.
func (t *Tail) Wait() (end func()) {
	t.waiting.Add(1)
	return func() { t.waiting.Add(-1) }
}

// Await waits until the log may extend beyond a position.
func (t *Tail) Await(ctx context.Context, after oda.Position) error {
	defer t.Wait()() // from here on, Move wakes this call
	moved, err := t.next()
	if err != nil || t.End() > after {
		return err
	}
	select {
	case <-moved:
		_, err := t.next()
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// next returns the channel that is closed when the end moves.
func (t *Tail) next() (<-chan struct{}, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, oda.Errorf(oda.Unavailable, "The archive is stopping. Try again shortly.")
	}
	if t.moved == nil {
		t.moved = make(chan struct{})
	}
	return t.moved, nil
}

// Close ends all waiting.
func (t *Tail) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.wake()
}
