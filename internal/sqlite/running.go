package sqlite

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"zombiezen.com/go/sqlite"

	"oda"
)

// running are the calls that have begun and not ended. One process has the file, so they
// are in its memory; their recorders say them again after a restart.
type running struct {
	some  atomic.Bool // there may be calls
	mu    sync.Mutex
	calls map[runningKey]oda.RunningCall
}

type runningKey struct{ block, key string }

// end forgets a call that has been recorded.
func (r *running) end(block, key string) {
	if r.some.Load() {
		r.forget(runningKey{block, key})
	}
}

func (r *running) forget(key runningKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.calls, key)
}

// Begin implements oda.Runner.
func (s *Store) Begin(ctx context.Context, b oda.Begun) error {
	_, ended, err := s.runningIn(ctx, &b)
	if err != nil || ended {
		return err
	}
	if err := s.running.begin(&b); err != nil {
		return err
	}
	// The call may have been recorded meanwhile. A record that this does not see will end it.
	if _, ended, err = s.runningIn(ctx, &b); ended {
		s.running.forget(runningKey{b.Block, b.Key})
	}
	return err
}

// begin adds a call, or renews it.
func (r *running) begin(b *oda.Begun) error {
	now := oda.InstantOf(time.Now())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.some.Store(true)
	if r.calls == nil {
		r.calls = make(map[runningKey]oda.RunningCall)
	}
	key := runningKey{b.Block, b.Key}
	known, ok := r.calls[key]
	if !ok || known.IsGone(now) {
		known = oda.RunningCall{}
		if err := r.room(b.By, now); err != nil {
			return err
		}
	}
	r.calls[key] = known.Renewed(b, now)
	return nil
}

// room returns an error if there is no room for one more call of a user. It forgets those
// that are gone.
func (r *running) room(by string, now oda.Instant) error {
	own := 0
	for key, one := range r.calls {
		if one.IsGone(now) {
			delete(r.calls, key)
		} else if one.By == by {
			own++
		}
	}
	return oda.CheckRunning(len(r.calls), own)
}

// Withdraw implements oda.Runner.
func (s *Store) Withdraw(ctx context.Context, b oda.Begun) error {
	_, _, err := s.runningIn(ctx, &b)
	if err == nil {
		s.running.forget(runningKey{b.Block, b.Key})
	}
	return err
}

// runningIn returns the telescope of the block of a call, and whether the call has been
// recorded.
func (s *Store) runningIn(ctx context.Context, b *oda.Begun) (telescope string, ended bool, err error) {
	c, err := s.readers.take(ctx)
	if err != nil {
		return "", false, err
	}
	defer s.readers.give(c)
	return c.runningIn(b)
}

func (c *conn) runningIn(b *oda.Begun) (telescope string, ended bool, err error) {
	there := false
	err = c.query(`SELECT telescope, EXISTS (SELECT 1 FROM records r WHERE r.entity = h.entity AND r.key = ?3) FROM heads h WHERE kind = ?1 AND identifier = ?2`,
		func(stmt *sqlite.Stmt) error {
			there, telescope, ended = true, stmt.ColumnText(0), stmt.ColumnInt64(1) != 0
			return nil
		}, int64(oda.ExecutionBlock), b.Block, b.Key)
	switch {
	case err != nil:
		return "", false, storageError(err)
	case !there:
		return "", false, oda.Missing(oda.Ref{Kind: oda.ExecutionBlock, ID: b.Block})
	}
	return telescope, ended, b.Admit(telescope)
}

// Running implements oda.Runner.
func (s *Store) Running(ctx context.Context, block string) ([]oda.RunningCall, error) {
	c, err := s.readers.take(ctx)
	if err != nil {
		return nil, err
	}
	defer s.readers.give(c)
	if block != "" {
		if _, _, err := c.runningIn(&oda.Begun{Block: block}); err != nil {
			return nil, err
		}
	}
	now := oda.InstantOf(time.Now())
	calls := s.running.in(block, now)
	last, telescope := "", ""
	for i := range calls {
		if calls[i].Block != last {
			last = calls[i].Block
			if telescope, _, err = c.runningIn(&oda.Begun{Block: last}); err != nil {
				return nil, err
			}
		}
		calls[i].SeenAt(now, telescope)
	}
	return calls, nil
}

// in returns the calls in a block, or in all if it is empty, in order.
func (r *running) in(block string, now oda.Instant) []oda.RunningCall {
	r.mu.Lock()
	defer r.mu.Unlock()
	var calls []oda.RunningCall
	for _, one := range r.calls {
		if (block == "" || one.Block == block) && !one.IsGone(now) {
			calls = append(calls, one)
		}
	}
	slices.SortFunc(calls, func(a, b oda.RunningCall) int {
		return cmp.Or(strings.Compare(a.Block, b.Block), strings.Compare(a.Key, b.Key))
	})
	return calls
}
