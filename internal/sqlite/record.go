package sqlite

import (
	"context"
	"errors"

	"zombiezen.com/go/sqlite"

	"oda"
)

// Record implements oda.Store. Its cost does not depend on the length of the
// block: rows are added, and the head is touched once per transaction.
func (s *Store) Record(ctx context.Context, adds []oda.Addition) ([]oda.Recorded, error) {
	size := 0
	for _, add := range adds {
		size += len(add.Record)
	}
	var recorded []oda.Recorded
	err := s.submit(ctx, size, func(tx *txn) (err error) {
		recorded, err = tx.record(adds)
		return err
	})
	if err != nil {
		return nil, err
	}
	return recorded, nil
}

// record finds the records that are known, and then adds the others: a refusal
// must have written nothing.
func (t *txn) record(adds []oda.Addition) ([]oda.Recorded, error) {
	ref := oda.Ref{Kind: oda.ExecutionBlock, ID: adds[0].Block}
	h, err := t.head(ref)
	if err != nil {
		return nil, err
	}
	if h == nil {
		return nil, oda.Missing(ref)
	}
	recorded := make([]oda.Recorded, len(adds))
	for i, add := range adds {
		if add.Key == nil {
			continue
		}
		if recorded[i], err = t.recordedBefore(h, *add.Key); err != nil {
			return nil, err
		}
	}
	for i, add := range adds {
		if recorded[i].Sequence != 0 {
			continue
		}
		m := h.metadata.Touched(add.By, add.At)
		if err := t.insertRecord(h, m, h.lastSequence+1, add.Record, add.Key); err != nil {
			return nil, err
		}
		h.metadata, h.dirty = m, true
		h.lastSequence++
		recorded[i] = oda.Recorded{Sequence: h.lastSequence, Metadata: m}
	}
	return recorded, nil
}

// recordedBefore gives the answer to the request that used the key first; its
// sequence is 0 where there was none.
func (t *txn) recordedBefore(h *head, key oda.Key) (oda.Recorded, error) {
	var r oda.Recorded
	var digest []byte
	err := t.query(`SELECT sequence, version, recorded_by, recorded_on, digest FROM records WHERE entity = ? AND key = ?`,
		func(stmt *sqlite.Stmt) error {
			r.Sequence = stmt.ColumnInt64(0)
			r.Metadata = h.metadata
			r.Metadata.Version = stmt.ColumnInt64(1)
			r.Metadata.LastModifiedBy = stmt.ColumnText(2)
			r.Metadata.LastModifiedOn = oda.Instant(stmt.ColumnInt64(3))
			digest = bytesOf(stmt, 4)
			return nil
		}, h.entity, key.Value)
	if err != nil || r.Sequence == 0 {
		return oda.Recorded{}, err
	}
	if err := key.Check(digest); err != nil {
		return oda.Recorded{}, err
	}
	return r, nil
}

const selectRuns = `SELECT h.entity, h.last_sequence, v.sequence_after, v.runs
	FROM heads h JOIN versions v ON v.position = h.position WHERE h.kind = ? AND h.identifier = ?`

const selectRecordings = `SELECT sequence, key, recorded_on, text FROM records
	WHERE entity = ? AND sequence BETWEEN ? AND ? ORDER BY sequence LIMIT ?`

// Recordings implements oda.Store.
func (s *Store) Recordings(ctx context.Context, block string, after int64, limit int) ([]oda.Recording, bool, error) {
	if err := s.readable(oda.Ref{Kind: oda.ExecutionBlock, ID: block}); err != nil {
		return nil, false, err
	}
	c, err := s.readers.take(ctx)
	if err != nil {
		return nil, false, err
	}
	defer s.readers.give(c)
	entity, runs := int64(0), oda.Runs(nil)
	err = c.query(selectRuns, func(stmt *sqlite.Stmt) (err error) {
		entity = stmt.ColumnInt64(0)
		runs, err = currentRuns(bytesOf(stmt, 3), stmt.ColumnInt64(2), stmt.ColumnInt64(1))
		return err
	}, int64(oda.ExecutionBlock), block)
	if err != nil {
		return nil, false, storageError(err)
	}
	if entity == 0 {
		return nil, false, oda.Missing(oda.Ref{Kind: oda.ExecutionBlock, ID: block})
	}
	var page oda.RecordingsPage
	for _, run := range runs.Behind(after) {
		err := c.query(selectRecordings, func(stmt *sqlite.Stmt) error {
			return page.Add(oda.Recording{
				Sequence: stmt.ColumnInt64(0), Key: stmt.ColumnText(1),
				RecordedOn: oda.Instant(stmt.ColumnInt64(2)), Record: bytesOf(stmt, 3),
			}, limit)
		}, entity, run.First, run.Last, int64(limit+1))
		if errors.Is(err, oda.ErrPageFull) {
			break
		}
		if err != nil {
			return nil, false, storageError(err)
		}
	}
	return page.Recordings, page.More, nil
}
