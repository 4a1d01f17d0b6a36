package sqlite

import (
	"context"
	"errors"

	"zombiezen.com/go/sqlite"

	"oda"
)

// changesRead is how many positions one call may read. Records that came with a
// version are no changes of their own, and many records may be one change.
const changesRead = 5000

// selectChanges merges the three tables that make up the log. The sequence number is 0
// for a version, and NULL for a record that came with one. Only a status has the last four
// columns.
const selectChanges = `SELECT position, entity, version, 0, stored_by, stored_on, NULL, NULL, NULL, NULL
	FROM versions WHERE position BETWEEN ?1 AND ?2
	UNION ALL
	SELECT r.position, r.entity, r.version, iif(r.sequence > v.sequence_after, r.sequence, NULL), r.recorded_by, r.recorded_on, NULL, NULL, NULL, NULL
	FROM records r JOIN versions v ON v.entity = r.entity AND v.version = r.version WHERE r.position BETWEEN ?1 AND ?2
	UNION ALL
	SELECT position, entity, version, sequence, said_by, said_on, status, class, at, current FROM statuses WHERE position BETWEEN ?1 AND ?2
	ORDER BY 1`

// Changes implements oda.Log.
func (s *Store) Changes(ctx context.Context, after oda.Position, limit int) ([]oda.Change, oda.Position, error) {
	end := s.tail.End()
	if end <= after || limit < 1 {
		return nil, after, nil
	}
	if changes := s.recent.after(after, end, limit); len(changes) > 0 {
		return changes, changes[len(changes)-1].Position, nil
	}
	return s.readChanges(ctx, after, end, limit)
}

// readChanges reads changes from the tables.
func (s *Store) readChanges(ctx context.Context, after, end oda.Position, limit int) ([]oda.Change, oda.Position, error) {
	last := min(end, after+changesRead)
	c, err := s.readers.take(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer s.readers.give(c)
	reading := changesReading{conn: c, limit: limit, read: after, refs: make(map[int64]oda.Ref)}
	err = c.query(selectChanges, reading.row, int64(after)+1, int64(last))
	if err == nil && reading.read < last {
		err = oda.LostChange(reading.read)
	}
	// Return what comes before the damage. The next call reports it.
	if err != nil && !errors.Is(err, errPartFull) && len(reading.changes) == 0 {
		return nil, 0, storageError(err)
	}
	return reading.changes, reading.read, nil
}

// changesReading is what one call has read from the log.
type changesReading struct {
	conn    *conn
	limit   int
	changes []oda.Change
	read    oda.Position      // the last one that was read
	refs    map[int64]oda.Ref // of entities
}

// row reads a row of selectChanges.
func (r *changesReading) row(stmt *sqlite.Stmt) error {
	position := oda.Position(stmt.ColumnInt64(0))
	if position != r.read+1 {
		return oda.LostChange(r.read)
	}
	if stmt.ColumnIsNull(3) {
		r.read = position
		return nil
	}
	ref, err := r.ref(stmt.ColumnInt64(1))
	if err != nil {
		return err
	}
	if ref.ID == "" {
		return oda.LostChange(position - 1)
	}
	change := oda.Change{
		Position: position, Ref: ref, Version: stmt.ColumnInt64(2), FirstSequence: stmt.ColumnInt64(3), LastSequence: stmt.ColumnInt64(3),
		By: stmt.ColumnText(4), On: oda.Instant(stmt.ColumnInt64(5)),
	}
	if !stmt.ColumnIsNull(6) {
		change.FirstSequence, change.LastSequence = 0, 0
		change.Said = &oda.Said{
			Sequence: stmt.ColumnInt64(3), Text: stmt.ColumnText(6), Class: classOf(stmt, 7), At: oda.Instant(stmt.ColumnInt64(8)),
			Current: stmt.ColumnBool(9),
		}
	}
	n := len(r.changes)
	switch {
	case n > 0 && r.changes[n-1].Join(change):
	case n == r.limit:
		return errPartFull
	default:
		r.changes = append(r.changes, change)
	}
	r.read = position
	return nil
}

// ref returns the entity with a number. Its identifier is empty if it is unknown.
func (r *changesReading) ref(entity int64) (oda.Ref, error) {
	ref, known := r.refs[entity]
	if known {
		return ref, nil
	}
	err := r.conn.query("SELECT kind, identifier FROM heads WHERE entity = ?", func(stmt *sqlite.Stmt) error {
		ref = oda.Ref{Kind: oda.Kind(stmt.ColumnInt64(0)), ID: stmt.ColumnText(1)}
		return nil
	}, entity)
	r.refs[entity] = ref
	return ref, err
}

// End implements oda.Log.
func (s *Store) End(context.Context) (oda.Position, error) { return s.tail.End(), nil }

// Await implements oda.Log.
func (s *Store) Await(ctx context.Context, after oda.Position) error { return s.tail.Await(ctx, after) }
