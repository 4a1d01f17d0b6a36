package postgres

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
)

// While there are few stores, each runs alone on a connection of its own, which is
// closed when its caller goes away. If there are more, those that have to wait
// anyway go together: several in one transaction and one round trip cost the
// database one commit. Three at once, of up to 32, store 3 to 12 % more than
// four, and these a tenth more than eight of up to 16.
const (
	storesAtOnce  = 3       // transactions at once
	togetherMost  = 32      // stores in one of them
	togetherBytes = 1 << 20 // of their texts, and less than as much of the last one
	storesWaiting = 512     // if more have to wait, the archive is overloaded
)

// together runs writes that may share transactions: updates, creations, or statuses.
type together[T sharer[T]] struct {
	*Store
	run func(ctx context.Context, writes []T, patience time.Duration) error // in one transaction

	mu      sync.Mutex // guards what follows
	running int
	waiting []waitingWrite[T]
}

// sharer is a write of one entity that may share a transaction with others.
type sharer[T any] interface {
	ref() oda.Ref
	size() int           // bytes of its text
	time() time.Duration // that it may take
	joins(other T) bool  // whether it can share a statement with another
	refusal() error      // why nothing was written; nil if it was
}

// waitingWrite is a write that is waiting for its answer.
type waitingWrite[T any] struct {
	write T
	ctx   context.Context
	done  chan error
}

// enter reports whether the write may run now. If not, it is added to those that
// wait, or the error says that there are too many.
func (t *together[T]) enter(one waitingWrite[T]) (now bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.running < storesAtOnce:
		t.running++
		return true, nil
	case len(t.waiting) == storesWaiting:
		return false, oda.Errorf(oda.Overloaded, "Too many requests to store are waiting. Nothing was stored by this request. Try again shortly.")
	}
	t.waiting = append(t.waiting, one)
	return false, nil
}

// leave ends a transaction and returns the writes that take its place: waiting ones
// that can share one, the oldest first, without those whose callers have gone.
func (t *together[T]) leave() []waitingWrite[T] {
	t.mu.Lock()
	defer t.mu.Unlock()
	var batch []waitingWrite[T]
	size := 0
	t.waiting = slices.DeleteFunc(t.waiting, func(one waitingWrite[T]) bool {
		if err := one.ctx.Err(); err != nil {
			one.done <- err
			return true
		}
		if len(batch) == togetherMost || size >= togetherBytes || len(batch) > 0 && !one.write.joins(batch[0].write) {
			return false
		}
		batch = append(batch, one)
		size += one.write.size()
		return true
	})
	if len(batch) == 0 {
		t.running--
	}
	return batch
}

func (st *store) ref() oda.Ref   { return st.put.Ref }
func (st *store) size() int      { return len(st.put.Body.Text) }
func (st *store) refusal() error { return st.answer }

// joins implements sharer: stores share a statement that are of one kind and have the same.
// A long text comes alone, so that PostgreSQL has room for those of a statement in memory.
func (st *store) joins(other *store) bool {
	return st.put.Kind == other.put.Kind && st.sql == other.sql && (st.put.Telescopes == nil) == (other.put.Telescopes == nil) &&
		st.size() < togetherBytes
}

// do writes one, now or together with others. It does not wait long for a head that
// another session holds.
func (t *together[T]) do(ctx context.Context, write T) error {
	one := waitingWrite[T]{ctx: ctx, write: write, done: make(chan error, 1)}
	now, err := t.enter(one)
	if err != nil {
		return err
	}
	if now {
		defer t.passOn() // even if this panics
		return t.alone(ctx, write, putPatience)
	}
	select {
	case err := <-one.done:
		return err
	case <-ctx.Done():
		// It may still be stored, like any write whose caller goes away.
		return ctx.Err()
	}
}

// alone writes one in a transaction of its own. It returns an error if nothing was written.
func (t *together[T]) alone(ctx context.Context, write T, patience time.Duration) error {
	if err := t.run(ctx, []T{write}, patience); err != nil {
		return err
	}
	return write.refusal()
}

// passOn gives the place of a write that ran alone to waiting ones.
func (t *together[T]) passOn() {
	if batch := t.leave(); batch != nil {
		go t.runAll(batch)
	}
}

// runAll runs a batch, and then those that have to wait meanwhile, until none waits.
func (t *together[T]) runAll(batch []waitingWrite[T]) {
	for ; batch != nil; batch = t.leave() {
		t.runBatch(context.Background(), batch)
	}
}

// runBatch runs the writes in one transaction. If that is rolled back, each gets a
// transaction of its own, except those whose head is held: their callers wait for
// it alone. A head that does not exist yet may be held too, so it counts as held.
func (t *together[T]) runBatch(ctx context.Context, batch []waitingWrite[T]) {
	writes, refs := make([]T, len(batch)), make([]oda.Ref, len(batch))
	for i, one := range batch {
		writes[i], refs[i] = one.write, one.write.ref()
	}
	ctx, cancel := context.WithTimeout(ctx, 2*writeTime(writes))
	defer cancel()
	err := t.run(ctx, writes, putPatience)
	if rolledBack(err) == nil {
		for _, one := range batch {
			if err != nil {
				one.done <- err
			} else {
				one.done <- one.write.refusal()
			}
		}
		return
	}
	var notHeld map[oda.Ref]bool
	if isHeld(err) {
		notHeld, _ = t.notHeld(ctx, refs) // an error leaves all to their callers
	}
	for _, one := range batch {
		if isHeld(err) && !notHeld[one.write.ref()] {
			one.done <- err
		} else {
			one.done <- t.alone(ctx, one.write, putPatience)
		}
	}
}

