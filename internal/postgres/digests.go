package postgres

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"oda/internal/engine/migrate"
)

// digestsStep adds digests and seals to rows that were stored before there were
// any: first to versions, then to records, in the order of their keys.
func digestsStep(rows int) step {
	return step{
		Number: 8, Name: "digests of what is stored", Checksum: "digests",
		Work: func(ctx context.Context, tx pgx.Tx, at string) (migrate.Part, error) {
			var d digesting
			if at != "" {
				if err := json.Unmarshal([]byte(at), &d); err != nil {
					return migrate.Part{}, err
				}
			}
			return d.part(ctx, tx, rows)
		},
	}
}

// In the first two statements, $1 to $3 are the key after which a part begins, and
// $4 is how many rows it has. Records that were sent with an idempotency key
// already have a digest.
const (
	digestVersions = `WITH part AS (SELECT kind, identifier, version, sha256(text) AS digest FROM versions
			WHERE (kind, identifier, version) > ($1, $2, $3) ORDER BY kind, identifier, version LIMIT $4),
		filled AS (UPDATE versions v SET digest = p.digest, seal = archive_version_seal(v.kind, v.identifier, v.version,
				v.stored_by, v.stored_on, v.sequence_before, v.sequence_after, v.runs, v.slots, p.digest)
			FROM part p WHERE v.kind = p.kind AND v.identifier = p.identifier AND v.version = p.version)
		SELECT (SELECT count(*) FROM part), kind, identifier, version FROM part ORDER BY kind DESC, identifier DESC, version DESC LIMIT 1`
	digestRecords = `WITH part AS (SELECT kind, identifier, sequence, coalesce(digest, sha256(text)) AS digest FROM records
			WHERE (kind, identifier, sequence) > ($1, $2, $3) ORDER BY kind, identifier, sequence LIMIT $4),
		filled AS (UPDATE records r SET digest = p.digest, seal = archive_record_seal(r.identifier, r.sequence, r.version,
				r.recorded_by, r.recorded_on, r.key, p.digest)
			FROM part p WHERE r.kind = p.kind AND r.identifier = p.identifier AND r.sequence = p.sequence)
		SELECT (SELECT count(*) FROM part), kind, identifier, sequence FROM part ORDER BY kind DESC, identifier DESC, sequence DESC LIMIT 1`

	useDigests = "ALTER TABLE records ALTER COLUMN digest SET NOT NULL"
)

// digesting is the key of the last row that the step has completed.
type digesting struct {
	Table      int    `json:"table"` // 0: versions, 1: records, 2: both are done
	Kind       int16  `json:"kind"`
	Identifier string `json:"identifier"`
	Number     int64  `json:"number"` // version or sequence
	Done       int64  `json:"done"`
	Total      int64  `json:"total"`
}

// part completes the next rows, or sets the constraint once all are complete.
func (d digesting) part(ctx context.Context, tx pgx.Tx, rows int) (migrate.Part, error) {
	if d.Table == 2 {
		return migrate.Part{Done: d.Done, Total: d.Total, End: true}, script(ctx, tx, useDigests)
	}
	if d.Total == 0 {
		err := tx.QueryRow(ctx, "SELECT coalesce(sum(version + last_sequence), 0)::bigint FROM heads").Scan(&d.Total)
		if err != nil {
			return migrate.Part{}, err
		}
	}
	var n int64
	err := tx.QueryRow(ctx, []string{digestVersions, digestRecords}[d.Table], d.Kind, d.Identifier, d.Number, rows).
		Scan(&n, &d.Kind, &d.Identifier, &d.Number)
	if errors.Is(err, pgx.ErrNoRows) {
		d = digesting{Table: d.Table + 1, Done: d.Done, Total: d.Total}
	} else if err != nil {
		return migrate.Part{}, err
	}
	d.Done += n
	text, err := json.Marshal(d)
	return migrate.Part{At: string(text), Done: d.Done, Total: d.Total}, err
}
