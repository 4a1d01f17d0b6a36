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
	digests, keys := add.Digests(), add.Keys()
	var receipts []oda.Receipt
	j := newJob(add.Size(), func(tx *txn) (err error) {
		receipts, err = tx.append(add, digests, keys)
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
	for i := range add.Records {
		s.running.end(add.Block, add.Records[i].Key)
	}
	return receipts, nil
}

// append looks up the keys of all records first, and then adds the records that are
// new. So it has written nothing if a key is refused.
func (t *txn) append(add oda.Append, digests []oda.Digest, keys []oda.CallKeys) ([]oda.Receipt, error) {
	ref := oda.Ref{Kind: oda.ExecutionBlock, ID: add.Block}
	h, err := t.head(ref)
	if err != nil {
		return nil, err
	}
	if h == nil {
		return nil, oda.Missing(ref)
	}
	if err := t.admit(h, add.Telescopes != nil, add.Admit); err != nil {
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
		if err := t.note(ref, h, m, h.lastSequence+1, &keys[i]); err != nil {
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

const selectRecords = `SELECT sequence, key, recorded_on, iif(length(text) <= 65536, text, NULL), digest, length(text), recorded_by FROM records
	WHERE entity = ? AND sequence BETWEEN ? AND ? ORDER BY sequence LIMIT ?`

// Records implements oda.Engine.
func (s *Store) Records(ctx context.Context, block string, after int64, limit int) (oda.RecordPage, error) {
	ref := oda.Ref{Kind: oda.ExecutionBlock, ID: block}
	if err := s.readable(ref); err != nil {
		return oda.RecordPage{}, err
	}
	entity, page, err := s.recordPage(ctx, ref, after, limit)
	if err != nil {
		return oda.RecordPage{}, readError(ref, err)
	}
	return page.Complete(ctx, func(sequence int64) ([]byte, error) {
		text, err := s.recordText(ctx, entity, sequence)
		return text, readError(ref, err)
	})
}

// recordPage reads a page without its large texts.
func (s *Store) recordPage(ctx context.Context, ref oda.Ref, after int64, limit int) (entity int64, page *engine.Page, err error) {
	c, err := s.readers.take(ctx)
	if err != nil {
		return 0, nil, err
	}
	defer s.readers.give(c)
	of := engine.Version{Ref: ref}
	entity, last, runs, err := c.runsNow(&of)
	if err == nil && entity == 0 {
		err = oda.Missing(ref)
	}
	if err != nil {
		return 0, nil, err
	}
	page, err = engine.ReadPage(of, runs.Behind(after), limit, func(run engine.Run, most int, add func(engine.Paged) error) error {
		return c.query(selectRecords, func(stmt *sqlite.Stmt) error {
			r := engine.Paged{Digest: digestOf(stmt, 4), Bytes: stmt.ColumnInt64(5)}
			r.Sequence, r.Key, r.RecordedOn, r.Text = stmt.ColumnInt64(0), stmt.ColumnText(1), oda.Instant(stmt.ColumnInt64(2)), bytesOf(stmt, 3)
			r.By = stmt.ColumnText(6)
			return add(r)
		}, entity, run.First, run.Last, int64(most))
	})
	if page != nil {
		page.Last = last
	}
	return entity, page, err
}

// runsNow returns the records of the current version of a block, and the last sequence
// number that it has given. It sets the number of the version.
func (c *conn) runsNow(of *engine.Version) (entity, last int64, runs engine.Runs, err error) {
	err = c.query(selectRuns, func(stmt *sqlite.Stmt) error {
		entity, last, of.Number = stmt.ColumnInt64(0), stmt.ColumnInt64(1), stmt.ColumnInt64(4)
		var err error
		runs, err = currentRuns(*of, bytesOf(stmt, 3), stmt.ColumnInt64(2), last)
		return err
	}, int64(of.Kind), of.ID)
	return entity, last, runs, err
}
