package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"zombiezen.com/go/sqlite"

	"oda"
)

const (
	headColumns = `h.entity, h.kind, h.identifier, h.version, h.created_by, h.created_on, h.last_modified_by, h.last_modified_on`

	// foundColumns lists the columns that foundIn reads, from heads and what is joined to it.
	foundColumns = headColumns + `, c.summary, ` + standingColumns
	foundJoined  = ` CROSS JOIN catalogue c ON c.entity = h.entity LEFT JOIN standings s ON s.entity = h.entity`

	selectFound = `SELECT ` + foundColumns + ` FROM heads h` + foundJoined + ` WHERE h.kind = ? AND h.identifier = ?`

	selectPlace = `SELECT h.entity, h.identifier, %s FROM heads h WHERE h.entity = ?`
	selectTerms = `SELECT h.entity, h.identifier, %s FROM terms t CROSS JOIN heads h ON h.entity = t.rowid WHERE t.terms MATCH ? LIMIT ?`
)

// instantOf returns the column of the instant that an order goes by.
func instantOf(order oda.Sort) string {
	switch order {
	case oda.NewestFirst, oda.OldestFirst:
		return "h.created_on"
	case oda.LastModifiedFirst, oda.LastModifiedLast:
		return "h.last_modified_on"
	}
	return "0"
}

// foundIn reads the current row.
func foundIn(stmt *sqlite.Stmt) (found oda.Found) {
	found.Ref = oda.Ref{Kind: oda.Kind(stmt.ColumnInt(1)), ID: stmt.ColumnText(2)}
	found.Metadata, found.Standing = metadataOf(stmt, 3), standingOf(stmt, 9)
	var err error
	if found.Summary, err = oda.UnpackSummary(bytesOf(stmt, 8)); err != nil {
		found.Damage = oda.DamagedSummary(found.Ref).Because(err)
	}
	return found
}

// Look implements oda.Engine.
func (s *Store) Look(ctx context.Context, refs []oda.Ref) ([]*oda.Found, error) {
	all := make([]*oda.Found, len(refs))
	err := s.finding(ctx, func(c *conn) error {
		for i, ref := range refs {
			err := c.query(selectFound, func(stmt *sqlite.Stmt) error {
				found := foundIn(stmt)
				all[i] = &found
				return nil
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

// readForOne is how many places are read for each that a question about identifiers
// allows. FTS5 does not distinguish upper from lower case, so some of those that it
// finds have another identifier.
const readForOne = 10

// errTooMany ends a question that has too many answers.
var errTooMany = errors.New("there is more than was asked for")

// Candidates implements oda.Engine. It looks at what is not yet in the index first.
// So an entity that is moved into the index meanwhile is found twice, but never
// missed.
func (s *Store) Candidates(ctx context.Context, q oda.Question) (places []oda.Place, complete bool, err error) {
	if q.Empty() {
		return nil, true, nil
	}
	rows, questions := s.unindexed.get(), questionsOf(q.Clauses)
	seen := make(map[int64]bool)
	most := q.Most
	if slices.ContainsFunc(q.Clauses, oda.Clause.Cased) {
		most *= readForOne
	}
	instant := instantOf(q.Sort)
	err = s.finding(ctx, func(c *conn) error {
		read := func(stmt *sqlite.Stmt) error {
			entity := stmt.ColumnInt64(0)
			if seen[entity] {
				return nil
			}
			if len(places) == most {
				return errTooMany
			}
			seen[entity] = true
			places = append(places, oda.Place{ID: stmt.ColumnText(1), At: oda.Instant(stmt.ColumnInt64(2))})
			return nil
		}
		err := func() error {
			for i := range rows {
				r := &rows[i]
				if r.kind != q.Kind || seen[r.entity] || !r.matches(questions) {
					continue
				}
				if err := c.query(fmt.Sprintf(selectPlace, instant), read, r.entity); err != nil {
					return err
				}
			}
			clauses, err := c.rare(q.Clauses)
			if err != nil {
				return err
			}
			// The limit is higher because some may be found again.
			return c.query(fmt.Sprintf(selectTerms, instant), read, matching(clauses), int64(most+1+len(seen)))
		}()
		if complete = err == nil; errors.Is(err, errTooMany) {
			err = nil
		}
		return err
	})
	return places, complete && err == nil, err
}

// rareTerm is how many entities a clause may find to count as rare.
const rareTerm = 1000

// rare returns the clauses that find few entities, or all if there are none. To
// combine a rare term with a common one, FTS5 reads through the long list of the
// common one, which takes longer than judging the few entities of the rare one. A
// prefix comes last, since FTS5 first has to merge the lists of all its terms.
func (c *conn) rare(clauses []oda.Clause) ([]oda.Clause, error) {
	if len(clauses) == 1 {
		return clauses, nil
	}
	var rare []oda.Clause
	for _, isPrefix := range []bool{false, true} {
		for _, clause := range clauses {
			if clause.Prefix != isPrefix {
				continue
			}
			n := 0
			err := c.query("SELECT rowid FROM terms WHERE terms MATCH ? LIMIT ?", func(*sqlite.Stmt) error { n++; return nil },
				matching([]oda.Clause{clause}), int64(rareTerm+1))
			if err != nil {
				return nil, err
			}
			if n <= rareTerm {
				rare = append(rare, clause)
			}
		}
		if rare != nil {
			return rare, nil
		}
	}
	return clauses, nil
}

// finding runs work on a connection for listings, in one transaction: with every new
// one after a write, SQLite forgets the pages that it has read. It is interrupted if the
// caller goes away.
func (s *Store) finding(ctx context.Context, work func(*conn) error) (err error) {
	c, err := s.listers.take(ctx)
	if err != nil {
		return err
	}
	defer s.listers.give(c)
	if err := c.exec("BEGIN"); err != nil {
		return storageError(err)
	}
	defer func() { // even if work panics: others use the connection
		c.SetInterrupt(nil)
		if end := c.exec("COMMIT"); err == nil {
			err = storageError(end)
		}
	}()
	c.SetInterrupt(ctx.Done())
	if err = work(c); err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return storageError(err)
}

// matching writes clauses in the query language of FTS5. No term contains a double
// quote.
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
