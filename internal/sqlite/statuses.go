package sqlite

import (
	"context"
	"math"

	"zombiezen.com/go/sqlite"

	"oda"
	"oda/internal/engine"
)

const (
	// statusColumns lists the columns that statusRow reads.
	statusColumns = `s.position, s.entity, s.sequence, s.version, s.status, s.class, s.reason, s.at, s.previous, s.current,
		s.said_by, s.said_on, s.key, s.key_digest, s.digest`

	selectStatuses = `SELECT ` + statusColumns + ` FROM statuses s WHERE s.entity = ? AND s.sequence < ? ORDER BY s.sequence DESC LIMIT ?`
	selectSaid     = `SELECT ` + statusColumns + ` FROM statuses s WHERE s.entity = ? AND s.key = ?`

	selectSaidSince = `SELECT kind, identifier FROM heads WHERE entity IN (SELECT entity FROM statuses WHERE said_on >= ?)`

	// standingColumns lists the columns that standingOf reads.
	standingColumns = `s.status, s.class, s.sequence, s.at, s.last`

	selectStanding  = `SELECT ` + standingColumns + ` FROM standings s WHERE s.entity = ?`
	selectCurrently = `SELECT h.entity, h.version, ` + standingColumns + `
		FROM heads h LEFT JOIN standings s ON s.entity = h.entity WHERE h.kind = ? AND h.identifier = ?`
)

// statusRow reads a status, and checks that it is what was stored.
func statusRow(stmt *sqlite.Stmt, ref oda.Ref, column int) (engine.StatusRow, error) {
	row := statusColumnsOf(stmt, ref, column)
	return row, row.Check(bytesOf(stmt, column+14))
}

func statusColumnsOf(stmt *sqlite.Stmt, ref oda.Ref, column int) engine.StatusRow {
	row := engine.StatusRow{Place: place(new(placeRoom), stmt.ColumnInt64(column), stmt.ColumnInt64(column+1)), Status: oda.Status{
		Ref: ref, Sequence: stmt.ColumnInt64(column + 2), Version: stmt.ColumnInt64(column + 3), Text: stmt.ColumnText(column + 4),
		Class: classOf(stmt, column+5), Reason: stmt.ColumnText(column + 6), At: oda.Instant(stmt.ColumnInt64(column + 7)),
		Previous: stmt.ColumnText(column + 8), Current: stmt.ColumnBool(column + 9),
		By: stmt.ColumnText(column + 10), On: oda.Instant(stmt.ColumnInt64(column + 11)),
	}}
	if n := stmt.ColumnInt64(column + 9); n != 0 && n != 1 {
		row.Place = nil // it was edited, so the digest must not fit
	}
	if !stmt.ColumnIsNull(column + 12) {
		row.Key = &oda.Key{Value: stmt.ColumnText(column + 12), Digest: digestOf(stmt, column+13)}
	}
	return row
}

// classOf reads a class. One that there is not is none; what was stored is judged by its
// digest.
func classOf(stmt *sqlite.Stmt, column int) oda.Class {
	if n := stmt.ColumnInt64(column); n > 0 && n <= math.MaxUint8 {
		return oda.Class(n)
	}
	return oda.NoClass
}

// standingOf reads a standing. All its columns are null if the entity has no status.
func standingOf(stmt *sqlite.Stmt, column int) oda.Standing {
	return oda.Standing{
		Text: stmt.ColumnText(column), Class: classOf(stmt, column+1), Sequence: stmt.ColumnInt64(column + 2),
		At: oda.Instant(stmt.ColumnInt64(column + 3)), Last: stmt.ColumnInt64(column + 4),
	}
}

// Say implements oda.Engine.
func (s *Store) Say(ctx context.Context, say oda.NewStatus) (entry *oda.Status, err error) {
	err = s.submit(ctx, len(say.Text)+len(say.Reason), func(tx *txn) (err error) {
		entry, err = tx.say(&say)
		return err
	})
	if err != nil {
		return nil, err
	}
	return entry, nil
}