// storeTogether runs the statements in one round trip, and so in one transaction. A
// statement that does not match writes nothing; the others do.
func (s *Store) storeTogether(ctx context.Context, stores []*store, patience time.Duration) error {
	ordered := inOrder(stores)
	return tryWrites(ctx, s, stores, func(ctx context.Context, conn *pgxpool.Conn) error {
		return runAll(conn.SendBatch(ctx, queued(ordered, patience)), ordered)
	})
}

// storeOne stores one entity. The first try may be together with others, if its
// statement can share a transaction.
func (s *Store) storeOne(ctx context.Context, st *store, deadline time.Time) error {
	try := func(patience time.Duration) error { return s.updates.alone(ctx, st, patience) } // whatever its statement is
	var err error
	switch st.sql {
	case updateOnly:
		err = s.updates.do(ctx, st)
	case newOnly:
		err = s.creations.do(ctx, st)
	default:
		err = try(putPatience)
	}
	return s.retryWhileHeld(ctx, deadline, err, try)
}

// createTogether is storeTogether for new entities of one kind, in one statement.
func (s *Store) createTogether(ctx context.Context, stores []*store, patience time.Duration) error {
	if len(stores) == 1 {
		return s.storeTogether(ctx, stores, patience)
	}
	ordered := inOrder(stores)
	first := ordered[0].args
	args := []any{
		first[0], column[string](ordered, 1), column[string](ordered, 2), column[int64](ordered, 3), first[4],
		column[bool](ordered, 5), column[string](ordered, 6), column[[]byte](ordered, 7), column[[]byte](ordered, 8), column[[]byte](ordered, 9),
		column[*string](ordered, 10), column[int64](ordered, 11), column[[]byte](ordered, 12), column[string](ordered, 13),
	}
	var nth int
	return s.storeAll(ctx, ordered, patience, newSeveral, args, []any{&nth}, func() (*store, oda.Metadata) {
		return ordered[nth], ordered[nth].put.First()
	})
}

// updateTogether is storeTogether for updates of one kind, in one statement unless their
// callers are bound to telescopes.
func (s *Store) updateTogether(ctx context.Context, stores []*store, patience time.Duration) error {
	if len(stores) == 1 || stores[0].put.Telescopes != nil {
		return s.storeTogether(ctx, stores, patience)
	}
	ordered := inOrder(stores)
	args := []any{
		ordered[0].args[0], column[string](ordered, 1), column[string](ordered, 2), column[int64](ordered, 3),
		column[int64](ordered, 4), column[string](ordered, 5), column[int64](ordered, 6), column[string](ordered, 7), column[int64](ordered, 8),
		column[bool](ordered, 9), column[*int64](ordered, 10), column[*string](ordered, 11), column[*string](ordered, 12),
		column[[]byte](ordered, 13), column[int64](ordered, 14), column[[]byte](ordered, 15),
	}
	var nth int
	var m oda.Metadata
	row := []any{&nth, &m.Version, &m.CreatedBy, &m.CreatedOn, &m.LastModifiedBy, &m.LastModifiedOn}
	return s.storeAll(ctx, ordered, patience, updateSeveral, args, row, func() (*store, oda.Metadata) { return ordered[nth], m })
}

// storeAll runs one statement for several stores. It scans a row for each that does
// match, and asks which it is.
func (s *Store) storeAll(ctx context.Context, stores []*store, patience time.Duration, sql string, args, row []any, which func() (*store, oda.Metadata)) error {
	return tryWrites(ctx, s, stores, func(ctx context.Context, conn *pgxpool.Conn) error {
		for _, st := range stores {
			st.answer = errRefused
		}
		return patiently(ctx, conn.Conn(), patience, sql, args, row, func() error {
			st, m := which()
			st.entity, st.answer = &stored{Entity: oda.Entity{Ref: st.put.Ref, Metadata: m, Body: st.put.Body}}, nil
			return nil
		})
	})
}

// column returns one parameter of all stores.
func column[T any](stores []*store, nth int) []T {
	all := make([]T, len(stores))
	for i, st := range stores {
		all[i] = st.args[nth].(T)
	}
	return all
}

// inOrder returns the stores in the order of their identifiers. All transactions
// lock heads in that order, so no two wait for each other.
func inOrder(stores []*store) []*store {
	return slices.SortedStableFunc(slices.Values(stores), func(a, b *store) int { return a.put.Ref.Compare(b.put.Ref) })
}

// queued returns a batch with the stores. None waits longer than patience for a
// head.
func queued(stores []*store, patience time.Duration) *pgx.Batch {
	var batch pgx.Batch
	batch.Queue(setPatience, milliseconds(patience))
	for _, st := range stores {
		batch.Queue(st.sql, st.args...)
	}
	return &batch
}

// runAll reads the results of the stores. One that did not match has the answer
// errRefused.
func runAll(results pgx.BatchResults, stores []*store) error {
	if _, err := results.Exec(); err != nil {
		_ = results.Close() // returns the same error
		return err
	}
	for _, st := range stores {
		st.entity, st.answer = st.scan(results.QueryRow())
		if err := st.answer; err != nil && !errors.Is(err, errRefused) {
			_ = results.Close() // returns the same error
			return err
		}
	}
	// Only the end of the batch proves that it is committed.
	return results.Close()
}
