package postgres

import (
	"context"
	"strconv"
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
	togetherPatience = 2 * time.Second // of a transaction that several share; longer than deadlock_timeout
	alonePatience    = 8 * time.Second // of one that is sent because its head is held; shorter than answerTime
)

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