func (t *txn) say(say *oda.NewStatus) (*oda.Status, error) {
	h, err := t.head(say.Ref)
	if err != nil {
		return nil, err
	}
	if h == nil {
		return nil, oda.Missing(say.Ref)
	}
	err = t.admit(h, say.Telescopes != nil || say.Own, func(telescope string) error { return say.Admit(telescope, h.metadata.CreatedBy) })
	if err != nil {
		return nil, err
	}
	if said, err := t.saidBefore(say.Ref, h, say.Key); said != nil || err != nil {
		return said, err
	}
	now, err := t.standing(h)
	if err != nil {
		return nil, err
	}
	entry, err := say.Entry(h.metadata.Version, now)
	if err != nil {
		return nil, err
	}
	return entry, t.addStatus(h, now, entry, say.Key)
}

// saidBefore returns the entry that the key has already added, nil if there is none.
func (t *txn) saidBefore(ref oda.Ref, h *head, key *oda.Key) (said *oda.Status, err error) {
	if key == nil {
		return nil, nil
	}
	var first oda.Digest
	err = t.conn.query(selectSaid, func(stmt *sqlite.Stmt) error {
		row, err := statusRow(stmt, ref, 0)
		if err == nil {
			said, first = &row.Status, row.Key.Digest
		}
		return err
	}, h.entity, key.Value)
	if said == nil || err != nil {
		return nil, oda.NothingStored(err)
	}
	return said, key.Check(first[:])
}

// standing returns the standing of an entity.
func (t *txn) standing(h *head) (now oda.Standing, err error) {
	err = t.query(selectStanding, func(stmt *sqlite.Stmt) error {
		now = standingOf(stmt, 0)
		return nil
	}, h.entity)
	return now, err
}

