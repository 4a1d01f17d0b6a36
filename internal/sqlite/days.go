package sqlite

import (
	"context"
	"iter"

	"zombiezen.com/go/sqlite"

	"oda"
	"oda/internal/engine"
)

// insertDay adds to the index of days. A row that exists stays as it is: it has
// the first sequence number, since sequence numbers grow.
const insertDay = "INSERT INTO call_days (day, entity, part, first) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"

// seen is the row of the index of days that the last record of a block is under.
// Following records of the same day do not touch the index.
type seen struct {
	day  oda.Day
	part int64 // 0: not known
}

// note adds a record that was written with that metadata to the indexes of calls.
func (t *txn) note(ref oda.Ref, h *head, m oda.Metadata, sequence int64, keys *oda.CallKeys) error {
	if keys.Notable != nil {
		if err := t.noteCall(keys.Notable.Recorded(ref.ID, sequence, m.LastModifiedBy, m.LastModifiedOn)); err != nil {
			return err
		}
	}
	now := seen{keys.Day.Or(m.LastModifiedOn), engine.PartOf(sequence)}
	if now == h.seen {
		return nil // the row exists
	}
	h.seen = now
	return t.exec(insertDay, int64(now.day), h.entity, now.part, sequence)
}

// noteAll adds records that came in a list, from the first sequence number on.
func (t *txn) noteAll(ref oda.Ref, h *head, m oda.Metadata, first int64, keys []oda.CallKeys) error {
	for i := range keys {
		if err := t.note(ref, h, m, first+int64(i), &keys[i]); err != nil {
			return err
		}
	}
	return nil
}

const selectBlocksOn = `SELECT h.identifier FROM (SELECT DISTINCT entity FROM call_days WHERE day BETWEEN ?1 AND ?2 LIMIT ?3) d
	JOIN heads h ON h.entity = d.entity`

// BlocksOn implements oda.Engine.
func (s *Store) BlocksOn(ctx context.Context, days oda.Days, most int) ([]string, error) {
	c, err := s.readers.take(ctx)
	if err != nil {
		return nil, err
	}
	defer s.readers.give(c)
	var ids []string
	err = c.query(selectBlocksOn, func(stmt *sqlite.Stmt) error {
		ids = append(ids, stmt.ColumnText(0))
		return nil
	}, int64(days.First), int64(days.Last), int64(most))
	return ids, storageError(err)
}

const selectDaysAround = `SELECT max(day) FROM call_days WHERE day <= ?1 UNION ALL SELECT min(day) FROM call_days WHERE day >= ?2`

// DaysAround implements oda.Engine.
func (s *Store) DaysAround(ctx context.Context, until, from oda.Day) (before, after *oda.Day, err error) {
	c, err := s.readers.take(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer s.readers.give(c)
	var days []*oda.Day
	err = c.query(selectDaysAround, func(stmt *sqlite.Stmt) error {
		var found *oda.Day
		if !stmt.ColumnIsNull(0) {
			day := oda.Day(stmt.ColumnInt64(0))
			found = &day
		}
		days = append(days, found)
		return nil
	}, int64(until), int64(from))
	if err != nil {
		return nil, nil, storageError(err)
	}
	return days[0], days[1], nil
}

// selectRunsOn has a row for each entry of the block in the index of days.
const selectRunsOn = `SELECT h.entity, h.last_sequence, coalesce(v.sequence_after, -1), v.runs, d.first, h.version
	FROM heads h LEFT JOIN versions v ON v.position = h.position AND v.entity = h.entity AND v.version = h.version JOIN call_days d ON d.day IN (?3, ?4, ?5) AND d.entity = h.entity
	WHERE h.kind = ?1 AND h.identifier = ?2`

// RecordsOn implements oda.Engine.
func (s *Store) RecordsOn(ctx context.Context, block string, days oda.Days, among oda.Sequences) iter.Seq2[oda.Record, error] {
	return func(yield func(oda.Record, error) bool) {
		of := engine.Version{Ref: oda.Ref{Kind: oda.ExecutionBlock, ID: block}}
		entity, runs, err := s.runsOn(ctx, &of, days)
		if err != nil {
			yield(oda.Record{}, readError(of.Ref, err))
			return
		}
		read := s.parts(ctx, entity)
		engine.Records(of, runs.Among(among), func(first, last int64) ([]engine.Numbered, error) {
			part, err := read(first, last)
			return part, readError(of.Ref, err)
		})(yield)
	}
}

// runsOn returns records of the current version that include all those of the
// days.
func (s *Store) runsOn(ctx context.Context, of *engine.Version, days oda.Days) (entity int64, runs engine.Runs, err error) {
	if err := s.readable(of.Ref); err != nil {
		return 0, nil, err
	}
	c, err := s.readers.take(ctx)
	if err != nil {
		return 0, nil, err
	}
	defer s.readers.give(c)
	var firsts []int64
	err = c.query(selectRunsOn, func(stmt *sqlite.Stmt) error {
		if firsts = append(firsts, stmt.ColumnInt64(4)); len(firsts) > 1 {
			return nil
		}
		entity, of.Number = stmt.ColumnInt64(0), stmt.ColumnInt64(5)
		var err error
		runs, err = currentRuns(*of, bytesOf(stmt, 3), stmt.ColumnInt64(2), stmt.ColumnInt64(1))
		return err
	}, int64(oda.ExecutionBlock), of.ID, int64(days.First), int64(min(days.First+1, days.Last)), int64(days.Last))
	return entity, runs.Within(engine.Parts(firsts)), err
}
