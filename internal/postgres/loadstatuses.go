package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"oda"
	"oda/internal/engine"
)

// usedKeys has the keys of records or statuses of entities.
type usedKeys map[oda.Ref]map[string]bool

// note notes a key. It reports whether it was known.
func (u usedKeys) note(ref oda.Ref, key string) (was bool) {
	if u[ref] == nil {
		u[ref] = make(map[string]bool)
	}
	was = u[ref][key]
	u[ref][key] = true
	return was
}

// queueStandings reads what the statuses of the entities are, whose heads were locked by an
// earlier statement.
func (l *loading) queueStandings(batch *pgx.Batch, kinds []int16, ids []string) {
	batch.Queue(`SELECT h.kind, h.identifier, `+standingColumns+` FROM unnest($1::smallint[], $2::text[]) AS h (kind, identifier)`+joinStanding,
		kinds, ids).Query(func(rows pgx.Rows) error {
		var kind int16
		var id string
		var now oda.Standing
		_, err := pgx.ForEachRow(rows, append([]any{&kind, &id}, standingIn(&now)...), func() error {
			if h := l.heads[oda.Ref{Kind: oda.Kind(kind), ID: id}]; h != nil {
				h.now, h.LastStatus = now, now.Last
			}
			return nil
		})
		return err
	})
}

// readStatuses reads the statuses that the archive has in the places of entries, and which
// keys of the others are used.
func (l *loading) readStatuses(ctx context.Context, tx pgx.Tx, entries []oda.LogEntry) error {
	l.said, l.saidKeys = make(map[knownKey]*oda.Status), make(usedKeys)
	var kinds, keyKinds []int16
	var ids, keyIDs, keys []string
	var sequences []int64
	for i := range entries {
		switch e := &entries[i]; {
		case e.Said == nil:
		case e.Known(l.heads[e.Ref].state()):
			kinds, ids, sequences = append(kinds, int16(e.Kind)), append(ids, e.ID), append(sequences, e.Sequence)
		case e.Key != "":
			keyKinds, keyIDs, keys = append(keyKinds, int16(e.Kind)), append(keyIDs, e.ID), append(keys, e.Key)
		}
	}
	var batch pgx.Batch
	if len(ids) > 0 {
		batch.Queue(selectSaid, kinds, ids, sequences).Query(func(rows pgx.Rows) error {
			var nth int
			var r statusRow
			_, err := pgx.ForEachRow(rows, append([]any{&nth}, r.columns()...), func() error {
				row, err := r.checked()
				l.said[knownKey{Ref: row.Ref, sequence: row.Sequence}] = &row.Status
				return err
			})
			return err
		})
	}
	if len(keys) > 0 {
		batch.Queue(`SELECT k.kind, k.identifier, k.key FROM unnest($1::smallint[], $2::text[], $3::text[]) AS k (kind, identifier, key)
			CROSS JOIN LATERAL (SELECT kind FROM statuses WHERE identifier = k.identifier AND key = k.key OFFSET 0) e WHERE e.kind = k.kind`,
			keyKinds, keyIDs, keys).Query(func(rows pgx.Rows) error {
			var kind int16
			var id, key string
			_, err := pgx.ForEachRow(rows, []any{&kind, &id, &key}, func() error {
				l.saidKeys.note(oda.Ref{Kind: oda.Kind(kind), ID: id}, key)
				return nil
			})
			return err
		})
	}
	if batch.Len() == 0 {
		return nil
	}
	return tx.SendBatch(ctx, &batch).Close()
}

// addStatus adds a status to what is going to be written, and returns the answer to it.
func (l *loading) addStatus(e *oda.LogEntry, h *loadedHead) error {
	place := knownKey{Ref: e.Ref, sequence: e.Sequence}
	if e.Known(h.state()) {
		stored := l.said[place]
		if stored == nil {
			return oda.LostStatus(e.Ref, e.Sequence)
		}
		if err := e.SameStatus(stored); err != nil {
			return err
		}
		return oda.ErrPresent
	}
	if err := e.Follow(h.state()); err != nil {
		return err
	}
	if e.Key != "" && l.saidKeys.note(e.Ref, e.Key) {
		return engine.ErrKeyTwice
	}
	said := *e.Said
	said.Current = h.now.Yields(said.At)
	h.now, h.moved, h.LastStatus = h.now.After(&said), true, said.Sequence
	l.statuses = append(l.statuses, statusValues(&said, e.SaidWith()))
	l.logRow(1).said(&said)
	l.said[place] = &said
	return nil
}

// standAs notes the status of a new version's document, which counts as long as nobody has
// said one.
func (h *loadedHead) standAs(status string) {
	if h.now.Last == 0 && h.now.Text != status {
		h.now, h.moved = oda.StandingOf(status), true
	}
}

// writeStandings writes what the statuses of entities are now.
func (l *loading) writeStandings(batch *pgx.Batch) {
	var rows [][]any
	for ref, h := range l.heads {
		switch {
		case !h.moved:
		case h.now == oda.Standing{}:
			batch.Queue("DELETE FROM standings WHERE kind = $1 AND identifier = $2", int16(ref.Kind), ref.ID)
		default:
			rows = append(rows, standingValues(ref, h.Metadata.CreatedOn, h.now))
		}
	}
	if len(rows) > 0 {
		batch.Queue(addStandings, standingArrays(rows)...)
	}
}
