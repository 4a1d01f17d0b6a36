package sqlite

import (
	"context"
	"strconv"

	"zombiezen.com/go/sqlite"

	"oda/internal/engine/migrate"
)

// creationsStep seals first versions again whose entities were created by somebody else, or
// earlier, as some that were imported: the seal did not cover that. A row that does not fit
// its seal keeps it.
func creationsStep(rows int) step {
	return step{Number: 7, Name: "seals of creations", Checksum: "seals of creations 1", Work: func(_ context.Context, c *conn, at string) (migrate.Part, error) {
		var after int64
		if at != "" {
			var err error
			if after, err = strconv.ParseInt(at, 10, 64); err != nil {
				return migrate.Part{}, err
			}
		}
		return sealCreations(c, after, rows)
	}}
}

// sealCreations seals the next versions behind an entity.
func sealCreations(c *conn, after int64, rows int) (migrate.Part, error) {
	var found []sealed
	n := 0
	err := c.query(`SELECT v.entity, v.position, v.version, v.stored_by, v.stored_on, v.sequence_before, v.sequence_after, v.runs, v.slots, v.text, v.digest, v.seal,
			h.version, h.created_by, h.created_on, h.last_modified_by, h.last_modified_on
		FROM heads h JOIN versions v ON v.entity = h.entity AND v.version = 1
		WHERE h.entity > ? AND (h.created_by <> v.stored_by OR h.created_on <> v.stored_on) ORDER BY h.entity LIMIT ?`, func(stmt *sqlite.Stmt) error {
		n++
		after = stmt.ColumnInt64(0)
		row, _, damage := versionRow(stmt)
		if damage != nil || !row.Seal().Fits(bytesOf(stmt, 11)) {
			return nil
		}
		row.OfEntity(metadataOf(stmt, 12))
		seal := row.Seal()
		found = append(found, sealed{position: stmt.ColumnInt64(1), seal: seal[:]})
		return nil
	}, after, int64(rows))
	for i := range found {
		if err == nil {
			err = c.exec("UPDATE versions SET seal = ? WHERE position = ?", found[i].seal, found[i].position)
		}
	}
	return migrate.Part{At: strconv.FormatInt(after, 10), End: n < rows}, err
}
