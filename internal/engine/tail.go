package engine

import (
	"context"
	"sync"
	"sync/atomic"

	"oda"
)

// Tail is the end of a log of changes, and those who wait for it to grow. To
// move it costs next to nothing while nobody waits.
type Tail struct {
	end     atomic.Int64
	waiting atomic.Int64

	mu     sync.Mutex
	moved  chan struct{} // closed when the end moves; nil while nobody waits
	closed bool
}

// End gives the last position.
func (t *Tail) End() oda.Position { return oda.Position(t.end.Load()) }

// Move sets the last position, which never goes back.
func (t *Tail) Move(end oda.Position) {
	t.end.Store(int64(end))
	if t.waiting.Load() == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wake()
}

func (t *Tail) wake() {
	if t.moved != nil {
		close(t.moved)
		t.moved = nil
	}
}

// Await waits until the log goes beyond a position.
func (t *Tail) Await(ctx context.Context, after oda.Position) error {
	// Whoever moves the end after this looks for those who wait.
	t.waiting.Add(1)
	defer t.waiting.Add(-1)
	for {
		moved, err := t.next()
		if err != nil || t.End() > after {
			return err
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// next gives the channel that is closed when the end moves.
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

// Close lets nobody wait any more.
func (t *Tail) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.wake()
}
