package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
)

// Another session may hold a head for long: someone with psql, a large write, a
// commit that waits for its standby. Requests that share a transaction must not
// suffer because one of their heads is held. So the server bounds the wait for a
// lock. Its error is certain, whereas a connection that is given up may still
// commit. The transaction is then repeated without the heads that are held.
const (
	tablePatience    = 2 * time.Second        // for a table that is locked
	togetherPatience = time.Second            // of a transaction with records of several blocks
	heldPatience     = 8 * time.Second        // for a head that is held, in several transactions: one may take twice its share, which must be less than answerTime
	putPatience      = 500 * time.Millisecond // of the first try of a store; it doubles with each try, up to heldPatience in all
)

// heldShare limits the connections that stores may take while they wait for a held
// head: one of four, and at least one. The others are left to requests whose
// entities are free.
const heldShare = 4

// setPatience bounds the wait for locks until the end of the transaction.
const setPatience = "SELECT set_config('lock_timeout', $1, true)"

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// isHeld reports whether a transaction was rolled back because another session
// holds a lock. If the wait for a lock ends just when the session gets another one, as
// where several wait for one row, PostgreSQL forgets why, and says that a user canceled
// the statement. It says so in the language of its messages, of which this is one.
func isHeld(err error) bool {
	e := rolledBack(err)
	return e != nil && (e.Code == codeHeld || e.Code == codeCanceled && strings.HasSuffix(e.Message, "due to user request"))
}

// patiently runs a statement as a transaction, in one round trip. It waits for locks
// no longer than patience. It scans each row into row and then calls each.
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
	// Only the end of the batch proves that it is committed.
	if closed := results.Close(); err == nil {
		err = closed
	}
	return err
}

// retryWhileHeld continues a store whose first try met a head that another session holds.
// Each further try waits longer and needs one of a few places, so that others find
// connections. Stores take turns at these places. So a head that becomes free is
// noticed, even if others are held for long.
func (s *Store) retryWhileHeld(ctx context.Context, deadline time.Time, err error, try func(patience time.Duration) error) error {
	for patience := 2 * putPatience; isHeld(err); patience = min(2*patience, heldPatience) {
		left := time.Until(deadline)
		if left <= 0 && patience > 2*putPatience {
			return err
		}
		left = max(left, putPatience) // a large store may have used up the time with its first try
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

// turns lets the stores of one entity run one after the other. A store takes its
// turn before it takes a connection. So this process never waits for itself at a
// head, and only one of its stores waits for a held one in the database.
type turns struct {
	mu  sync.Mutex
	all map[oda.Ref]*turn // those in use
}

type turn struct {
	taken chan struct{} // has room for one
	users int           // stores that have it or wait for it
}

// take waits for the turn of an entity. The caller must call end.
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

// notHeld returns the heads that exist and are free.
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
