package sqlite

import (
	"context"
	"errors"
	"strings"

	"zombiezen.com/go/sqlite"

	"oda"
)

const (
	headColumns = `h.entity, h.kind, h.identifier, h.version, h.created_by, h.created_on, h.last_modified_by, h.last_modified_on`

	// foundColumns are what foundIn reads.
	foundColumns = headColumns + `, c.summary`

	selectFound = `SELECT ` + foundColumns + ` FROM heads h JOIN catalogue c ON c.entity = h.entity WHERE h.kind = ? AND h.identifier = ?`

	selectEntity = `SELECT ` + foundColumns + ` FROM heads h JOIN catalogue c ON c.entity = h.entity WHERE h.entity = ?`

	selectTerms = `SELECT ` + foundColumns + ` FROM terms t CROSS JOIN heads h ON h.entity = t.rowid CROSS JOIN catalogue c ON c.entity = t.rowid
		WHERE t.terms MATCH ? LIMIT ?`
)

// foundIn reads the row at hand.
func foundIn(stmt *sqlite.Stmt) (entity int64, found oda.Found, err error) {
	found.Ref = oda.Ref{Kind: oda.Kind(stmt.ColumnInt(1)), ID: stmt.ColumnText(2)}
	found.Metadata = metadataOf(stmt, 3)
	if !stmt.ColumnIsNull(8) { // else it was not asked for
		if found.Summary, err = oda.UnpackSummary(bytesOf(stmt, 8)); err != nil {
			err = oda.DamagedSummary(found.Ref).Because(err)
		}
	}
	return stmt.ColumnInt64(0), found, err
}

// Look implements oda.Engine.
func (s *Store) Look(ctx context.Context, refs []oda.Ref) ([]*oda.Found, error) {
	all := make([]*oda.Found, len(refs))
	err := s.finding(ctx, func(c *conn) error {
		for i, ref := range refs {
			err := c.query(selectFound, func(stmt *sqlite.Stmt) error {
				_, found, err := foundIn(stmt)
				all[i] = &found
				return err
			}, int64(ref.Kind), ref.ID)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// readForOne is how many rows are read for each entity that a question may take.
// FTS5 does not know upper case from lower case, so some that it gives are not
// those that were asked for.
const readForOne = 10

// errEnough ends a question of which a bound is reached.
var errEnough = errors.New("there is more than was asked for")

// Candidates implements oda.Engine. What is not in the index yet is asked first:
// what is moved meanwhile is then found twice, and never missed.
func (s *Store) Candidates(ctx context.Context, q oda.Question, take func(*oda.Found) bool) (complete bool, err error) {
	if q.Empty() {
		return true, nil
	}
	rows, questions := s.unindexed.get(), questionsOf(q.Clauses)
	seen := make(map[int64]bool)
	taken, bytes, most := 0, 0, readForOne*q.Most
	err = s.finding(ctx, func(c *conn) error {
		read := func(stmt *sqlite.Stmt) error {
			if seen[stmt.ColumnInt64(0)] {
				return nil
			}
			if bytes += stmt.ColumnLen(8); bytes > q.Bytes || len(seen) == most {
				return errEnough
			}
			entity, found, err := foundIn(stmt)
			if err != nil {
				return err
			}
			seen[entity] = true
			if !take(&found) {
				return nil
			}
			if taken++; taken > q.Most {
				return errEnough
			}
			return nil
		}
		err := func() error {
			for i := range rows {
				r := &rows[i]
				if r.kind != q.Kind || seen[r.entity] || !r.matches(questions) {
					continue
				}
				if err := c.query(selectEntity, read, r.entity); err != nil {
					return err
				}
			}
			// So many more, since some may be found again.
			return c.query(selectTerms, read, matching(q.Clauses), int64(most+1+len(seen)))
		}()
		if complete = err == nil; errors.Is(err, errEnough) {
			err = nil
		}
		return err
	})
	return complete && err == nil, err
}

// finding runs work on a connection for listings, until the caller has gone.
func (s *Store) finding(ctx context.Context, work func(*conn) error) error {
	c, err := s.listers.take(ctx)
	if err != nil {
		return err
	}
	defer s.listers.give(c)
	c.SetInterrupt(ctx.Done())
	defer c.SetInterrupt(nil)
	if err = work(c); err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return storageError(err)
}

// matching writes clauses as a question to FTS5. No term has a double quote in
// it.
func matching(clauses []oda.Clause) string {
	var b strings.Builder
	for i, c := range clauses {
		if i > 0 {
			b.WriteString(" AND ")
		}
		for j, term := range c.Any {
			b.WriteString([]string{"(", " OR "}[min(j, 1)] + `"` + term + `"`)
			if c.Prefix {
				b.WriteString(" *")
			}
		}
		b.WriteString(")")
	}
	return b.String()
}
