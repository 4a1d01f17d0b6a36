// Package feed serves those who follow the archive: the log of changes is read
// once for all of them, and each is sent what it has not seen yet, as an answer
// that waits or as a stream of events. It knows the rules of the archive, and no
// engine.
package feed

import (
	"context"
	"runtime"
	"sync"

	"oda"
)

// Hub hands changes to followers. While nobody follows, it does nothing.
type Hub struct {
	archive *oda.Archive
	most    int             // followers at a time
	stop    context.Context // when the archive stops
	places  chan struct{}   // for followers that read the log by themselves
	ended   sync.WaitGroup  // of the followers

	mu        sync.Mutex
	followers int
	tail      *tail // nil while nobody follows
}

// New returns a hub with room for so many followers. They are sent away when ctx
// ends.
func New(ctx context.Context, archive *oda.Archive, most int) *Hub {
	return &Hub{archive: archive, most: most, stop: ctx, places: make(chan struct{}, max(2, runtime.GOMAXPROCS(0)))}
}

// Wait waits until the last follower is gone, once the context of the hub has
// ended.
func (h *Hub) Wait() { h.ended.Wait() }

// errStopping tells a follower to come back.
func errStopping() error {
	return oda.Errorf(oda.Unavailable, "The archive is stopping. Follow it again shortly, from where you are.")
}

// join lets one more follow, who must leave.
func (h *Hub) join() (*tail, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stop.Err() != nil {
		return nil, errStopping()
	}
	if h.followers >= h.most {
		return nil, oda.Errorf(oda.Overloaded, "%d clients follow the archive, which is as many as there may be. "+
			"Try again shortly, or ask from time to time without waiting.", h.most)
	}
	if h.tail == nil || h.tail.failed() {
		h.tail = h.newTail()
	}
	h.followers++
	h.ended.Add(1)
	return h.tail, nil
}

func (h *Hub) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.ended.Done()
	if h.followers--; h.followers == 0 {
		h.tail.end()
		h.tail = nil
	}
}

// Followers gives the number of followers.
func (h *Hub) Followers() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.followers
}
