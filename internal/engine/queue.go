package engine

import (
	"context"
	"sync"
	"time"

	"oda"
)

// enqueueWait is how long a write waits for room in the queue.
const enqueueWait = 5 * time.Second

// Queue is the bounded queue of a writer. A closed queue accepts nothing more, but
// the writer still gets what is in it.
type Queue[T any] struct {
	items chan T

	gate   sync.RWMutex // held for reading while an item is sent
	closed bool
}

// NewQueue returns a queue with room for the given number of items.
func NewQueue[T any](room int) *Queue[T] { return &Queue[T]{items: make(chan T, room)} }

// Put adds an item to the queue. If there is no room, it waits for a while.
func (q *Queue[T]) Put(ctx context.Context, item T) error {
	q.gate.RLock()
	defer q.gate.RUnlock()
	if q.closed {
		return oda.Errorf(oda.Unavailable, "The archive is stopping. Nothing was stored by this request. Try again shortly.")
	}
	select {
	case q.items <- item:
		return nil
	default:
	}
	timer := time.NewTimer(enqueueWait)
	defer timer.Stop()
	select {
	case q.items <- item:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return oda.Errorf(oda.Overloaded, "Too many writes are waiting. Nothing was stored by this request. Try again shortly.")
	}
}

// Items returns the channel from which the writer takes the items. It is closed
// with the queue.
func (q *Queue[T]) Items() <-chan T { return q.items }

// Level returns how full the queue is.
func (q *Queue[T]) Level(name string) Level {
	return Level{Name: name, Used: int64(len(q.items)), Room: int64(cap(q.items))}
}

// Close closes the queue after waiting for calls of Put in progress. It reports
// whether the queue was open.
func (q *Queue[T]) Close() bool {
	q.gate.Lock()
	defer q.gate.Unlock()
	if q.closed {
		return false
	}
	q.closed = true
	close(q.items)
	return true
}
