package postgres

import (
	"cmp"
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
	"oda/internal/engine"
)

// A version ends where the next one (n) begins. Its metadata is that of the last
// record (r) that was recorded into it, or of its store.
const (
	versionMetadata = `h.created_by, h.created_on, coalesce(r.recorded_by, v.stored_by, ''), coalesce(r.recorded_on, v.stored_on, 0)`
	nextVersion     = `LEFT JOIN LATERAL (SELECT version, sequence_before FROM versions
		WHERE kind = $1 AND identifier = $2 AND version = v.version + 1 OFFSET 0) n ON true`
	// There is no end where the next version is missing.
	versionLast = `CASE WHEN h.version > v.version THEN coalesce(n.sequence_before, -1) ELSE h.last_sequence END`
	lastRecord  = `LEFT JOIN LATERAL (SELECT recorded_by, recorded_on FROM records
		WHERE kind = $1 AND identifier = $2 AND sequence = e.sequence AND e.sequence > v.sequence_after OFFSET 0) r ON true`
)

// selectVersion reads a version as it ended, in selectCurrent's form.
const selectVersion = `SELECT $3::bigint, ` + versionMetadata + `, e.sequence, coalesce(v.sequence_after, -1), v.runs, v.slots, v.text, v.digest,
	h.version > $3, '', ''::bytea
	FROM heads h
	LEFT JOIN LATERAL (SELECT * FROM versions WHERE kind = $1 AND identifier = $2 AND version = $3 OFFSET 0) v ON true
	` + nextVersion + `
	CROSS JOIN LATERAL (SELECT ` + versionLast + ` AS sequence) e
	` + lastRecord + `
	WHERE h.kind = $1 AND h.identifier = $2 AND h.version >= $3 AND $3 > 0`

// A search for the last of a row of numbers that is not after an instant ($3),
// between two marks: the rule of engine.Around. It ends with high = low + 1.
const (
	searchNext = `least(high - 1, greatest(low + 1, CASE WHEN step % 5 = 0 THEN (low + high) / 2
		ELSE low + floor(($3 - low_on)::float8 / (high_on - low_on) * (high - low))::bigint + beyond * (1 + floor(sqrt(high - low) / 3)::bigint) END))`
	searchStep = `CASE WHEN m.at <= $3 THEN m.number ELSE low END, CASE WHEN m.at <= $3 THEN m.at ELSE low_on END,
			CASE WHEN m.at <= $3 THEN high ELSE m.number END, CASE WHEN m.at <= $3 THEN high_on ELSE m.at END,
			CASE WHEN m.at <= $3 THEN 1 ELSE -1 END, step + 1`
	searchVersion = `WITH RECURSIVE h AS (
		SELECT * FROM heads WHERE kind = $1 AND identifier = $2 AND created_on <= $3
	), versions_left (low, low_on, high, high_on, beyond, step) AS (
		SELECT CASE WHEN last_modified_on <= $3 THEN version ELSE 1 END, created_on, version + 1, last_modified_on, 0, 1 FROM h
		UNION ALL
		SELECT ` + searchStep + ` FROM versions_left CROSS JOIN LATERAL (SELECT version AS number, stored_on AS at FROM versions
			WHERE kind = $1 AND identifier = $2 AND version = ` + searchNext + ` OFFSET 0) m
		WHERE high - low > 1
	), v AS (
		SELECT f.*, high_on FROM versions_left CROSS JOIN LATERAL (SELECT * FROM versions
			WHERE kind = $1 AND identifier = $2 AND version = low OFFSET 0) f
		WHERE high - low = 1
	)`
)