// addStatus writes the next status of an entity, which has the standing now.
func (t *txn) addStatus(h *head, now oda.Standing, e *oda.Status, key *oda.Key) error {
	position := t.next()
	row := engine.StatusRow{Place: place(new(placeRoom), position, h.entity), Status: *e, Key: key}
	digest := row.Digest()
	var keyValue, keyDigest any
	current := int64(0)
	if e.Current {
		current = 1
	}
	if key != nil {
		keyValue, keyDigest = key.Value, key.Digest[:]
	}
	err := t.exec(`INSERT INTO statuses (position, entity, sequence, version, status, class, reason, at, previous, current, said_by, said_on,
		key, key_digest, digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		position, h.entity, e.Sequence, e.Version, e.Text, int64(e.Class), textOrNull(e.Reason), int64(e.At), textOrNull(e.Previous), current,
		e.By, int64(e.On), keyValue, keyDigest, digest[:])
	if err != nil {
		return err
	}
	t.said = true
	change := e.Change()
	change.Position = oda.Position(position)
	t.changes = append(t.changes, change)
	return t.stand(e.Ref, h, now.After(e))
}

// stand writes the standing of an entity.
func (t *txn) stand(ref oda.Ref, h *head, s oda.Standing) error {
	return t.exec(`INSERT INTO standings (entity, kind, identifier, created_on, status, folded, class, sequence, at, last)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (entity) DO UPDATE SET status = excluded.status, folded = excluded.folded,
		class = excluded.class, sequence = excluded.sequence, at = excluded.at, last = excluded.last`,
		h.entity, int64(ref.Kind), ref.ID, int64(h.metadata.CreatedOn), s.Text, oda.FoldStatus(s.Text), int64(s.Class), s.Sequence, int64(s.At), s.Last)
}

// standAs notes the status of a new version's document, which counts as long as nobody
// has said one.
func (t *txn) standAs(ref oda.Ref, h *head, status string) error {
	now, err := t.standing(h)
	switch {
	case err != nil || now.Last > 0 || now.Text == status:
		return err
	case status == "":
		return t.exec("DELETE FROM standings WHERE entity = ?", h.entity)
	}
	return t.stand(ref, h, oda.StandingOf(status))
}

// Status implements oda.Engine.
func (s *Store) Status(ctx context.Context, ref oda.Ref) (current *oda.Status, err error) {
	err = s.aboutStatuses(ctx, ref, func(c *conn, entity, version int64, now oda.Standing) error {
		if now.Sequence == 0 {
			current = now.Status(ref, version)
			return nil
		}
		entries, err := c.statuses(ref, entity, now.Sequence+1, 1)
		if err == nil && (len(entries) == 0 || entries[0].Sequence != now.Sequence) {
			err = oda.LostStatus(ref, now.Sequence)
		}
		if err == nil {
			current = &entries[0]
		}
		return err
	})
	return current, err
}

// StatusesBefore implements oda.Engine.
func (s *Store) StatusesBefore(ctx context.Context, ref oda.Ref, before int64, limit int) (entries []oda.Status, err error) {
	err = s.aboutStatuses(ctx, ref, func(c *conn, entity, _ int64, now oda.Standing) error {
		next := min(before, now.Last+1)
		entries, err = c.statuses(ref, entity, next, limit)
		for i := range entries {
			if next--; err == nil && entries[i].Sequence != next {
				err = oda.LostStatus(ref, next)
			}
		}
		if err == nil && len(entries) < limit && next > 1 {
			err = oda.LostStatus(ref, next-1)
		}
		return err
	})
	return entries, err
}

// SaidSince implements oda.Mover. It reads the whole table: an export, which asks, reads
// much more.
func (s *Store) SaidSince(ctx context.Context, since oda.Instant, emit func(oda.Ref) error) error {
	c, err := s.listers.take(ctx)
	if err != nil {
		return err
	}
	defer s.listers.give(c)
	return storageError(c.query(selectSaidSince, func(stmt *sqlite.Stmt) error {
		return emit(oda.Ref{Kind: oda.Kind(stmt.ColumnInt(0)), ID: stmt.ColumnText(1)})
	}, int64(since)))
}

// aboutStatuses calls read with an entity, its version and its standing. Entries never
// change, so read may come later than these.
func (s *Store) aboutStatuses(ctx context.Context, ref oda.Ref, read func(c *conn, entity, version int64, now oda.Standing) error) error {
	if err := s.readable(ref); err != nil {
		return err
	}
	c, err := s.readers.take(ctx)
	if err != nil {
		return err
	}
	defer s.readers.give(c)
	var entity, version int64
	var now oda.Standing
	err = c.query(selectCurrently, func(stmt *sqlite.Stmt) error {
		entity, version, now = stmt.ColumnInt64(0), stmt.ColumnInt64(1), standingOf(stmt, 2)
		return nil
	}, int64(ref.Kind), ref.ID)
	switch {
	case err != nil:
	case entity == 0:
		return oda.Missing(ref)
	default:
		err = read(c, entity, version, now)
	}
	return readError(ref, err)
}

// statuses returns up to limit statuses before a sequence number, newest first.
func (c *conn) statuses(ref oda.Ref, entity, before int64, limit int) (entries []oda.Status, err error) {
	err = c.query(selectStatuses, func(stmt *sqlite.Stmt) error {
		row, err := statusRow(stmt, ref, 0)
		entries = append(entries, row.Status)
		return err
	}, entity, before, int64(limit))
	return entries, err
}

// loadStatus adds an entry of the log that is a status, and returns the answer to it.
func (t *txn) loadStatus(e *oda.LogEntry, h *head, state *oda.LogState) error {
	now := oda.Standing{}
	if h != nil {
		var err error
		if now, err = t.standing(h); err != nil {
			return err
		}
		state.LastStatus = now.Last
	}
	if e.Known(state) {
		entries, err := t.conn.statuses(e.Ref, h.entity, e.Sequence+1, 1)
		switch {
		case err != nil:
			return err
		case len(entries) == 0 || entries[0].Sequence != e.Sequence:
			return oda.LostStatus(e.Ref, e.Sequence)
		}
		if err := e.SameStatus(&entries[0]); err != nil {
			return err
		}
		return oda.ErrPresent
	}
	if err := e.Follow(state); err != nil {
		return err
	}
	if before, err := t.saidBefore(e.Ref, h, e.SaidWith()); before != nil || err != nil {
		return engine.ErrKeyTwice
	}
	said := *e.Said
	said.Current = now.Yields(said.At)
	return t.addStatus(h, now, &said, e.SaidWith())
}
