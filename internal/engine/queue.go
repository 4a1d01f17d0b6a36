package engine

import (
	"context"
	"sync"
	"time"

	"oda"
)

// enqueueWait bounds how long a write waits for room in the queue.
const enqueueWait = 5 * time.Second

// Queue is the bounded queue of writes before a writer. Closed, it takes no
// more, and what is in it is still handed out.
type Queue[T any] struct {
	items chan T

	gate   sync.RWMutex // held for reading while an item is sent
	closed bool
}

// NewQueue makes a queue with room for so many.
func NewQueue[T any](room int) *Queue[T] { return &Queue[T]{items: make(chan T, room)} }

// Put hands an item to the writer, or tells why it cannot.
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

// Items is where the writer takes the items. It is closed with the queue.
func (q *Queue[T]) Items() <-chan T { return q.items }

// Close ends the queue once those who wait for room have it. It tells whether it
// was open.
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
