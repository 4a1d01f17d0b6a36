package oda

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Turns bounds how many callers do something costly at once.
type Turns struct{ places chan struct{} }

// turnWait is how long a caller waits for its turn.
const turnWait = 5 * time.Second

// NewTurns returns turns for so many callers at once.
func NewTurns(atOnce int) Turns { return Turns{make(chan struct{}, atOnce)} }

// Take waits for a turn, which the caller has until it calls giveBack. If none
// becomes free in time, Take returns the error full.
func (t Turns) Take(ctx context.Context, full *Error) (giveBack func(), err error) {
	timer := time.NewTimer(turnWait)
	defer timer.Stop()
	select {
	case t.places <- struct{}{}:
		return func() { <-t.places }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
		return nil, full
	}
}

// Share has some workers do n pieces of work at the same time, each piece once. It ends
// at the first error and returns it.
func Share(ctx context.Context, workers, n int, do func(ctx context.Context, worker, piece int) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var next atomic.Int64
	var group sync.WaitGroup
	for worker := range min(workers, n) {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := do(ctx, worker, i); err != nil {
					stop(err)
				}
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}
