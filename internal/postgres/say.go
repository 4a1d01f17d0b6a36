package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
	"oda/internal/engine"
)

// A status follows from what is stored, and the rule is in Go. So a transaction has two
// round trips: it locks heads and reads, and then it writes and commits. Storing and
// recording meet it at the heads. What it reads comes in a statement of its own after the
// locks: the snapshot of the one that waits for them may be older than what it waits for.
//
// A transaction that has locked a head is a write, even if it then finds that a key is
// known and adds nothing. So its commit waits for the synchronous standby, which has the
// status when a retry is answered, even if the first request did not wait for it.
const (
	beginSaying = "BEGIN ISOLATION LEVEL READ COMMITTED" // whatever the role has as its default

	// The statements are for several entities, or for one, which is the usual case while few
	// say anything. Without arrays these take little more than half of the time.
	lockHead         = lockBegin + oneSayable + lockRest
	lockHeads        = lockBegin + allSayable + lockRest
	selectSayable    = sayableBegin + oneSayable + sayableRest
	selectAllSayable = sayableBegin + allSayable + sayableRest
	addStatus        = `WITH stood AS (` + newStanding + `VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)` + standAs + `), said AS (` +
		newStatus + `VALUES ($10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24))` + logStatuses
	addStatuses = `WITH stood AS (` + addStandings + `), said AS (` +
		newStatus + `SELECT * FROM unnest($10::smallint[], $11::text[], $12::bigint[], $13::bigint[], $14::text[], $15::smallint[], $16::text[], $17::bigint[], $18::text[],
			$19::boolean[], $20::text[], $21::bigint[], $22::text[], $23::bytea[], $24::bytea[]))` + logStatuses
	addStandings = newStanding + `SELECT * FROM unnest($1::smallint[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::smallint[],
			$7::bigint[], $8::bigint[], $9::bigint[])` + standAs

	oneSayable = `(SELECT 1 AS nth, $1::smallint AS kind, $2::text AS identifier, $3::text AS key) p`
	allSayable = `unnest($1::smallint[], $2::text[], $3::text[]) WITH ORDINALITY AS p (kind, identifier, key, nth)`

	lockBegin = `SELECT FROM `
	lockRest  = ` CROSS JOIN LATERAL (SELECT FROM heads WHERE kind = p.kind AND identifier = p.identifier FOR NO KEY UPDATE) h`

	// What the next statuses follow from, and the statuses that the keys have added. A key is
	// looked for in all kinds (schema/0001_archive.sql).
	sayableBegin = `SELECT p.nth - 1, h.version, coalesce(h.telescope, ''), h.created_by, h.created_on, ` + standingColumns + `, ` + statusColumns + ` FROM `
	sayableRest  = `
		CROSS JOIN LATERAL (SELECT * FROM heads WHERE kind = p.kind AND identifier = p.identifier OFFSET 0) h` + joinStanding + `
		LEFT JOIN LATERAL (SELECT * FROM statuses WHERE identifier = p.identifier AND key = p.key OFFSET 0) e ON e.kind = p.kind`

	newStanding = `INSERT INTO standings AS s (kind, identifier, created_on, status, folded, class, sequence, at, last) `
	standAs     = ` ON CONFLICT (kind, identifier) DO UPDATE SET status = excluded.status, folded = excluded.folded, class = excluded.class,
			sequence = excluded.sequence, at = excluded.at, last = excluded.last`
	newStatus = `INSERT INTO statuses (kind, identifier, sequence, version, status, class, reason, at, previous, current, said_by, said_on, key, key_digest, digest) `

	// logStatuses adds the row for the log of changes, with five places for each status.
	logStatuses = `
		` + newChanges + `SELECT ` + nextNumber + ` AS number, cardinality($26::bigint[]) / 5 AS width, $25::text[] AS names, $26::bigint[] AS places) c`
)

// statusNames lists the columns of statusValues.
var statusNames = []string{
	"kind", "identifier", "sequence", "version", "status", "class", "reason", "at", "previous", "current", "said_by", "said_on", "key", "key_digest", "digest",
}

// statusValues returns the row of a status, as it is written.
func statusValues(e *oda.Status, key *oda.Key) []any {
	row := engine.StatusRow{Place: versionPlace(int16(e.Kind), e.ID), Status: *e, Key: key}
	digest := row.Digest()
	var value *string
	var keyDigest []byte
	if key != nil {
		value, keyDigest = &key.Value, key.Digest[:]
	}
	return []any{
		int16(e.Kind), e.ID, e.Sequence, e.Version, e.Text, int16(e.Class), textOrNull(e.Reason), int64(e.At), textOrNull(e.Previous), e.Current,
		e.By, int64(e.On), value, keyDigest, digest[:],
	}
}

// standingValues returns the row of a standing, as it is written.
func standingValues(ref oda.Ref, createdOn oda.Instant, s oda.Standing) []any {
	return []any{int16(ref.Kind), ref.ID, int64(createdOn), s.Text, oda.FoldStatus(s.Text), int16(s.Class), s.Sequence, int64(s.At), s.Last}
}

// standingArrays returns rows of standingValues as parameters of addStandings.
func standingArrays(rows [][]any) []any {
	return []any{
		columnOf[int16](rows, 0), columnOf[string](rows, 1), columnOf[int64](rows, 2), columnOf[string](rows, 3), columnOf[string](rows, 4),
		columnOf[int16](rows, 5), columnOf[int64](rows, 6), columnOf[int64](rows, 7), columnOf[int64](rows, 8),
	}
}

