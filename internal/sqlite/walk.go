package sqlite

import (
	"context"
	"fmt"
	"strings"

	"zombiezen.com/go/sqlite"

	"oda"
	"oda/internal/engine"
)

// walkStatement returns the statement of a walk that reads columns of the heads and
// of what is joined to them. It goes along one index between two places, in either
// direction, and looks up the rest by the number of the entity. So every entity
// costs the same, and nothing is sorted.
func walkStatement(w oda.Walk, columns, beside string) (string, []any) {
	from, index, filter := "heads h", "heads_identifier", ""
	place, low, top := "h.identifier", "?3", "?5"
	order, direction := "h.identifier", "ASC"
	switch w.Sort {
	case oda.NewestFirst, oda.OldestFirst:
		index = "heads_created"
	case oda.LastModifiedFirst, oda.LastModifiedLast:
		index = "heads_modified"
	}
	least, most := w.Range()
	args := []any{int64(w.Kind), int64(least.At), least.ID, int64(most.At), most.ID, int64(w.Limit)}
	switch {
	case w.User != "":
		index, filter, args = "heads_user", "AND h.created_by = ?7", append(args, w.User)
	case w.Status != "":
		from, index, filter, args = "standings w", "standings_status", "AND w.folded = ?7", append(args, w.Status)
	case w.Class != oda.NoClass:
		from, index, filter, args = "standings w", "standings_class", "AND w.class = ?7 AND w.class > 0", append(args, int64(w.Class))
	case w.Telescope != "":
		index, filter, args = "heads_telescope", "AND h.telescope = ?7", append(args, w.Telescope)
	}
	if instant := instantOf(w.Sort); instant != "0" {
		place, low, top = "("+instant+", h.identifier)", "(?2, ?3)", "(?4, ?5)"
		order = instant + " %[1]s, h.identifier"
	}
	if w.Sort.Descends() {
		direction = "DESC"
	}
	joined, along := "", "h."
	if from != "heads h" {
		joined, along = " CROSS JOIN heads h ON h.entity = w.entity", "w."
	}
	place, order = strings.ReplaceAll(place, "h.", along), strings.ReplaceAll(order, "h.", along)
	return fmt.Sprintf(`SELECT `+columns+` FROM `+from+` INDEXED BY `+index+joined+beside+`
		WHERE `+along+`kind = ?1 AND `+place+` > `+low+` AND `+place+` < `+top+` `+filter+`
		ORDER BY `+order+` %[1]s LIMIT ?6`, direction), args
}

// Places implements oda.Engine.
func (s *Store) Places(ctx context.Context, w oda.Walk, order oda.Sort) (places []oda.Place, err error) {
	query, args := walkStatement(w, "h.identifier, "+instantOf(order), "")
	err = s.finding(ctx, func(c *conn) error {
		return c.query(query, func(stmt *sqlite.Stmt) error {
			places = append(places, oda.Place{ID: stmt.ColumnText(0), At: oda.Instant(stmt.ColumnInt64(1))})
			return nil
		}, args...)
	})
	return places, err
}

// Walk implements oda.Engine. It is one statement, and so one snapshot.
func (s *Store) Walk(ctx context.Context, w oda.Walk, emit func(*oda.Found, oda.Body) error) error {
	columns, beside := foundColumns, foundJoined
	if w.Bodies {
		columns += ", v.slots, v.text, v.digest"
		beside += " LEFT JOIN versions v ON v.position = h.position AND v.entity = h.entity AND v.version = h.version"
	}
	query, args := walkStatement(w, columns, beside)
	var stopped error // the error of emit, which is returned as it is
	err := s.finding(ctx, func(c *conn) error {
		return c.query(query, func(stmt *sqlite.Stmt) error {
			found := foundIn(stmt)
			var body oda.Body
			if w.Bodies && found.Damage == nil {
				var err error
				of := engine.Version{Ref: found.Ref, Number: found.Metadata.Version}
				body.Text, body.Digest = bytesOf(stmt, 15), digestOf(stmt, 16)
				if body.Slots, err = decodeSlots(bytesOf(stmt, 14), len(body.Text)); err != nil {
					found.Damage = oda.Damaged(found.Ref, of.Number, 0).Because(err)
				} else {
					found.Damage = of.Check(body)
				}
			}
			stopped = emit(&found, body)
			return stopped
		}, args...)
	})
	if stopped != nil {
		return stopped
	}
	return err
}
