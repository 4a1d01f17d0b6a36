package sqlite

import (
	"context"

	"zombiezen.com/go/sqlite"

	"oda"
)

// Record implements oda.Store. Its cost does not depend on the length of the
// block: a row is added, and the head is touched once per transaction.
func (s *Store) Record(ctx context.Context, add oda.Addition) (oda.Recorded, error) {
	var recorded oda.Recorded
	err := s.submit(ctx, len(add.Record), func(tx *txn) (err error) {
		recorded, err = tx.record(add)
		return err
	})
	return recorded, err
}

func (t *txn) record(add oda.Addition) (oda.Recorded, error) {
	ref := oda.Ref{Kind: oda.ExecutionBlock, ID: add.Block}
	h, err := t.head(ref)
	if err != nil {
		return oda.Recorded{}, err
	}
	if h == nil {
		return oda.Recorded{}, oda.Missing(ref)
	}
	if add.Key != nil {
		first, err := t.recordedBefore(h, *add.Key)
		if err != nil || first.Sequence != 0 {
			return first, err
		}
	}
	m := h.metadata.Touched(add.By, add.At)
	if err := t.insertRecord(h, m, h.lastSequence+1, add.Record, add.Key); err != nil {
		return oda.Recorded{}, err
	}
	h.metadata, h.dirty = m, true
	h.lastSequence++
	return oda.Recorded{Sequence: h.lastSequence, Metadata: m}, nil
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
