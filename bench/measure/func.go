package measure

import (
	"context"
	"sync"
	"time"
)

// Func makes an Arm of a function that does one operation; n goroutines call
// it, each again and again. It is for work that does not go over the load
// generator: a start, a listing, a statement straight to an engine.
//
// An operation that has begun is waited for and counted, so every goroutine
// does at least one, however long it takes.
func Func(name string, goroutines int, op func(ctx context.Context, goroutine int) error) Arm {
	return Arm{Name: name, Run: func(ctx context.Context, length time.Duration) (Sample, error) {
		var (
			all     sync.WaitGroup
			tallies = make([]*Tally, goroutines)
			worked  = make([]time.Duration, goroutines)
			start   = time.Now()
			end     = start.Add(length)
		)
		for i := range goroutines {
			tallies[i] = NewTally()
			all.Go(func() {
				worked[i] = repeat(ctx, end, tallies[i], func() error { return op(ctx, i) })
			})
		}
		all.Wait()
		if err := ctx.Err(); err != nil {
			return Sample{}, err
		}
		return Total(Mean(worked), tallies...), nil
	}}
}

// repeat calls op until the end and returns for how long it did.
func repeat(ctx context.Context, end time.Time, tally *Tally, op func() error) time.Duration {
	start := time.Now()
	for begin := start; ; {
		err := op()
		now := time.Now()
		if err != nil {
			tally.Fail(err)
		} else {
			tally.Done(now.Sub(begin), 0)
		}
		if !now.Before(end) || ctx.Err() != nil {
			return now.Sub(start)
		}
		begin = now
	}
}

// Mean is the time for which goroutines worked that each finish what they have
// begun when the time is up. Their mean, and not that of the slowest one, is
// what operations are to be divided by: the others were done and idle while
// it finished.
func Mean(worked []time.Duration) time.Duration {
	if len(worked) == 0 {
		return 0
	}
	var sum time.Duration
	for _, w := range worked {
		sum += w
	}
	return sum / time.Duration(len(worked))
}
