package postgres

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
)

const (
	headColumns = `h.kind, h.identifier, h.version, h.created_by, h.created_on, h.last_modified_by, h.last_modified_on`

	// foundColumns are what readFound reads, behind the place of the answer.
	foundColumns = headColumns + `, c.summary`

	selectFound = `SELECT p.nth - 1, ` + foundColumns + ` FROM unnest($1::smallint[], $2::text[]) WITH ORDINALITY AS p (kind, identifier, nth)
		JOIN heads h ON h.kind = p.kind AND h.identifier = p.identifier JOIN catalogue c ON c.kind = p.kind AND c.identifier = p.identifier`

	// selectTerms gives so many entities. Those behind so many bytes of summaries
	// come without.
	selectTerms = `SELECT 0, ` + headColumns + `, CASE WHEN c.bytes <= $3 THEN c.summary END FROM (
			SELECT *, sum(octet_length(summary)) OVER (ROWS UNBOUNDED PRECEDING) AS bytes
			FROM (SELECT kind, identifier, summary FROM catalogue WHERE terms @@ $1::text::tsquery LIMIT $2) l
		) c
		JOIN heads h ON h.kind = c.kind AND h.identifier = c.identifier`

	// allowBitmaps lets the statements behind it in the same batch use the index
	// of terms, which only a bitmap scan can.
	allowBitmaps = `SELECT set_config('enable_bitmapscan', 'on', true)`
)

// readFound reads rows of foundColumns. It says of each whether it has its
// summary.
func readFound(rows pgx.Rows, each func(place int, found oda.Found, whole bool)) error {
	var place int
	var kind int16
	var packed []byte
	var f oda.Found
	m := &f.Metadata
	_, err := pgx.ForEachRow(rows, []any{
		&place, &kind, &f.ID, &m.Version, &m.CreatedBy, &m.CreatedOn, &m.LastModifiedBy, &m.LastModifiedOn, &packed,
	}, func() (err error) {
		f.Kind = oda.Kind(kind)
		if f.Summary = (oda.Summary{}); packed != nil {
			if f.Summary, err = oda.UnpackSummary(packed); err != nil {
				err = oda.DamagedSummary(f.Ref).Because(err)
			}
		}
		if err == nil {
			each(place, f, packed != nil)
		}
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
		return readFound(rows, func(place int, found oda.Found, _ bool) { all[place] = &found })
	})
	return all, s.storageError(ctx, err)
}

// Candidates implements oda.Engine. The index gives what it is asked for and
// hardly anything else, so what it gives counts as taken.
func (s *Store) Candidates(ctx context.Context, q oda.Question, take func(*oda.Found) bool) (complete bool, err error) {
	if q.Empty() {
		return true, nil
	}
	err = s.with(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		var batch pgx.Batch
		batch.Queue(allowBitmaps)
		batch.Queue(selectTerms, matching(q.Clauses), q.Most+1, q.Bytes)
		results := conn.SendBatch(ctx, &batch)
		_, err := results.Exec()
		var rows pgx.Rows
		if err == nil {
			rows, err = results.Query()
		}
		if err == nil {
			n := 0
			complete = true
			err = readFound(rows, func(_ int, found oda.Found, whole bool) {
				if n++; n > q.Most || !whole {
					complete = false
					return
				}
				take(&found)
			})
		}
		if closeErr := results.Close(); err == nil {
			err = closeErr
		}
		return err
	})
	return complete && err == nil, s.storageError(ctx, err)
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
