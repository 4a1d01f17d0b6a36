package sqlite

import (
	"context"

	"zombiezen.com/go/sqlite"

	"oda"
	"oda/internal/engine"
)

// Append implements oda.Engine. Its cost does not depend on the length of the
// block: rows are added, and the head is touched once per transaction.
func (s *Store) Append(ctx context.Context, add oda.Append) ([]oda.Receipt, error) {
	digests, days := add.Digests(), add.Days()
	var receipts []oda.Receipt
	j := newJob(add.Size(), func(tx *txn) (err error) {
		receipts, err = tx.append(add, digests, days)
		return err
	})
	if !s.commitNow(j) {
		if err := s.queue.Put(ctx, j); err != nil {
			return nil, err
		}
	}
	if err := j.wait(); err != nil {
		return nil, err
	}
	return receipts, nil
}

// append looks up the keys of all records first, and then adds the records that are
// new. So it has written nothing if a key is refused.
func (t *txn) append(add oda.Append, digests []oda.Digest, days []oda.Day) ([]oda.Receipt, error) {
	ref := oda.Ref{Kind: oda.ExecutionBlock, ID: add.Block}
	h, err := t.head(ref)
	if err != nil {
		return nil, err
	}
	if h == nil {
		return nil, oda.Missing(ref)
	}
	if err := t.admit(h, add.Telescopes, add.Admit); err != nil {
		return nil, err
	}
	receipts := make([]oda.Receipt, len(add.Records))
	for i, r := range add.Records {
		if r.Key == "" {
			continue
		}
		var first []byte
		if receipts[i], first, err = t.recordedBefore(h, r.Key); err != nil {
			return nil, err
		}
		if receipts[i].Sequence == 0 {
			continue
		}
		if err := add.CheckKey(i, digests[i], first); err != nil {
			return nil, err
		}
	}
	for i, r := range add.Records {
		if receipts[i].Sequence != 0 {
			continue
		}
		m := h.metadata.Touched(add.By, add.At)
		if err := t.insertRecord(h, m, h.lastSequence+1, r, &digests[i]); err != nil {
			return nil, err
		}
		if err := t.note(h, h.lastSequence+1, days[i].Or(m.LastModifiedOn)); err != nil {
			return nil, err
		}
		h.metadata, h.dirty = m, true
		h.lastSequence++
		t.changes = join(t.changes, oda.Change{
			Position: oda.Position(t.position), Ref: ref, Version: m.Version, FirstSequence: h.lastSequence, LastSequence: h.lastSequence,
			By: m.LastModifiedBy, On: m.LastModifiedOn,
		})
		receipts[i] = oda.Receipt{Sequence: h.lastSequence, Metadata: m}
	}
	return receipts, nil
}

// recordedBefore returns the receipt and the digest of the record that used the key
// first. Its sequence is 0 if there is none.
func (t *txn) recordedBefore(h *head, key string) (r oda.Receipt, digest []byte, err error) {
	err = t.query(`SELECT sequence, version, recorded_by, recorded_on, digest FROM records WHERE entity = ? AND key = ?`,
		func(stmt *sqlite.Stmt) error {
			r.Sequence = stmt.ColumnInt64(0)
			r.Metadata = h.metadata
			r.Metadata.Version = stmt.ColumnInt64(1)
			r.Metadata.LastModifiedBy = stmt.ColumnText(2)
			r.Metadata.LastModifiedOn = oda.Instant(stmt.ColumnInt64(3))
			digest = bytesOf(stmt, 4)
			return nil
		}, h.entity, key)
	return r, digest, err
}

const selectRuns = `SELECT h.entity, h.last_sequence, coalesce(v.sequence_after, -1), v.runs, h.version
	FROM heads h LEFT JOIN versions v ON v.position = h.position AND v.entity = h.entity AND v.version = h.version WHERE h.kind = ? AND h.identifier = ?`

const selectRecords = `SELECT sequence, key, recorded_on, text, digest FROM records
	WHERE entity = ? AND sequence BETWEEN ? AND ? ORDER BY sequence LIMIT ?`

// Records implements oda.Engine.
func (s *Store) Records(ctx context.Context, block string, after int64, limit int) (oda.RecordPage, error) {
	of := engine.Version{Ref: oda.Ref{Kind: oda.ExecutionBlock, ID: block}}
	if err := s.readable(of.Ref); err != nil {
		return oda.RecordPage{}, err
	}
	c, err := s.readers.take(ctx)
	if err != nil {
		return oda.RecordPage{}, err
	}
	defer s.readers.give(c)
	entity, last, runs := int64(0), int64(0), engine.Runs(nil)
	err = c.query(selectRuns, func(stmt *sqlite.Stmt) error {
		entity, last, of.Number = stmt.ColumnInt64(0), stmt.ColumnInt64(1), stmt.ColumnInt64(4)
		var err error
		runs, err = currentRuns(of, bytesOf(stmt, 3), stmt.ColumnInt64(2), last)
		return err
	}, int64(oda.ExecutionBlock), block)
	if err != nil {
		return oda.RecordPage{}, readError(of.Ref, err)
	}
	if entity == 0 {
		return oda.RecordPage{}, oda.Missing(of.Ref)
	}
	page, err := engine.Page(of, runs.Behind(after), limit, func(run engine.Run, most int, add func(oda.Record, oda.Digest) error) error {
		return c.query(selectRecords, func(stmt *sqlite.Stmt) error {
			return add(oda.Record{
				Sequence: stmt.ColumnInt64(0), Key: stmt.ColumnText(1),
				RecordedOn: oda.Instant(stmt.ColumnInt64(2)), Text: bytesOf(stmt, 3),
			}, digestOf(stmt, 4))
		}, entity, run.First, run.Last, int64(most))
	})
	page.Last = last
	return page, readError(of.Ref, err)
}
