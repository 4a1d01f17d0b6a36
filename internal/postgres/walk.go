package postgres

import (
	"context"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
	"oda/internal/engine"
)

// A walk is one statement, and so one snapshot. It goes along an index between two
// places, in either direction, and looks up the rest entity by entity, so every
// entity costs the same. $1 is the kind, $2 the limit, $3 and $4 are the identifiers
// of the two places, $5 and $6 their instants.
const (
	walkColumns = `SELECT h.identifier, h.version, h.created_by, h.created_on, h.last_modified_by, h.last_modified_on, `

	walkIdentifiers = ` FROM heads h %[1]s WHERE h.kind = $1 AND h.identifier > $3 AND h.identifier < $4
		ORDER BY h.identifier %[2]s LIMIT $2`

	// Those that have a status stand in a table of their own, with their times of creation.
	walkCreated = ` FROM %[4]s o %[1]s
		WHERE o.kind = $1 AND (o.created_on, o.identifier) > ($5, $3) AND (o.created_on, o.identifier) < ($6, $4) %[3]s
		ORDER BY o.created_on %[2]s, o.identifier %[2]s LIMIT $2`
	createdHeads = `CROSS JOIN LATERAL (SELECT * FROM heads WHERE kind = o.kind AND identifier = o.identifier OFFSET 0) h `

	// The index by modification lags behind (listmodified.go). So the first entities in the
	// index are not always the first ones. But the first ones cannot be further away
	// than the lag beyond the last of these. So the statement sorts what the index has
	// up to there. $7 is where it begins to read the index.
	walkModified = ` FROM (SELECT * FROM heads WHERE kind = $1 AND listed_on > $7 AND listed_on <= $6
			AND (last_modified_on, identifier) > ($5, $3) AND (last_modified_on, identifier) < ($6, $4)
			AND %[3]s (SELECT listed_on FROM heads WHERE kind = $1 AND listed_on > $7 AND listed_on <= $6
				AND (last_modified_on, identifier) > ($5, $3) AND (last_modified_on, identifier) < ($6, $4)
				ORDER BY listed_on %[2]s, identifier %[2]s LIMIT $2) AS first)
			ORDER BY last_modified_on %[2]s, identifier %[2]s LIMIT $2) h %[1]s
		ORDER BY h.last_modified_on %[2]s, h.identifier %[2]s`
	asFarAsForward  = `listed_on < (SELECT max(listed_on) + 100000 FROM`
	asFarAsBackward = `listed_on > (SELECT min(listed_on) - 100000 FROM`

	walkSummaries = `CROSS JOIN LATERAL (SELECT summary FROM catalogue WHERE kind = h.kind AND identifier = h.identifier OFFSET 0) c` + joinStanding
	walkBodies    = ` LEFT JOIN LATERAL (SELECT slots, text, digest FROM versions
		WHERE kind = h.kind AND identifier = h.identifier AND version = h.version OFFSET 0) v ON true`
)

// walkStatement returns the part of a statement that walks, with what is joined to
// each entity.
func walkStatement(w oda.Walk, beside string) (string, []any) {
	direction, asFarAs := "ASC", asFarAsForward
	if w.Sort.Descends() {
		direction, asFarAs = "DESC", asFarAsBackward
	}
	from, to := w.Range()
	args := []any{int16(w.Kind), w.Limit, from.ID, to.ID}
	switch w.Sort {
	case oda.ByIdentifier, oda.ByIdentifierReversed:
		return fmt.Sprintf(walkIdentifiers, beside, direction), args
	case oda.LastModifiedFirst, oda.LastModifiedLast:
		begins := max(from.At, math.MinInt64+lag) - lag
		return fmt.Sprintf(walkModified, beside, direction, asFarAs), append(args, int64(from.At), int64(to.At), int64(begins))
	}
	args = append(args, int64(from.At), int64(to.At))
	table, filter := "creations", ""
	switch {
	case w.User != "":
		filter, args = "AND o.created_by = $7", append(args, w.User)
	case w.Status != "":
		table, filter, args = "standings", "AND o.folded = $7", append(args, w.Status)
	case w.Class != oda.NoClass:
		table, filter, args = "standings", "AND o.class = $7 AND o.class > 0", append(args, int16(w.Class))
	case w.Telescope != "":
		filter, args = "AND o.telescope = $7", append(args, w.Telescope)
	}
	return fmt.Sprintf(walkCreated, beside, direction, filter, table), args
}

// Places implements oda.Engine. A walk by creation reads the heads only if it needs
// them.
func (s *Store) Places(ctx context.Context, w oda.Walk, order oda.Sort) (places []oda.Place, err error) {
	if !isText(w.User) || !isText(w.Telescope) || !isText(w.Status) {
		return nil, nil // nobody has that name
	}
	table, beside := "h", ""
	if w.Sort == oda.NewestFirst || w.Sort == oda.OldestFirst {
		table = "o"
		if order == oda.LastModifiedFirst || order == oda.LastModifiedLast {
			table, beside = "h", createdHeads
		}
	}
	query, args := walkStatement(w, beside)
	err = s.reading(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, "SELECT "+placeIn(table, order)+query, args...)
		if err == nil {
			places, err = pgx.CollectRows(rows, placeOf)
		}
		return err
	})
	return places, s.storageError(ctx, err)
}

// Walk implements oda.Engine.
func (s *Store) Walk(ctx context.Context, w oda.Walk, emit func(*oda.Found, oda.Body) error) error {
	if !isText(w.User) || !isText(w.Telescope) || !isText(w.Status) {
		return nil // nobody has that name
	}
	columns, beside := walkColumns+`c.summary, NULL::integer[], NULL::bytea, NULL::bytea, `+standingColumns, walkSummaries
	if w.Bodies {
		columns, beside = walkColumns+`c.summary, v.slots, v.text, v.digest, `+standingColumns, walkSummaries+walkBodies
	}
	if w.Sort == oda.NewestFirst || w.Sort == oda.OldestFirst {
		beside = createdHeads + beside
	}
	query, args := walkStatement(w, beside)
	query = columns + query
	var (
		id      string
		m       oda.Metadata
		now     oda.Standing
		summary []byte
		slots   []int32
		body    oda.Body
	)
	row := append([]any{
		&id, &m.Version, &m.CreatedBy, &m.CreatedOn, &m.LastModifiedBy, &m.LastModifiedOn, &summary,
		&slots, &body.Text, (*digest)(&body.Digest),
	}, standingIn(&now)...)
	_, err := s.stream(ctx, query, args, row, func() error {
		found := oda.Found{Ref: oda.Ref{Kind: w.Kind, ID: id}, Metadata: m, Standing: now}
		var err error
		if found.Summary, err = oda.UnpackSummary(summary); err != nil {
			found.Damage = oda.DamagedSummary(found.Ref).Because(err)
		}
		if w.Bodies && found.Damage == nil {
			of := engine.Version{Ref: found.Ref, Number: m.Version}
			if body.Slots, err = decodeSlots(slots, len(body.Text)); err != nil {
				found.Damage = oda.Damaged(found.Ref, of.Number, 0).Because(err)
			} else {
				found.Damage = of.Check(body)
			}
		}
		return emit(&found, body)
	})
	if unreadable(err) {
		return oda.Damaged(oda.Ref{Kind: w.Kind, ID: id}, m.Version, 0).Because(err)
	}
	return err
}
