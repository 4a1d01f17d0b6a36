package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
)

const (
	headColumns = `h.kind, h.identifier, h.version, h.created_by, h.created_on, h.last_modified_by, h.last_modified_on`

	// foundColumns lists the columns that readFound reads after the place.
	foundColumns = headColumns + `, c.summary, ` + standingColumns

	selectFound = `SELECT p.nth - 1, ` + foundColumns + ` FROM unnest($1::smallint[], $2::text[]) WITH ORDINALITY AS p (kind, identifier, nth)
		JOIN heads h ON h.kind = p.kind AND h.identifier = p.identifier JOIN catalogue c ON c.kind = p.kind AND c.identifier = p.identifier` + joinStanding

	// selectTerms reads the first entities that have terms ($1), and their places in an
	// order. selectTermsHeads is for the orders that need the heads.
	selectTerms      = `SELECT %s FROM catalogue c WHERE c.terms @@ $1::text::tsquery LIMIT $2`
	selectTermsHeads = `SELECT %s FROM (SELECT kind, identifier FROM catalogue WHERE terms @@ $1::text::tsquery LIMIT $2) c
		JOIN heads h ON h.kind = c.kind AND h.identifier = c.identifier`

	// allowBitmaps lets the following statements of the batch use the index of terms,
	// which only a bitmap scan can.
	allowBitmaps = `SELECT set_config('enable_bitmapscan', 'on', true)`
)

// readFound reads rows of foundColumns.
func readFound(rows pgx.Rows, each func(place int, found oda.Found)) error {
	var place int
	var kind int16
	var packed []byte
	var f oda.Found
	m := &f.Metadata
	row := []any{&place, &kind, &f.ID, &m.Version, &m.CreatedBy, &m.CreatedOn, &m.LastModifiedBy, &m.LastModifiedOn, &packed}
	_, err := pgx.ForEachRow(rows, append(row, standingIn(&f.Standing)...), func() (err error) {
		f.Kind = oda.Kind(kind)
		f.Damage = nil
		if f.Summary, err = oda.UnpackSummary(packed); err != nil {
			f.Damage = oda.DamagedSummary(f.Ref).Because(err)
		}
		each(place, f)
		return nil
	})
	return err
}

// Look implements oda.Engine.
func (s *Store) Look(ctx context.Context, refs []oda.Ref) ([]*oda.Found, error) {
	all := make([]*oda.Found, len(refs))
	kinds, ids := make([]int16, len(refs)), make([]string, len(refs))
	for i, ref := range refs {
		kinds[i] = int16(ref.Kind)
		if isText(ref.ID) { // nothing has another identifier, nor the empty one
			ids[i] = ref.ID
		}
	}
	err := s.reading(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, selectFound, kinds, ids)
		if err != nil {
			return err
		}
		return readFound(rows, func(place int, found oda.Found) { all[place] = &found })
	})
	return all, s.storageError(ctx, err)
}

// placeIn returns the columns of a place in an order. The table is heads, or
// another that has them.
func placeIn(table string, order oda.Sort) string {
	instant := "0::bigint"
	switch order {
	case oda.NewestFirst, oda.OldestFirst:
		instant = table + ".created_on"
	case oda.LastModifiedFirst, oda.LastModifiedLast:
		instant = table + ".last_modified_on"
	}
	return table + ".identifier, " + instant
}

func placeOf(row pgx.CollectableRow) (p oda.Place, err error) {
	return p, row.Scan(&p.ID, &p.At)
}

// Candidates implements oda.Engine.
func (s *Store) Candidates(ctx context.Context, q oda.Question) (places []oda.Place, complete bool, err error) {
	if q.Empty() {
		return nil, true, nil
	}
	err = s.reading(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		clauses, err := rare(ctx, conn, q)
		if err == nil {
			places, err = placesOf(ctx, conn, q, clauses)
		}
		if err == nil && len(places) > q.Most && len(clauses) < len(q.Clauses) {
			places, err = placesOf(ctx, conn, q, q.Clauses)
		}
		return err
	})
	complete = len(places) <= q.Most
	return places[:min(len(places), q.Most)], complete && err == nil, s.storageError(ctx, err)
}

// rare returns the clauses that the server expects to find few entities, or all if
// there are none. GIN reads through the long list of a common term, and for a prefix
// the lists of all its terms, however few entities the other terms leave.
func rare(ctx context.Context, conn *pgxpool.Conn, q oda.Question) ([]oda.Clause, error) {
	if len(q.Clauses) == 1 {
		return q.Clauses, nil
	}
	var batch pgx.Batch
	var few []oda.Clause
	for _, clause := range q.Clauses {
		terms := strings.ReplaceAll(matching([]oda.Clause{clause}), "'", "''")
		batch.Queue(`EXPLAIN (FORMAT JSON) SELECT FROM catalogue WHERE terms @@ '` + terms + `'::tsquery`).QueryRow(func(row pgx.Row) error {
			var plans []struct {
				Plan struct {
					Rows float64 `json:"Plan Rows"`
				}
			}
			err := row.Scan(&plans)
			if err == nil && len(plans) == 1 && plans[0].Plan.Rows <= float64(q.Most) {
				few = append(few, clause)
			}
			return err
		})
	}
	if err := conn.SendBatch(ctx, &batch).Close(); err != nil || few == nil {
		return q.Clauses, err
	}
	return few, nil
}

// placesOf returns the places of the entities that satisfy the clauses. If there are
// more than the question allows, it returns one too many.
func placesOf(ctx context.Context, conn *pgxpool.Conn, q oda.Question, clauses []oda.Clause) (places []oda.Place, err error) {
	query := fmt.Sprintf(selectTerms, placeIn("c", q.Sort))
	if q.Sort == oda.LastModifiedFirst || q.Sort == oda.LastModifiedLast {
		query = fmt.Sprintf(selectTermsHeads, placeIn("h", q.Sort))
	}
	var batch pgx.Batch
	batch.Queue(allowBitmaps)
	batch.Queue(query, matching(clauses), q.Most+1).Query(func(rows pgx.Rows) (err error) {
		places, err = pgx.CollectRows(rows, placeOf)
		return err
	})
	err = conn.SendBatch(ctx, &batch).Close()
	return places, err
}

// matching writes clauses as a tsquery. No term contains a quote or a backslash.
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
