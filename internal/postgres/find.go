package postgres

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
)

const (
	// foundColumns are what foundIn reads, behind the place of the answer.
	foundColumns = `h.kind, h.identifier, h.version, h.created_by, h.created_on, h.last_modified_by, h.last_modified_on, c.summary`

	selectFound = `SELECT p.nth - 1, ` + foundColumns + ` FROM unnest($1::smallint[], $2::text[]) WITH ORDINALITY AS p (kind, identifier, nth)
		JOIN heads h ON h.kind = p.kind AND h.identifier = p.identifier JOIN catalogue c ON c.kind = p.kind AND c.identifier = p.identifier`

	selectTerms = `SELECT 0, ` + foundColumns + ` FROM (SELECT * FROM catalogue WHERE terms @@ $1::text::tsquery LIMIT $2) c
		JOIN heads h ON h.kind = c.kind AND h.identifier = c.identifier`

	// allowBitmaps lets the statements behind it in the same batch use the index
	// of terms, which only a bitmap scan can.
	allowBitmaps = `SELECT set_config('enable_bitmapscan', 'on', true)`
)

// readFound reads rows of foundColumns.
func readFound(rows pgx.Rows, each func(place int, found oda.Found)) error {
	var place int
	var kind int16
	var packed []byte
	var f oda.Found
	m := &f.Metadata
	_, err := pgx.ForEachRow(rows, []any{
		&place, &kind, &f.ID, &m.Version, &m.CreatedBy, &m.CreatedOn, &m.LastModifiedBy, &m.LastModifiedOn, &packed,
	}, func() (err error) {
		f.Kind = oda.Kind(kind)
		f.Summary, err = oda.UnpackSummary(packed)
		each(place, f)
		return err
	})
	return err
}

// Look implements oda.Engine.
func (s *Store) Look(ctx context.Context, refs []oda.Ref) ([]*oda.Found, error) {
	all := make([]*oda.Found, len(refs))
	kinds, ids := make([]int16, len(refs)), make([]string, len(refs))
	for i, ref := range refs {
		kinds[i] = int16(ref.Kind)
		if isText(ref.ID) { // else nothing has it, nor has anything the empty one
			ids[i] = ref.ID
		}
	}
	err := s.with(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, selectFound, kinds, ids)
		if err != nil {
			return err
		}
		return readFound(rows, func(place int, found oda.Found) { all[place] = &found })
	})
	return all, s.storageError(ctx, err)
}

// Candidates implements oda.Engine.
func (s *Store) Candidates(ctx context.Context, _ oda.Kind, clauses []oda.Clause, most int) (found []oda.Found, complete bool, err error) {
	if slices.ContainsFunc(clauses, func(c oda.Clause) bool { return len(c.Any) == 0 }) {
		return nil, true, nil
	}
	err = s.with(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		var batch pgx.Batch
		batch.Queue(allowBitmaps)
		batch.Queue(selectTerms, matching(clauses), most+1)
		results := conn.SendBatch(ctx, &batch)
		_, err := results.Exec()
		var rows pgx.Rows
		if err == nil {
			rows, err = results.Query()
		}
		if err == nil {
			found = found[:0]
			err = readFound(rows, func(_ int, one oda.Found) { found = append(found, one) })
		}
		if closeErr := results.Close(); err == nil {
			err = closeErr
		}
		return err
	})
	if err != nil {
		return nil, false, s.storageError(ctx, err)
	}
	if len(found) > most {
		return found[:most], false, nil
	}
	return found, true, nil
}

// matching writes clauses as a tsquery. No term has a quote or a backslash in it.
func matching(clauses []oda.Clause) string {
	var b strings.Builder
	for i, c := range clauses {
		if i > 0 {
			b.WriteString(" & ")
		}
		for j, term := range c.Any {
			b.WriteString([]string{"(", " | "}[min(j, 1)] + "'" + term + "'")
			if c.Prefix {
				b.WriteString(":*")
			}
		}
		b.WriteString(")")
	}
	return b.String()
}
