package postgres

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
)

// Somebody may hold a head for long: a person with a session of psql, a large
// write, a commit that waits for its standby. Those who share a transaction
// must not suffer for one of them. So the server itself bounds the wait for a
// lock: its error is certain, whereas a connection that is given up may still
// commit. The transaction is then done again without those whose head is held.
const (
	togetherPatience = time.Second            // of a transaction that records share
	alonePatience    = 8 * time.Second        // of one that is sent because its head is held; shorter than answerTime
	putPatience      = 500 * time.Millisecond // of a store at first; twice as long each time after that, until alonePatience is over
)

// heldShare is the part of the pool that may be taken by stores that wait for a
// head that was held when they came: one connection of so many, and at least
// one. The others are left to requests whose entities are free.
const heldShare = 4

// setPatience bounds the wait for locks until the end of the transaction.
const setPatience = "SELECT set_config('lock_timeout', $1, true)"

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// isHeld says that a transaction was undone because somebody holds a lock.
func isHeld(err error) bool {
	e := rolledBack(err)
	return e != nil && e.Code == codeHeld
}

// patiently runs a statement as a transaction that waits for locks no longer
// than that, in one round trip. Each is called for every row, which is read
// into row before.
func patiently(ctx context.Context, conn *pgx.Conn, patience time.Duration, sql string, args, row []any, each func() error) error {
	var batch pgx.Batch
	batch.Queue(setPatience, milliseconds(patience))
	batch.Queue(sql, args...)
	results := conn.SendBatch(ctx, &batch)
	_, err := results.Exec()
	if err == nil {
		var rows pgx.Rows
		if rows, err = results.Query(); err == nil {
			_, err = pgx.ForEachRow(rows, row, each)
		}
	}
	// Only the end of the batch says that it is committed.
	if closed := results.Close(); err == nil {
		err = closed
	}
	return err
}

// insist goes on with a store whose first try met a head that somebody holds.
// Each further try has more patience and one of a few places, so that others
// find connections. The places go round: a head that is let go is noticed, however
// long those are held that others wait for.
func (s *Store) insist(ctx context.Context, deadline time.Time, err error, try func(patience time.Duration) error) error {
	for patience := 2 * putPatience; isHeld(err); patience *= 2 {
		left := time.Until(deadline)
		if left <= 0 && patience > 2*putPatience {
			return err
		}
		left = max(left, putPatience) // the first try of a large store may have taken long
		giveUp := time.NewTimer(left)
		select {
		case s.held <- struct{}{}:
		case <-giveUp.C:
			return err
		case <-ctx.Done():
			return err
		}
		err = func() error {
			defer func() { giveUp.Stop(); <-s.held }()
			return try(min(patience, left))
		}()
	}
	return err
}

// turns are taken by stores of one entity, one after the other, before they take
// a connection. So this process never waits for itself at a head, and however
// many want one that somebody holds, one of them waits at the database.
type turns struct {
	mu  sync.Mutex
	all map[oda.Ref]*turn // those that are taken
}

type turn struct {
	taken chan struct{} // has room for one
	users int           // who has it, and who waits for it
}

// take waits for the turn of the entity. The caller ends it.
func (t *turns) take(ctx context.Context, ref oda.Ref, deadline time.Time) (end func(), err error) {
	one := t.join(ref)
	end = func() { <-one.taken; t.leave(ref) }
	select {
	case one.taken <- struct{}{}:
		return end, nil
	default:
	}
	ctx, cancel := context.WithDeadlineCause(ctx, deadline, errHeld)
	defer cancel()
	select {
	case one.taken <- struct{}{}:
		return end, nil
	case <-ctx.Done():
		t.leave(ref)
		return nil, fmt.Errorf("%w: %w", errNotTried, context.Cause(ctx))
	}
}

func (t *turns) join(ref oda.Ref) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.all[ref]
	if one == nil {
		if t.all == nil {
			t.all = make(map[oda.Ref]*turn)
		}
		one = &turn{taken: make(chan struct{}, 1)}
		t.all[ref] = one
	}
	one.users++
	return one
}

func (t *turns) leave(ref oda.Ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all[ref].users--; t.all[ref].users == 0 {
		delete(t.all, ref)
	}
}

// notHeld tells which of the heads are there and free.
func (s *Store) notHeld(ctx context.Context, refs []oda.Ref) (map[oda.Ref]bool, error) {
	kinds, ids := make([]int16, len(refs)), make([]string, len(refs))
	for i, ref := range refs {
		kinds[i], ids[i] = int16(ref.Kind), ref.ID
	}
	free := make(map[oda.Ref]bool, len(refs))
	err := s.with(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, `SELECT h.kind, h.identifier
			FROM unnest($1::smallint[], $2::text[]) AS r (kind, identifier) JOIN heads h USING (kind, identifier)
			FOR NO KEY UPDATE OF h SKIP LOCKED`, kinds, ids)
		if err != nil {
			return err
		}
		var kind int16
		var id string
		_, err = pgx.ForEachRow(rows, []any{&kind, &id}, func() error {
			free[oda.Ref{Kind: oda.Kind(kind), ID: id}] = true
			return nil
		})
		return err
	})
	return free, err
}
