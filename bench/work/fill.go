package work

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"oda/bench/load"
	"oda/bench/peers"
)

// users own the entities of a large archive in equal parts, so that the share
// of one of them is known.
const users = 10

func user(n int) string { return fmt.Sprintf("observer-%d", n%users) }

// inParallel calls do for 0 to count-1 from a few goroutines and returns when
// all have ended. The first error ends the others.
func inParallel(ctx context.Context, goroutines, count int, do func(ctx context.Context, goroutine, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		all  sync.WaitGroup
		next atomic.Int64
	)
	for g := range min(goroutines, count) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < count && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := do(ctx, g, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// send is one exchange that has to succeed; it returns the body of the answer.
func send(ctx context.Context, addr string, request []byte) ([]byte, error) {
	answer, err := load.Once(ctx, addr, request)
	if err != nil {
		return nil, err
	}
	if answer.Status != http.StatusOK {
		return nil, fmt.Errorf("answered %d: %.300s", answer.Status, answer.Body)
	}
	return answer.Body, nil
}

// fill stores SBDefinitions number from to number to-1 of a family, as people
// would who bring an old archive in: several at once over a few connections,
// each request by one of the users in turn.
func (s *stage) fill(ctx context.Context, addr, prefix string, from, to, size int) error {
	several := min(s.plan.several, to-from)
	if several <= 0 || (to-from)%several != 0 {
		return fmt.Errorf("cannot store %d entities in parts of %d", to-from, several)
	}
	forms := make([]*form, s.plan.fillers)
	for i := range forms {
		forms[i] = severalForm(several, size)
	}
	requests := (to - from) / several
	bar := s.counter(fmt.Sprintf("store %d entities", to-from), requests)
	err := inParallel(ctx, len(forms), requests, func(ctx context.Context, goroutine, i int) error {
		first := from + i*several
		for n := range several {
			forms[goroutine].set(n, identifier(prefix, int64(first+n)))
		}
		header := append(jsonBody(), "X-Forwarded-User", user(first/several))
		_, err := send(ctx, addr, load.Request(nil, "PUT", api+"/", header, forms[goroutine].body))
		bar.add(1)
		return err
	})
	if err != nil {
		return fmt.Errorf("storing the entities %d to %d: %w", from, to-1, err)
	}
	return nil
}

// blocks makes empty ExecutionBlocks and returns their identifiers.
func (s *stage) blocks(ctx context.Context, addr, prefix string, count int) ([]string, error) {
	ids := make([]string, count)
	err := inParallel(ctx, s.plan.fillers, count, func(ctx context.Context, _, i int) error {
		ids[i] = fmt.Sprintf("eb-%s-%06d", prefix, i)
		_, err := send(ctx, addr, load.Request(nil, "PUT", api+"/ebs/"+ids[i], jsonBody(), peers.EmptyBlock(ids[i])))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("making %d blocks: %w", count, err)
	}
	return ids, nil
}

// lengthen adds records to each of the blocks, in batches.
func (s *stage) lengthen(ctx context.Context, addr string, ids []string, length int) error {
	size := min(s.plan.scaleBatch, length)
	if length%size != 0 {
		return fmt.Errorf("cannot record %d records in parts of %d", length, size)
	}
	var keys atomic.Int64
	batches := length / size
	bar := s.counter(fmt.Sprintf("record %d records", len(ids)*length), len(ids)*batches)
	err := inParallel(ctx, s.plan.fillers, len(ids)*batches, func(ctx context.Context, _, i int) error {
		w := newBatcher(ids[i/batches], size, &keys)
		_, err := send(ctx, addr, w.Next(nil))
		bar.add(1)
		return err
	})
	if err != nil {
		return fmt.Errorf("recording %d records into each of %d blocks: %w", length, len(ids), err)
	}
	return nil
}

// counter shows on the progress how far a long preparation is.
type counter struct {
	s     *stage
	what  string
	total int64
	done  atomic.Int64
	start time.Time
	mu    sync.Mutex
	said  time.Time
}

// sayEvery is the time between two lines about the same preparation.
const sayEvery = 10 * time.Second

func (s *stage) counter(what string, total int) *counter {
	now := time.Now()
	return &counter{s: s, what: what, total: int64(total), start: now, said: now}
}

func (c *counter) add(n int64) {
	done := c.done.Add(n)
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.said) >= sayEvery {
		c.said = now
		left := time.Duration(float64(now.Sub(c.start)) / float64(done) * float64(c.total-done))
		c.s.say("  %s: %d %%, %v left", c.what, 100*done/c.total, left.Round(time.Second))
	}
}
