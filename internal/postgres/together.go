package postgres

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
)

// Updates run by themselves as long as few are under way, each on a connection
// of its own that is closed when its caller goes away. Where there are more,
// those that have to wait anyhow go together: several updates in one
// transaction and one trip cost the database one commit.
const (
	alone          = 8   // transactions of updates under way at once
	togetherMost   = 16  // updates in one of them
	updatesWaiting = 512 // beyond it the archive is overloaded
)

// update is the update of one entity on its way.
type update struct {
	ctx    context.Context
	put    *oda.Put
	store  *store
	entity *stored
	answer error
	done   chan error
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

// update stores the next version of one entity.
func (s *Store) update(ctx context.Context, st *store, p *oda.Put) (*stored, error) {
	one := &update{ctx: ctx, put: p, store: st, done: make(chan error, 1)}
	now, err := s.updates.enter(one)
	if err != nil {
		return nil, err
	}
	if now {
		defer s.passOn() // also if this panics
		err := s.updateAlone(ctx, one)
		return one.entity, err
	}
	select {
	case err := <-one.done:
		return one.entity, err
	case <-ctx.Done():
		// It may still be stored, as any write whose caller goes away.
		return nil, ctx.Err()
	}
}

// passOn gives the place of an update that ran alone to those that wait.
func (s *Store) passOn() {
	if batch := s.updates.leave(); batch != nil {
		go s.updateTogether(batch)
	}
}

func (s *Store) updateAlone(ctx context.Context, one *update) error {
	return s.again(ctx, func(ctx context.Context) error {
		return s.write(ctx, func(ctx context.Context, conn *pgxpool.Conn) (err error) {
			one.entity, err = scan(conn.QueryRow(ctx, one.store.sql, one.store.args...), one.put)
			return err
		})
	})
}

// updateTogether stores a batch and those that are waiting when it is done,
// until nobody waits. The heads are taken in the order of their identifiers.
func (s *Store) updateTogether(batch []*update) {
	for ; batch != nil; batch = s.updates.leave() {
		slices.SortStableFunc(batch, func(a, b *update) int {
			return cmp.Or(cmp.Compare(a.put.Kind, b.put.Kind), cmp.Compare(a.put.ID, b.put.ID))
		})
		ctx, cancel := context.WithTimeout(context.Background(), batchTime)
		s.updateBatch(ctx, batch)
		cancel()
	}
}

// updateBatch stores the updates in one transaction. If one of them undoes it,
// each has one of its own, those whose head is held last.
func (s *Store) updateBatch(ctx context.Context, batch []*update) {
	err := s.updateOnce(ctx, batch)
	if rolledBack(err) == nil {
		for _, one := range batch {
			if err != nil {
				one.answer = err
			}
			one.done <- one.answer
		}
		return
	}
	refs := make([]oda.Ref, len(batch))
	for i, one := range batch {
		refs[i] = one.put.Ref
	}
	notHeld, _ := s.notHeld(ctx, refs) // an error leaves the order as it is
	slices.SortStableFunc(batch, func(a, b *update) int {
		switch {
		case notHeld[a.put.Ref] == notHeld[b.put.Ref]:
			return 0
		case notHeld[a.put.Ref]:
			return -1
		}
		return 1
	})
	for _, one := range batch {
		if err := s.updateOnce(ctx, []*update{one}); err != nil {
			one.answer = err
		}
		one.done <- one.answer
	}
}

func (s *Store) updateOnce(ctx context.Context, batch []*update) error {
	return s.again(ctx, func(ctx context.Context) error {
		return s.write(ctx, func(ctx context.Context, conn *pgxpool.Conn) error { return updateAll(ctx, conn, batch) })
	})
}

// updateAll sends the updates together; without a BEGIN they are one
// transaction. One that does not match writes nothing, and the others do.
func updateAll(ctx context.Context, conn *pgxpool.Conn, batch []*update) error {
	var statements pgx.Batch
	statements.Queue(setPatience, milliseconds(togetherPatience))
	for _, one := range batch {
		statements.Queue(one.store.sql, one.store.args...)
	}
	results := conn.SendBatch(ctx, &statements)
	if _, err := results.Exec(); err != nil {
		_ = results.Close() // says the same
		return err
	}
	for _, one := range batch {
		one.entity, one.answer = scan(results.QueryRow(), one.put)
		if err := one.answer; err != nil && !errors.Is(err, errRefused) {
			_ = results.Close() // says the same
			return err
		}
	}
	// Only the end of the batch says that it is committed.
	return results.Close()
}
