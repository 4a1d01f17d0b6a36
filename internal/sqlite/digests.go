package sqlite

import (
	"context"
	"encoding/json"
	"errors"

	"zombiezen.com/go/sqlite"

	"oda"
	"oda/internal/engine/migrate"
)

// digestsStep adds digests and seals to rows that were stored before there were
// any: first to versions, then to records, in the order of positions.
func digestsStep(rows int) step {
	return step{Number: 6, Name: "digests of what is stored", Checksum: "digests", Work: func(_ context.Context, c *conn, at string) (migrate.Part, error) {
		var f digesting
		if at != "" {
			if err := json.Unmarshal([]byte(at), &f); err != nil {
				return migrate.Part{}, err
			}
		}
		return f.part(c, rows)
	}}
}

// digesting is how far the step has come.
type digesting struct {
	Records  bool  `json:"records"`  // the versions are done
	Position int64 `json:"position"` // the last one that is done
	Done     int64 `json:"done"`
}

// partTexts is how many bytes of texts end a part of a step.
const partTexts = 8 << 20

// sealed is what a row lacks.
type sealed struct {
	position int64
	digest   oda.Digest
	seal     any // nil if the row cannot be read
}

// part completes the next rows.
func (f digesting) part(c *conn, rows int) (migrate.Part, error) {
	// What is there stays, so that running the step again cannot seal an edited row.
	read, update := sealVersions, "UPDATE versions SET digest = coalesce(digest, ?), seal = coalesce(seal, ?) WHERE position = ?"
	if f.Records {
		read, update = sealRecords, "UPDATE records SET digest = coalesce(digest, ?), seal = coalesce(seal, ?) WHERE position = ?"
	}
	total, err := c.number("SELECT last_position FROM state")
	if err != nil {
		return migrate.Part{}, err
	}
	found, err := read(c, f.Position, rows)
	if err != nil {
		return migrate.Part{}, err
	}
	for i := range found {
		r := &found[i]
		if err := c.exec(update, r.digest[:], r.seal, r.position); err != nil {
			return migrate.Part{}, err
		}
		f.Position = r.position
	}
	f.Done += int64(len(found))
	if len(found) == 0 {
		if f.Records {
			return migrate.Part{Done: total, Total: total, End: true}, nil
		}
		f.Records, f.Position = true, 0
	}
	text, err := json.Marshal(f)
	return migrate.Part{At: string(text), Done: f.Done, Total: total}, err
}

// sealVersions returns what versions after a position lack.
func sealVersions(c *conn, behind int64, rows int) (found []sealed, err error) {
	size := 0
	err = c.query(`SELECT entity, position, version, stored_by, stored_on, sequence_before, sequence_after, runs, slots, text, NULL
		FROM versions WHERE position > ? ORDER BY position LIMIT ?`, func(stmt *sqlite.Stmt) error {
		row, text, damage := versionRow(stmt)
		row.Digest = oda.DigestOf(text)
		r := sealed{position: stmt.ColumnInt64(1), digest: row.Digest}
		if damage == nil {
			seal := row.Seal()
			r.seal = seal[:]
		}
		found = append(found, r)
		return partFull(&size, len(text))
	}, behind, int64(rows))
	return found, notFull(err)
}

// sealRecords returns what records after a position lack. Records that were sent
// with a key already have a digest.
func sealRecords(c *conn, behind int64, rows int) (found []sealed, err error) {
	size := 0
	err = c.query(`SELECT entity, position, sequence, version, recorded_by, recorded_on, key, digest, text
		FROM records WHERE position > ? ORDER BY position LIMIT ?`, func(stmt *sqlite.Stmt) error {
		row, text := recordRow(stmt), bytesOf(stmt, 8)
		if stmt.ColumnIsNull(7) {
			row.Digest = oda.DigestOf(text)
		}
		seal := row.Seal()
		found = append(found, sealed{stmt.ColumnInt64(1), row.Digest, seal[:]})
		return partFull(&size, len(text))
	}, behind, int64(rows))
	return found, notFull(err)
}

// partFull adds to the size of a part. It returns errPartFull if that is enough.
func partFull(size *int, more int) error {
	if *size += more; *size > partTexts {
		return errPartFull
	}
	return nil
}

// notFull returns err, or nil if err is errPartFull.
func notFull(err error) error {
	if errors.Is(err, errPartFull) {
		return nil
	}
	return err
}
