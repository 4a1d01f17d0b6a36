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
	calls map[runningKey]*oda.RunningCall
}

type runningKey struct{ block, key string }

// end forgets the calls that have been recorded.
func (r *running) end(add oda.Append) {
	if !r.some.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range add.Records {
		delete(r.calls, runningKey{add.Block, add.Records[i].Key})
	}
}

// Begin implements oda.Runner.
func (s *Store) Begin(ctx context.Context, b oda.Begun) error {
	telescope, _, err := s.runningIn(ctx, &b)
	if err != nil {
		return err
	}
	if err := s.running.begin(&b, telescope); err != nil {
		return err
	}
	// A record that is committed later will end the call.
	if _, ended, err := s.runningIn(ctx, &b); err != nil || ended {
		s.running.forget(runningKey{b.Block, b.Key})
		return err
	}
	return nil
}

// begin adds a call, or renews it.
func (r *running) begin(b *oda.Begun, telescope string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.some.Store(true)
	if r.calls == nil {
		r.calls = make(map[runningKey]*oda.RunningCall)
	}
	key := runningKey{b.Block, b.Key}
	known := r.calls[key]
	if known == nil {
		own := 0
		for key, one := range r.calls {
			if one.IsGone(b.Now) {
				delete(r.calls, key)
			} else if one.By == b.By {
				own++
			}
		}
		if err := oda.CheckRunning(len(r.calls), own); err != nil {
			return err
		}
		known = &oda.RunningCall{}
	}
	now := known.Renewed(b)
	if now.Telescope = nil; telescope != "" {
		now.Telescope = &telescope
	}
	r.calls[key] = &now
	return nil
}

func (r *running) forget(key runningKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.calls, key)
}

// Withdraw implements oda.Runner.
func (s *Store) Withdraw(ctx context.Context, b oda.Begun) error {
	if _, _, err := s.runningIn(ctx, &b); err != nil {
		return err
	}
	s.running.forget(runningKey{b.Block, b.Key})
	return nil
}

// runningIn returns the telescope of the block of a call, and whether the call has been
// recorded.
func (s *Store) runningIn(ctx context.Context, b *oda.Begun) (telescope string, ended bool, err error) {
	c, err := s.readers.take(ctx)
	if err != nil {
		return "", false, err
	}
	defer s.readers.give(c)
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
	if block != "" {
		if _, _, err := s.runningIn(ctx, &oda.Begun{Block: block}); err != nil {
			return nil, err
		}
	}
	now := oda.InstantOf(time.Now())
	s.running.mu.Lock()
	defer s.running.mu.Unlock()
	var calls []oda.RunningCall
	for _, one := range s.running.calls {
		if (block == "" || one.Block == block) && !one.IsGone(now) {
			call := *one
			call.Silent = now >= oda.Instant(one.LeaseUntil)
			calls = append(calls, call)
		}
	}
	slices.SortFunc(calls, func(a, b oda.RunningCall) int {
		return cmp.Or(strings.Compare(a.Block, b.Block), strings.Compare(a.Key, b.Key))
	})
	return calls, nil
}
