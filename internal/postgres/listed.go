package postgres

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"oda/internal/engine/migrate"
)

// listedStep moves the index by modification to a column of its own.
//
// Every record changes last_modified_on of its block. While that was indexed, each
// change made new entries in all indexes of the table. The index is now on
// listed_on, which lags behind: it is never later than last_modified_on, and less
// than 100 ms earlier. So most updates of a head stay within its page and change no
// index.
//
// The checksum is that of the first form of the step, one transaction in SQL, which
// left the same schema.
func listedStep(rows int) step {
	return step{
		Number: 2, Name: "listed", Checksum: "5e30db340208183f583999e4293f5c960865bea172f99d4ac394142b973e69b4",
		Work: func(ctx context.Context, tx pgx.Tx, at string) (migrate.Part, error) {
			return listHeads(ctx, tx, at, rows)
		},
	}
}

const (
	// fillListed fills the column of up to $3 heads after the head ($1, $2).
	fillListed = `WITH part AS (SELECT kind, identifier FROM heads WHERE (kind, identifier) > ($1, $2) ORDER BY kind, identifier LIMIT $3),
		filled AS (UPDATE heads h SET listed_on = h.last_modified_on FROM part p WHERE h.kind = p.kind AND h.identifier = p.identifier)
		SELECT (SELECT count(*) FROM part), kind, identifier FROM part ORDER BY kind DESC, identifier DESC LIMIT 1`

	// An older process that is still running may have written heads meanwhile.
	useListed = `LOCK TABLE heads IN ACCESS EXCLUSIVE MODE;
		UPDATE heads SET listed_on = last_modified_on
			WHERE listed_on IS NULL OR listed_on > last_modified_on OR last_modified_on >= listed_on + 100000;
		ALTER TABLE heads ALTER COLUMN listed_on SET NOT NULL;
		ALTER TABLE heads ADD CONSTRAINT heads_listed_near
			CHECK (listed_on <= last_modified_on AND last_modified_on < listed_on + 100000);
		DROP INDEX heads_modified;
		CREATE INDEX heads_listed ON heads (kind, listed_on, identifier)`
)

// filling is the last head that the step has filled.
type filling struct {
	Kind       int16  `json:"kind"`
	Identifier string `json:"identifier"`
	Done       int64  `json:"done"`
	Total      int64  `json:"total"`
	Filled     bool   `json:"filled"` // all heads are filled
}

// listHeads does a part of the step: it adds the column, fills it for some heads,
// or replaces the index once all are filled.
func listHeads(ctx context.Context, tx pgx.Tx, at string, rows int) (migrate.Part, error) {
	var f filling
	var err error
	if at != "" {
		err = json.Unmarshal([]byte(at), &f)
	}
	if err != nil {
		return migrate.Part{}, err
	}
	switch {
	case at == "":
		if err = script(ctx, tx, "ALTER TABLE heads ADD COLUMN listed_on bigint"); err == nil {
			err = tx.QueryRow(ctx, "SELECT sum(n)::bigint FROM counts").Scan(&f.Total)
		}
	case !f.Filled:
		err = fill(ctx, tx, &f, rows)
	default:
		return migrate.Part{Done: f.Done, Total: f.Total, End: true}, script(ctx, tx, useListed)
	}
	if err != nil {
		return migrate.Part{}, err
	}
	text, err := json.Marshal(f)
	return migrate.Part{At: string(text), Done: f.Done, Total: f.Total}, err
}

// fill fills the column of the next heads.
func fill(ctx context.Context, tx pgx.Tx, f *filling, rows int) error {
	var n int64
	err := tx.QueryRow(ctx, fillListed, f.Kind, f.Identifier, rows).Scan(&n, &f.Kind, &f.Identifier)
	if errors.Is(err, pgx.ErrNoRows) {
		f.Filled = true
		return nil
	}
	f.Done += n
	return err
}
