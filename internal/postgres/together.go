package postgres

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
)

// Updates run by themselves as long as few are under way, each on a connection
// of its own that is closed when its caller goes away. Where there are more,
// those that have to wait in any case go together: several updates in one
// transaction and one trip cost the database one commit.
const (
	alone          = 8   // transactions of updates under way at once
	togetherMost   = 16  // updates in one of them
	updatesWaiting = 512 // beyond it the archive is overloaded
)

// update is the update of one entity on its way.
type update struct {
	*store
	ctx  context.Context
	done chan error
}

// updates are those under way and waiting.
type updates struct {
	mu      sync.Mutex
	running int
	waiting []*update
}

// enter says whether the update may run now. If not, it waits, or there is no
// room for it to wait.
func (u *updates) enter(one *update) (now bool, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.running < alone:
		u.running++
		return true, nil
	case len(u.waiting) == updatesWaiting:
		return false, oda.Errorf(oda.Overloaded, "Too many updates are waiting. Nothing was stored by this request. Try again shortly.")
	}
	u.waiting = append(u.waiting, one)
	return false, nil
}

// leave ends a transaction and gives the updates that take its place: those
// that wait, without those whose callers have gone.
func (u *updates) leave() []*update {
	u.mu.Lock()
	defer u.mu.Unlock()
	var batch []*update
	for len(u.waiting) > 0 && len(batch) < togetherMost {
		one := u.waiting[0]
		u.waiting = u.waiting[1:]
		if err := one.ctx.Err(); err != nil {
			one.done <- err
			continue
		}
		batch = append(batch, one)
	}
	if len(batch) == 0 {
		u.running--
	}
	return batch
}

// update stores the next version of one entity, now or together with others. It
// does not wait long for a head that somebody holds.
func (s *Store) update(ctx context.Context, st *store) error {
	one := &update{ctx: ctx, store: st, done: make(chan error, 1)}
	now, err := s.updates.enter(one)
	if err != nil {
		return err
	}
	if now {
		defer s.passOn() // also if this panics
		return s.storeAlone(ctx, st, putPatience)
	}
	select {
	case err := <-one.done:
		return err
	case <-ctx.Done():
		// It may still be stored, as any write whose caller goes away.
		return ctx.Err()
	}
}

// passOn gives the place of an update that ran alone to those that wait.
func (s *Store) passOn() {
	if batch := s.updates.leave(); batch != nil {
		go s.updateTogether(batch)
	}
}

// updateTogether stores a batch and those that are waiting when it is done,
// until nobody waits.
func (s *Store) updateTogether(batch []*update) {
	for ; batch != nil; batch = s.updates.leave() {
		s.updateBatch(context.Background(), batch)
	}
}

// updateBatch stores the updates in one transaction. If one of them undoes it,
// each has one of its own, but not those whose head is held: their callers wait
// for it by themselves.
func (s *Store) updateBatch(ctx context.Context, batch []*update) {
	stores, refs := make([]*store, len(batch)), make([]oda.Ref, len(batch))
	for i, one := range batch {
		stores[i], refs[i] = one.store, one.put.Ref
	}
	ctx, cancel := context.WithTimeout(ctx, 2*writeTime(stores))
	defer cancel()
	err := s.storeTogether(ctx, stores, putPatience)
	if rolledBack(err) == nil {
		for _, one := range batch {
			if err != nil {
				one.answer = err
			}
			one.done <- one.answer
		}
		return
	}
	var notHeld map[oda.Ref]bool
	if isHeld(err) {
		notHeld, _ = s.notHeld(ctx, refs) // an error leaves all to their callers
	}
	for _, one := range batch {
		if isHeld(err) && !notHeld[one.put.Ref] {
			one.done <- err
		} else {
			one.done <- s.storeAlone(ctx, one.store, putPatience)
		}
	}
}

// storeTogether runs the statements in one round trip; without a BEGIN they are
// one transaction. One that does not match writes nothing, and the others do.
func (s *Store) storeTogether(ctx context.Context, stores []*store, patience time.Duration) error {
	ordered := inOrder(stores)
	return s.store(ctx, stores, func(ctx context.Context, conn *pgxpool.Conn) error {
		return runAll(conn.SendBatch(ctx, queued(ordered, patience)), ordered)
	})
}

// storeAlone is storeTogether of one; not to match is its error.
func (s *Store) storeAlone(ctx context.Context, st *store, patience time.Duration) error {
	if err := s.storeTogether(ctx, []*store{st}, patience); err != nil {
		return err
	}
	return st.answer
}

// inOrder gives the stores in the order of their identifiers. All take heads in
// it, so two transactions never wait for each other.
func inOrder(stores []*store) []*store {
	return slices.SortedStableFunc(slices.Values(stores), func(a, b *store) int {
		return cmp.Or(cmp.Compare(a.put.Kind, b.put.Kind), cmp.Compare(a.put.ID, b.put.ID))
	})
}

// queued queues the stores, none of which waits longer than that for a head.
func queued(stores []*store, patience time.Duration) *pgx.Batch {
	var batch pgx.Batch
	batch.Queue(setPatience, milliseconds(patience))
	for _, st := range stores {
		batch.Queue(st.sql, st.args...)
	}
	return &batch
}

// runAll reads what came of the stores. One that did not match has errRefused
// for its answer.
func runAll(results pgx.BatchResults, stores []*store) error {
	if _, err := results.Exec(); err != nil {
		_ = results.Close() // says the same
		return err
	}
	for _, st := range stores {
		st.entity, st.answer = scan(results.QueryRow(), st.put)
		if err := st.answer; err != nil && !errors.Is(err, errRefused) {
			_ = results.Close() // says the same
			return err
		}
	}
	// Only the end of the batch says that it is committed.
	return results.Close()
}
