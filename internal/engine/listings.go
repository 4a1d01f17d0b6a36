package engine

import (
	"context"
	"sync"
	"time"

	"oda"
)

// A few chunks of identifiers are buffered between the database and the reader of
// a listing. A slow reader takes no more memory than that, and a place in the
// database that it can lose.
const (
	chunkSize   = 512
	chunksAhead = 4
)

// listingWait is how long a listing waits for its turn.
const listingWait = 5 * time.Second

// turnPause is the time between two checks whether listings are held.
const turnPause = 20 * time.Millisecond

// Listings manages the listings without a limit. Each holds a connection and a
// snapshot until its reader has read it all. So their number is bounded, and they
// are ended if they are in the way of others.
type Listings struct {
	turns chan struct{}

	mu      sync.Mutex
	running map[*listing]bool
	held    time.Time // no listing begins before
}

// NewListings allows most listings at once.
func NewListings(most int) *Listings {
	return &Listings{turns: make(chan struct{}, most), running: make(map[*listing]bool)}
}

// listing is a listing that is being read.
type listing struct {
	began   time.Time
	stalled time.Time // when it began to wait for its reader; zero if it does not wait
	end     context.CancelCauseFunc
}

// entry is an identifier of a listing and its instant.
type entry struct {
	id string
	at oda.Instant
}

// reading calls emit for each identifier that matches a query.
type reading func(ctx context.Context, q oda.Query, emit func(id string, at oda.Instant) error) error

func errTooMany() error {
	return oda.Errorf(oda.Overloaded, "Too many listings without a limit are being read at once. "+
		"Try again shortly, or read this one in pages with limit.")
}

func errEnded() error {
	return oda.Errorf(oda.Overloaded, "The listing was ended because it was read too slowly while others were waiting. "+
		"Read it faster, or in pages with limit.")
}

// Read calls read, and emit for each identifier that it finds, in order. A page is read
// at once. A listing without a limit is read on a goroutine of its own; Read returns when
// both have ended.
func (l *Listings) Read(ctx context.Context, q oda.Query, emit func(string, oda.Instant) error, read reading) error {
	if q.Limit > 0 {
		return read(ctx, q, emit)
	}
	if err := l.enter(ctx); err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(ctx)
	one := &listing{began: time.Now(), end: end}
	chunks, used := make(chan []entry, chunksAhead), make(chan []entry, chunksAhead+1)
	var failed error // valid once chunks is closed
	l.add(one)
	go func() {
		defer close(chunks)
		defer l.leave(one)
		failed = l.find(ctx, q, one, chunks, used, read)
	}()
	defer func() {
		end(nil)
		for range chunks { // until read has released the database
		}
	}()
	for chunk := range chunks {
		for _, e := range chunk {
			if err := emit(e.id, e.at); err != nil {
				return err
			}
		}
		select {
		case used <- chunk[:0]:
		default:
		}
	}
	return failed
}

// find sends what read finds to chunks.
func (l *Listings) find(ctx context.Context, q oda.Query, one *listing, chunks, used chan []entry, read reading) error {
	chunk := make([]entry, 0, chunkSize)
	err := read(ctx, q, func(id string, at oda.Instant) error {
		if chunk = append(chunk, entry{id, at}); len(chunk) < chunkSize {
			return nil
		}
		if err := l.hand(ctx, one, chunks, chunk); err != nil {
			return err
		}
		select {
		case chunk = <-used:
		default:
			chunk = make([]entry, 0, chunkSize)
		}
		return nil
	})
	if err == nil {
		err = l.hand(ctx, one, chunks, chunk)
	}
	if ended, ok := context.Cause(ctx).(*oda.Error); ok && err != nil {
		// What the reader has not yet taken is of no use any more.
		for len(chunks) > 0 {
			select {
			case <-chunks:
			default:
			}
		}
		return ended
	}
	return err
}

// hand waits until the reader has room for a chunk.
func (l *Listings) hand(ctx context.Context, one *listing, chunks chan<- []entry, chunk []entry) error {
	select {
	case chunks <- chunk:
		return nil
	default:
	}
	l.stall(one, time.Now())
	defer l.stall(one, time.Time{})
	select {
	case chunks <- chunk:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// enter waits until a listing may begin.
func (l *Listings) enter(ctx context.Context) error {
	timer := time.NewTimer(listingWait)
	defer timer.Stop()
	for l.isHeld() {
		select {
		case <-time.After(turnPause):
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return errTooMany()
		}
	}
	select {
	case l.turns <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return errTooMany()
	}
}

func (l *Listings) isHeld() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Before(l.held)
}

func (l *Listings) add(one *listing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running[one] = true
}

func (l *Listings) leave(one *listing) {
	l.mu.Lock()
	delete(l.running, one)
	l.mu.Unlock()
	<-l.turns
}

func (l *Listings) stall(one *listing, since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one.stalled = since
}

// Running returns the number of listings that are being read.
func (l *Listings) Running() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.running)
}

// Hold lets no listing begin before that time. The zero time lets them begin
// again.
func (l *Listings) Hold(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = until
}

// EndStalled ends the listings that have waited for their readers longer than
// that.
func (l *Listings) EndStalled(longer time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for one := range l.running {
		if !one.stalled.IsZero() && time.Since(one.stalled) > longer {
			one.end(errEnded())
		}
	}
}

// EndAll ends all listings.
func (l *Listings) EndAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for one := range l.running {
		one.end(errEnded())
	}
}

// EndOne ends the listing that has waited longest for its reader, or the oldest if
// none waits.
func (l *Listings) EndOne() {
	l.mu.Lock()
	defer l.mu.Unlock()
	var worst *listing
	for one := range l.running {
		if worst == nil || one.worse(worst) {
			worst = one
		}
	}
	if worst != nil {
		worst.end(errEnded())
		delete(l.running, worst) // so that the next call ends another one
	}
}

func (one *listing) worse(than *listing) bool {
	if one.stalled.IsZero() != than.stalled.IsZero() {
		return than.stalled.IsZero()
	}
	if one.stalled.IsZero() {
		return one.began.Before(than.began)
	}
	return one.stalled.Before(than.stalled)
}
