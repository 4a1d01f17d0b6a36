package sqlite

import (
	"context"

	"zombiezen.com/go/sqlite"

	"oda"
	"oda/internal/engine"
)

// Load implements oda.Mover. All entries are one job of the writer.
func (s *Store) Load(ctx context.Context, entries []oda.LogEntry) (answers []error, err error) {
	keys := make([][]oda.CallKeys, len(entries))
	for i := range entries {
		keys[i] = engine.KeysOf(&entries[i])
	}
	answers = make([]error, len(entries))
	// The size ends the batch: nobody else is waiting for an import.
	err = s.submit(ctx, batchBytes, func(tx *txn) error {
		clear(answers)
		for i := range entries {
			answers[i] = tx.load(&entries[i], keys[i])
			if tx.fault != nil {
				return tx.fault
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range entries {
		if entries[i].Recorded() && answers[i] == nil {
			s.running.end(entries[i].ID, entries[i].Key)
		}
	}
	return answers, nil
}

// Sync implements oda.Mover. Every commit is durable.
func (s *Store) Sync(context.Context) error { return nil }

// load adds an entry, and returns the answer to it.
func (t *txn) load(e *oda.LogEntry, keys []oda.CallKeys) error {
	h, err := t.head(e.Ref)
	if err != nil {
		return err
	}
	var state *oda.LogState
	if h != nil {
		state = &oda.LogState{Metadata: h.metadata, LastSequence: h.lastSequence}
	}
	if e.Said != nil {
		return t.loadStatus(e, h, state)
	}
	if e.Known(state) {
		if err := t.compare(e, h); err != nil {
			return err
		}
		return oda.ErrPresent
	}
	if err := e.Follow(state); err != nil {
		return err
	}
	if !e.Stored() {
		return t.loadRecord(e, h, &keys[0])
	}
	m := e.Metadata()
	switch {
	case h == nil:
		if e.CreateKey != nil {
			used, err := t.keyUsed(e.Kind, *e.CreateKey)
			if used && err == nil {
				err = engine.ErrKeyTaken
			}
			if err != nil {
				return err
			}
		}
		if h, err = t.insertHead(e.Ref, m, e.CreateKey, e.Entry); err != nil {
			return err
		}
		h.dirty = len(e.Came) > 0
	default:
		if h.summaryHash != e.Entry.Hash {
			if err := t.restate(e.Ref, h, e.Entry); err != nil {
				return err
			}
		}
		h.dirty = true
	}
	h.lastSequence = e.After
	if err := t.insertList(h, m, e.Before+1, engine.ListBodies(e.Came)); err != nil {
		return err
	}
	if err := t.noteAll(e.Ref, h, m, e.Before+1, keys); err != nil {
		return err
	}
	return t.insertVersion(e.Ref, h, m, e.Before, e.Runs, &e.Body)
}

// loadRecord adds a record that was recorded.
func (t *txn) loadRecord(e *oda.LogEntry, h *head, keys *oda.CallKeys) error {
	if e.Key != "" {
		if before, _, err := t.recordedBefore(h, e.Key); err != nil || before.Sequence != 0 {
			return engine.ErrKeyTwice
		}
	}
	m := h.metadata
	m.LastModifiedBy, m.LastModifiedOn = e.By, e.On
	if err := t.insertRecord(h, m, e.Sequence, oda.NewRecord{Key: e.Key, Text: e.Body.Text}, &e.Body.Digest); err != nil {
		return err
	}
	if err := t.note(e.Ref, h, m, e.Sequence, keys); err != nil {
		return err
	}
	h.metadata, h.lastSequence, h.dirty = m, e.Sequence, true
	t.changes = join(t.changes, oda.Change{
		Position: oda.Position(t.position), Ref: e.Ref, Version: e.Version, FirstSequence: e.Sequence, LastSequence: e.Sequence, By: e.By, On: e.On,
	})
	return nil
}

// compare returns an error if the archive has something else in the place of the
// entry.
func (t *txn) compare(e *oda.LogEntry, h *head) error {
	query, number := "SELECT stored_by, stored_on, digest, runs FROM versions WHERE entity = ? AND version = ?", e.Version
	if !e.Stored() {
		query, number = "SELECT recorded_by, recorded_on, digest FROM records WHERE entity = ? AND sequence = ?", e.Sequence
	}
	var answer error = oda.LostVersion(e.Ref, e.Version)
	var runs []byte
	err := t.query(query, func(stmt *sqlite.Stmt) error {
		answer = e.Same(h.metadata, stmt.ColumnText(0), oda.Instant(stmt.ColumnInt64(1)), digestOf(stmt, 2))
		if e.Stored() {
			runs = bytesOf(stmt, 3)
		}
		return nil
	}, h.entity, number)
	if err == nil {
		err = answer
	}
	if err != nil || e.List == nil {
		return err
	}
	list, err := t.listOf(h, runs)
	if err != nil {
		return err
	}
	return e.SameRecords(list)
}

// listOf returns the digest of the digests of the records in packed runs.
func (t *txn) listOf(h *head, packed []byte) (list oda.Digest, err error) {
	runs, err := decodeRuns(packed)
	if err != nil {
		return list, err
	}
	var digests []byte
	for _, run := range runs {
		err := t.query("SELECT digest FROM records WHERE entity = ? AND sequence BETWEEN ? AND ? ORDER BY sequence", func(stmt *sqlite.Stmt) error {
			digest := digestOf(stmt, 0)
			digests = append(digests, digest[:]...)
			return nil
		}, h.entity, run.First, run.Last)
		if err != nil {
			return list, err
		}
	}
	return oda.DigestOf(digests), nil
}
