package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
)

// Listings walk along an index in its order. A page begins where the previous one
// ended. The comparison of pairs lets PostgreSQL find that place in the index.
const (
	listCreated = `SELECT identifier, created_on FROM creations
		WHERE kind = $1 AND (created_on, identifier) > ($2, $3) AND created_on <= $4
		ORDER BY created_on, identifier LIMIT $5`
	listUserEquals = `SELECT identifier, created_on FROM creations
		WHERE kind = $1 AND created_by = $6 AND (created_on, identifier) > ($2, $3) AND created_on <= $4
		ORDER BY created_on, identifier LIMIT $5`
	// The order is that of creation, not of users, so these walk along the index by
	// creation and filter it; it has the user too.
	listUserStartsWith = `SELECT identifier, created_on FROM creations
		WHERE kind = $1 AND (created_on, identifier) > ($2, $3) AND created_on <= $4 AND starts_with(created_by, $6)
		ORDER BY created_on, identifier LIMIT $5`
	listUserContains = `SELECT identifier, created_on FROM creations
		WHERE kind = $1 AND (created_on, identifier) > ($2, $3) AND created_on <= $4 AND position($6 IN created_by) > 0
		ORDER BY created_on, identifier LIMIT $5`
)

// List implements oda.Engine. Without a limit it is one statement, and so one
// snapshot, whose rows are read as fast as its reader takes them. A page is read at
// once.
func (s *Store) List(ctx context.Context, q oda.Query, emit func(id string, at oda.Instant) error) error {
	return s.listings.Read(ctx, q, emit, s.list)
}

func (s *Store) list(ctx context.Context, q oda.Query, emit func(id string, at oda.Instant) error) error {
	if q.Order == oda.ByModification {
		return s.listModified(ctx, q, emit)
	}
	if !isText(q.User) {
		return nil // nobody has that name
	}
	query, args, err := listing(q)
	if err != nil {
		return err
	}
	var id string
	var at oda.Instant
	_, err = s.stream(ctx, query, args, []any{&id, &at}, func() error { return emit(id, at) })
	return err
}

// stream calls each for the rows of a statement as they arrive. It returns how many
// there were. It stops at the first error of each and returns it as it is.
func (s *Store) stream(ctx context.Context, query string, args, row []any, each func() error) (rows int, err error) {
	var failed error // of each
	err = s.unbounded(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		// The reader may be slow, but not the server.
		watched, progress := startProgress(ctx)
		defer progress.end()
		result, err := conn.Query(watched, query, args...)
		if err != nil {
			return err
		}
		_, err = pgx.ForEachRow(result, row, func() error {
			// Rows that have arrived are still delivered when the reader has gone.
			if err := ctx.Err(); err != nil {
				return err
			}
			progress.pause()
			rows++
			failed = each()
			progress.resume()
			return failed
		})
		if err != nil && watched.Err() != nil && ctx.Err() == nil {
			s.suspect(conn)
		}
		return err
	})
	if failed != nil {
		return rows, failed
	}
	return rows, s.storageError(ctx, err)
}

func listing(q oda.Query) (string, []any, error) {
	from, behind, to := q.Range()
	var limit *int
	if q.Limit > 0 {
		limit = &q.Limit
	}
	args := []any{int16(q.Kind), int64(from), behind, int64(to), limit}
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
