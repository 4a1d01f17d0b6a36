package sqlite

import (
	"context"
	"fmt"

	"zombiezen.com/go/sqlite"

	"oda"
)

// Listings walk along an index in its order, so the first identifier comes at once
// and nothing is sorted. A page begins where the previous one ended: the range
// starts with the instant of the last identifier, and of the identifiers at that
// instant only those after it count.
const (
	listCreated = `SELECT identifier, created_on FROM heads INDEXED BY heads_created
		WHERE kind = ?1 AND created_on BETWEEN ?2 AND ?3 AND (created_on > ?2 OR identifier > ?4)
		ORDER BY created_on, identifier LIMIT ?5`
	listModified = `SELECT identifier, last_modified_on FROM heads INDEXED BY heads_modified
		WHERE kind = ?1 AND last_modified_on BETWEEN ?2 AND ?3 AND (last_modified_on > ?2 OR identifier > ?4)
		ORDER BY last_modified_on, identifier LIMIT ?5`
	listUserEquals = `SELECT identifier, created_on FROM heads INDEXED BY heads_user
		WHERE kind = ?1 AND created_by = ?6 AND created_on BETWEEN ?2 AND ?3 AND (created_on > ?2 OR identifier > ?4)
		ORDER BY created_on, identifier LIMIT ?5`
	// The order is that of creation, not of users, so these walk along the index by
	// creation and filter it; it has the user too.
	listUserStartsWith = `SELECT identifier, created_on FROM heads INDEXED BY heads_created
		WHERE kind = ?1 AND created_on BETWEEN ?2 AND ?3 AND (created_on > ?2 OR identifier > ?4)
		AND substr(created_by, 1, length(?6)) = ?6
		ORDER BY created_on, identifier LIMIT ?5`
	listUserContains = `SELECT identifier, created_on FROM heads INDEXED BY heads_created
		WHERE kind = ?1 AND created_on BETWEEN ?2 AND ?3 AND (created_on > ?2 OR identifier > ?4)
		AND instr(created_by, ?6) > 0
		ORDER BY created_on, identifier LIMIT ?5`
)

// List implements oda.Engine. Without a limit it keeps one statement open, and so
// one snapshot and one connection, until its reader has read it all. A page is read
// at once.
func (s *Store) List(ctx context.Context, q oda.Query, emit func(id string, at oda.Instant) error) error {
	return s.listings.Read(ctx, q, emit, s.list)
}

func (s *Store) list(ctx context.Context, q oda.Query, emit func(id string, at oda.Instant) error) error {
	query, args, err := statement(q)
	if err != nil {
		return err
	}
	c, err := s.listers.take(ctx)
	if err != nil {
		return err
	}
	defer s.listers.give(c)
	c.SetInterrupt(ctx.Done())
	defer c.SetInterrupt(nil)
	var stopped error // the error of emit, which is returned as it is
	err = c.query(query, func(stmt *sqlite.Stmt) error {
		stopped = emit(stmt.ColumnText(0), oda.Instant(stmt.ColumnInt64(1)))
		return stopped
	}, args...)
	switch {
	case stopped != nil:
		return stopped
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return storageError(err)
}

func statement(q oda.Query) (string, []any, error) {
	from, behind, to := q.Range()
	limit := int64(-1)
	if q.Limit > 0 {
		limit = int64(q.Limit)
	}
	args := []any{int64(q.Kind), int64(from), int64(to), behind, limit}
	if q.Order == oda.ByModification {
		return listModified, args, nil
	}
	if q.User == "" {
		return listCreated, args, nil
	}
	switch q.Match {
	case oda.UserEquals:
		return listUserEquals, append(args, q.User), nil
	case oda.UserStartsWith:
		return listUserStartsWith, append(args, q.User), nil
	case oda.UserContains:
		return listUserContains, append(args, q.User), nil
	}
	return "", nil, fmt.Errorf("unknown match type %d", q.Match)
}