// statusArrays returns rows of statusValues as parameters of addStatuses.
func statusArrays(rows [][]any) []any {
	return []any{
		columnOf[int16](rows, 0), columnOf[string](rows, 1), columnOf[int64](rows, 2), columnOf[int64](rows, 3), columnOf[string](rows, 4),
		columnOf[int16](rows, 5), columnOf[*string](rows, 6), columnOf[int64](rows, 7), columnOf[*string](rows, 8), columnOf[bool](rows, 9),
		columnOf[string](rows, 10), columnOf[int64](rows, 11), columnOf[*string](rows, 12), columnOf[[]byte](rows, 13), columnOf[[]byte](rows, 14),
	}
}

// saying is a status to be said, and its result.
type saying struct {
	oda.NewStatus
	entry  *oda.Status
	answer error
}

func (w *saying) ref() oda.Ref        { return w.Ref }
func (w *saying) size() int           { return len(w.Text) + len(w.Reason) }
func (w *saying) time() time.Duration { return timePerEntity }
func (w *saying) joins(*saying) bool  { return true }
func (w *saying) refusal() error      { return w.answer }

// Say implements oda.Engine. Like stores, statuses go together if there are many.
func (s *Store) Say(ctx context.Context, say oda.NewStatus) (*oda.Status, error) {
	w := &saying{NewStatus: say}
	deadline := time.Now().Add(heldPatience)
	trying, cancel := context.WithTimeout(ctx, writeTime([]*saying{w})+heldPatience) // for all tries
	defer cancel()
	end, err := s.turns.take(trying, say.Ref, deadline)
	if err == nil {
		defer end()
		err = s.retryWhileHeld(trying, deadline, s.statuses.do(trying, w), func(patience time.Duration) error {
			return s.statuses.alone(trying, w, patience)
		})
	}
	if err != nil {
		return nil, s.writeError(ctx, err)
	}
	return w.entry, nil
}

// sayTogether says statuses of different entities in one transaction. One that is refused
// adds nothing; the others do.
func (s *Store) sayTogether(ctx context.Context, says []*saying, patience time.Duration) error {
	ordered := slices.SortedStableFunc(slices.Values(says), func(a, b *saying) int { return a.Ref.Compare(b.Ref) })
	return tryWrites(ctx, s, says, func(ctx context.Context, conn *pgxpool.Conn) error {
		b, err := decide(ctx, conn, ordered, patience)
		if err == nil {
			err = b.write(ctx, conn)
		}
		if err != nil && !conn.Conn().IsClosed() {
			_, _ = conn.Exec(ctx, "ROLLBACK") // the pool drops a connection that is still in a transaction
		}
		return err
	})
}

// said is what a transaction writes.
type said struct {
	statuses, standings [][]any
	log                 logRow
	end                 string // of the transaction
}

// decide begins a transaction, locks the heads, and decides what is to be written. Until
// it returns nothing was, so it may be tried again.
func decide(ctx context.Context, conn *pgxpool.Conn, says []*saying, patience time.Duration) (*said, error) {
	kinds, ids, keys := make([]int16, len(says)), make([]string, len(says)), make([]*string, len(says))
	for i, w := range says {
		kinds[i], ids[i] = int16(w.Kind), w.ID
		if w.Key != nil {
			keys[i] = &w.Key.Value
		}
		w.entry, w.answer = nil, oda.Missing(w.Ref)
	}
	lock, read, args := lockHeads, selectAllSayable, []any{kinds, ids, keys}
	if len(says) == 1 {
		lock, read, args = lockHead, selectSayable, []any{kinds[0], ids[0], keys[0]}
	}
	b := &said{end: "ROLLBACK"}
	var batch pgx.Batch
	batch.Queue(beginSaying)
	batch.Queue(setPatience, milliseconds(patience))
	batch.Queue(lock, args...)
	batch.Queue(read, args...).Query(func(rows pgx.Rows) error {
		var nth int
		var version int64
		var telescope, createdBy string
		var createdOn oda.Instant
		var now oda.Standing
		var before statusRow
		row := append(append([]any{&nth, &version, &telescope, &createdBy, &createdOn}, standingIn(&now)...), before.columns()...)
		_, err := pgx.ForEachRow(rows, row, func() error {
			w := says[nth]
			if w.answer = w.Admit(telescope, createdBy); w.answer == nil {
				b.add(w, version, createdOn, now, &before)
			}
			return nil
		})
		return err
	})
	if err := conn.SendBatch(ctx, &batch).Close(); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotBegun, err)
	}
	return b, nil
}

// add decides about one status. Before is the one that its key has already added, if there
// is one.
func (b *said) add(w *saying, version int64, createdOn oda.Instant, now oda.Standing, before *statusRow) {
	if before.Sequence != 0 {
		var row *engine.StatusRow
		if row, w.answer = before.checked(); w.answer == nil {
			w.entry, w.answer = &row.Status, w.Key.Check(before.keyDigest[:])
		}
	} else if w.entry, w.answer = w.Entry(version, now); w.answer == nil {
		b.statuses = append(b.statuses, statusValues(w.entry, w.Key))
		b.standings = append(b.standings, standingValues(w.Ref, createdOn, now.After(w.entry)))
		b.log.said(w.entry)
	}
	if w.answer == nil {
		b.end = "COMMIT"
	}
}

// write writes what was decided, and ends the transaction.
func (b *said) write(ctx context.Context, conn *pgxpool.Conn) error {
	var batch pgx.Batch
	log := []any{b.log.names, b.log.places}
	switch len(b.statuses) {
	case 0:
	case 1:
		batch.Queue(addStatus, slices.Concat(b.standings[0], b.statuses[0], log)...)
	default:
		batch.Queue(addStatuses, slices.Concat(standingArrays(b.standings), statusArrays(b.statuses), log)...)
	}
	batch.Queue(b.end)
	return conn.SendBatch(ctx, &batch).Close()
}
