// Package feed serves clients that follow the archive. It reads the log of changes
// once for all of them, and sends each what it has not yet seen, as an answer that
// waits or as a stream of events. It uses package oda and no engine.
package feed

import (
	"context"
	"runtime"
	"sync"
	"time"

	"oda"
	"oda/archive"
	"oda/internal/measure"
)

// Hub distributes changes to followers. While nobody follows, it does nothing.
type Hub struct {
	archive  *archive.Archive
	most     int             // followers at a time
	patience time.Duration   // how long a follower may take to receive one write
	stop     context.Context // ends when the archive stops
	places   chan struct{}   // for followers that read the log themselves
	ended    sync.WaitGroup  // of the followers
	delay    *measure.Histogram

	mu        sync.Mutex
	followers int
	tail      *tail  // nil while nobody follows changes
	tailed    int    // those who do
	watch     *watch // nil while nobody follows what is running
	watched   int
}

// New returns a hub for at most the given number of followers. Each must receive what is sent
// to it at once within the write time-out and within sendTime. The hub ends all of
// them when ctx ends.
func New(ctx context.Context, archive *archive.Archive, most int, writeTimeout time.Duration) *Hub {
	return &Hub{
		archive: archive, most: most, patience: min(writeTimeout, sendTime), stop: ctx,
		places: make(chan struct{}, max(2, runtime.GOMAXPROCS(0))), delay: measure.NewHistogram(measure.Durations...),
	}
}

// Wait waits until the last follower is gone. The context of the hub must have
// ended.
func (h *Hub) Wait() { h.ended.Wait() }

// errStopping returns the error for a follower while the archive stops.
func errStopping() error {
	return oda.Errorf(oda.Unavailable, "The archive is stopping. Follow it again shortly, from where you are.")
}

// admit counts a follower, if there is room for one more.
func (h *Hub) admit() error {
	if h.stop.Err() != nil {
		return errStopping()
	}
	if h.followers >= h.most {
		return oda.Errorf(oda.Overloaded, "%d clients follow the archive already, which is the limit. "+
			"Try again shortly, or ask from time to time without waiting.", h.most)
	}
	h.followers++
	h.ended.Add(1)
	return nil
}

// join adds a follower of changes. It must leave.
func (h *Hub) join() (*tail, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.admit(); err != nil {
		return nil, err
	}
	if h.tail == nil || h.tail.failed() {
		h.tail = h.newTail()
	}
	h.tailed++
	return h.tail, nil
}

func (h *Hub) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.ended.Done()
	h.followers--
	if h.tailed--; h.tailed == 0 {
		h.tail.end()
		h.tail = nil
	}
}

// Followers returns the number of followers.
func (h *Hub) Followers() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.followers
}

// Stats is how the followers are served.
type Stats struct {
	Followers, Most int
	Delay           measure.Counts // in nanoseconds, from a change to when it is sent
}

// Stats tells how the followers are served.
func (h *Hub) Stats() Stats { return Stats{h.Followers(), h.most, h.delay.Read()} }