// selectAsOf reads the latest state that is not after an instant, in
// selectCurrent's form. If a row is missing on the way, there is no text, which
// is damage. Nothing is recorded into an entity that is not a block.
const (
	selectAsOf = searchVersion + `
	SELECT coalesce(v.version, h.version), h.created_by, h.created_on, coalesce(v.stored_by, ''), coalesce(v.stored_on, 0), 0::bigint, 0::bigint,
		v.runs, v.slots, v.text, v.digest, coalesce(h.version > v.version, false), '', ''::bytea
	FROM h LEFT JOIN v ON true`

	selectBlockAsOf = searchVersion + `, n AS (
		SELECT ` + versionLast + ` AS sequence FROM h CROSS JOIN v ` + nextVersion + `
	), records_left (low, low_on, high, high_on, beyond, step) AS (
		SELECT CASE WHEN h.last_modified_on <= $3 THEN n.sequence ELSE v.sequence_after END, v.stored_on, n.sequence + 1, v.high_on, 0, 1
		FROM h CROSS JOIN v CROSS JOIN n
		UNION ALL
		SELECT ` + searchStep + ` FROM records_left CROSS JOIN LATERAL (SELECT sequence AS number, recorded_on AS at FROM records
			WHERE kind = $1 AND identifier = $2 AND sequence = ` + searchNext + ` OFFSET 0) m
		WHERE high - low > 1
	), e AS (SELECT low AS sequence FROM records_left WHERE high - low = 1)
	SELECT coalesce(v.version, h.version), ` + versionMetadata + `, coalesce(e.sequence, 0), coalesce(v.sequence_after, 0), v.runs, v.slots,
		CASE WHEN e.sequence IS NOT NULL THEN v.text END, v.digest, coalesce(h.version > v.version, false), '', ''::bytea
	FROM h LEFT JOIN v ON true LEFT JOIN e ON true ` + lastRecord
)

// Version implements oda.Engine.
func (s *Store) Version(ctx context.Context, ref oda.Ref, version int64) (*oda.Entity, error) {
	return s.past(ctx, ref, oda.MissingVersion(ref, version), selectVersion, version)
}

// AsOf implements oda.Engine.
func (s *Store) AsOf(ctx context.Context, ref oda.Ref, at oda.Instant) (*oda.Entity, error) {
	query := selectAsOf
	if ref.Kind == oda.ExecutionBlock {
		query = selectBlockAsOf
	}
	return s.past(ctx, ref, oda.MissingAsOf(ref, at), query, int64(at))
}

// past reads a state that is or was.
func (s *Store) past(ctx context.Context, ref oda.Ref, missing error, query string, which int64) (*oda.Entity, error) {
	r, err := s.read(ctx, s.with, ref, query, int16(ref.Kind), ref.ID, which)
	if err != nil {
		return nil, s.storageError(ctx, err)
	}
	if r == nil {
		return nil, missing
	}
	if r.body.Text == nil && query != selectVersion {
		return nil, oda.LostHistory(ref)
	}
	return s.entity(ctx, r)
}

const selectVersions = `SELECT v.version, ` + versionMetadata + `, e.sequence, v.sequence_after, v.runs, v.bytes
	FROM heads h
	CROSS JOIN LATERAL (SELECT version, stored_by, stored_on, sequence_after, runs, octet_length(text) AS bytes FROM versions
		WHERE kind = $1 AND identifier = $2 AND version < $3 ORDER BY version DESC LIMIT $4) v
	` + nextVersion + `
	CROSS JOIN LATERAL (SELECT ` + versionLast + ` AS sequence) e
	` + lastRecord + `
	WHERE h.kind = $1 AND h.identifier = $2 ORDER BY v.version DESC`

// Versions implements oda.Engine.
func (s *Store) Versions(ctx context.Context, ref oda.Ref, before int64, limit int) ([]oda.VersionInfo, error) {
	var page engine.VersionPage
	err := s.again(ctx, func(ctx context.Context) error {
		page = engine.VersionPage{}
		return s.with(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
			rows, err := conn.Query(ctx, selectVersions, int16(ref.Kind), ref.ID, before, limit)
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				var m oda.Metadata
				var last, after, bytes int64
				var runs []int64
				err := rows.Scan(&m.Version, &m.CreatedBy, &m.CreatedOn, &m.LastModifiedBy, &m.LastModifiedOn, &last, &after, &runs, &bytes)
				if unreadable(err) {
					return oda.Damaged(ref, m.Version, 0).Because(err)
				}
				if err != nil {
					return err
				}
				current, err := currentRuns(engine.Version{Ref: ref, Number: m.Version}, runs, after, last)
				if err != nil {
					return err
				}
				if !page.Add(m, bytes, current) {
					return nil
				}
			}
			return rows.Err()
		})
	})
	switch {
	case err != nil:
		return nil, s.storageError(ctx, err)
	case len(page.Versions) == 0:
		e, err := s.Get(ctx, ref)
		if err == nil && before > 1 {
			err = oda.LostVersion(ref, min(before-1, e.Metadata.Version))
		}
		return nil, cmp.Or(err, error(oda.Missing(ref)))
	}
	return page.Versions, page.Check(ref, limit)
}
