package postgres

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
	"oda/internal/engine"
)

// A version ends where the next one (n) begins. Its metadata is that of the last
// record (r) that was recorded into it, or that with which it was stored.
const (
	versionMetadata = `h.created_by, h.created_on, coalesce(r.recorded_by, v.stored_by, ''), coalesce(r.recorded_on, v.stored_on, 0)`
	nextVersion     = `LEFT JOIN LATERAL (SELECT version, sequence_before FROM versions
		WHERE kind = $1 AND identifier = $2 AND version = v.version + 1 AND h.version > v.version OFFSET 0) n ON true`
	// -1 if the next version is missing.
	versionLast = `CASE WHEN h.version > v.version THEN coalesce(n.sequence_before, -1) ELSE h.last_sequence END`
	lastRecord  = `LEFT JOIN LATERAL (SELECT recorded_by, recorded_on FROM records
		WHERE kind = $1 AND identifier = $2 AND sequence = e.sequence AND e.sequence > v.sequence_after OFFSET 0) r ON true`
)

// selectVersion reads a version as it ended, in the form of selectCurrent.
const selectVersion = `SELECT $3::bigint, ` + versionMetadata + `, e.sequence, coalesce(v.sequence_after, -1), v.runs, v.slots, ` + unlessLarge + `, v.digest,
	h.version > $3, '', ''::bytea
	FROM heads h
	LEFT JOIN LATERAL (SELECT * FROM versions WHERE kind = $1 AND identifier = $2 AND version = $3 OFFSET 0) v ON true
	` + nextVersion + `
	CROSS JOIN LATERAL (SELECT ` + versionLast + ` AS sequence) e
	` + lastRecord + `
	WHERE h.kind = $1 AND h.identifier = $2 AND h.version >= $3 AND $3 > 0`

// The version that was current at an instant ($3) is one of the sixteen that begin
// with the last mark (schema/0011_marks.sql).
const asOfVersion = `FROM heads h
	CROSS JOIN LATERAL (SELECT CASE WHEN h.version < 16 THEN 0 ELSE coalesce((SELECT version FROM versions WHERE kind = $1 AND identifier = $2 AND version % 16 = 0
		AND stored_on <= $3 ORDER BY stored_on DESC LIMIT 1), 0) END AS version OFFSET 0) m
	LEFT JOIN LATERAL (SELECT * FROM versions WHERE kind = $1 AND identifier = $2 AND version >= m.version
		AND version < m.version + 16 AND version <= h.version AND stored_on <= $3 ORDER BY version DESC LIMIT 1) v ON true
	` + nextVersion

// selectAsOf reads the latest state that is not after an instant, in the form of
// selectCurrent. If the next version or one of the records around the instant is
// missing, another state may have been lost, so there is no text, which counts as
// damage. Only blocks have records. The last record of then is the one before the
// first that is later; it is one of the sixty-four that begin with the last mark.
const (
	selectAsOf = `SELECT coalesce(v.version, h.version), h.created_by, h.created_on, coalesce(v.stored_by, ''), coalesce(v.stored_on, 0), 0::bigint, 0::bigint,
		v.runs, v.slots, CASE WHEN t.bytes <= 65536 THEN v.text END, coalesce(t.bytes, 0), v.digest, coalesce(h.version > v.version, false), '', ''::bytea
	` + asOfVersion + `
	CROSS JOIN LATERAL (SELECT CASE WHEN v.version = h.version OR n.version IS NOT NULL THEN octet_length(v.text) END AS bytes) t
	WHERE h.kind = $1 AND h.identifier = $2 AND h.created_on <= $3`

	selectBlockAsOf = `SELECT coalesce(v.version, h.version), ` + versionMetadata + `, coalesce(e.sequence, 0), coalesce(v.sequence_after, 0), v.runs, v.slots,
		CASE WHEN t.bytes <= 65536 THEN v.text END, coalesce(t.bytes, 0), v.digest, coalesce(h.version > v.version, false), '', ''::bytea
	` + asOfVersion + `
	CROSS JOIN LATERAL (SELECT ` + versionLast + ` AS sequence) l
	CROSS JOIN LATERAL (SELECT CASE WHEN l.sequence < 64 THEN 0 ELSE coalesce((SELECT sequence FROM records WHERE kind = $1 AND identifier = $2 AND sequence % 64 = 0
		AND recorded_on <= $3 ORDER BY recorded_on DESC, sequence DESC LIMIT 1), 0) END AS sequence OFFSET 0) s
	CROSS JOIN LATERAL (SELECT coalesce((SELECT sequence - 1 FROM records WHERE kind = $1 AND identifier = $2 AND sequence > v.sequence_after
		AND sequence >= s.sequence AND sequence <= s.sequence + 64 AND sequence <= l.sequence AND recorded_on > $3
		ORDER BY sequence LIMIT 1), CASE WHEN l.sequence <= s.sequence + 64 THEN l.sequence ELSE -1 END) AS sequence OFFSET 0) e
	` + lastRecord + `
	CROSS JOIN LATERAL (SELECT CASE WHEN (v.version = h.version OR n.version IS NOT NULL)
		AND (e.sequence = v.sequence_after OR r.recorded_on IS NOT NULL) THEN octet_length(v.text) END AS bytes) t
	WHERE h.kind = $1 AND h.identifier = $2 AND h.created_on <= $3`
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

// past returns a past or current state.
func (s *Store) past(ctx context.Context, ref oda.Ref, missing error, query string, which int64) (*oda.Entity, error) {
	r, err := s.read(ctx, s.with, ref, query, int16(ref.Kind), ref.ID, which)
	if err != nil {
		return nil, s.storageError(ctx, err)
	}
	if r == nil {
		return nil, missing
	}
	if r.body.Text == nil && r.bytes == 0 && query != selectVersion {
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
	err := s.reading(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		page = engine.VersionPage{}
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
	if err != nil {
		return nil, s.storageError(ctx, err)
	}
	return page.All(ref, before, limit, func() (*oda.Entity, error) { return s.Get(ctx, ref) })
}
