package postgres

import (
	"cmp"
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
	"oda/internal/engine"
)

// partRecords is how many records of a block are read at a time, so that a slow
// client holds no connection.
const partRecords = 512

// selectCurrent looks up the version after it has found the head. A plain join might
// read all versions of the entity and then compare them with the head.
const selectCurrent = `SELECT h.version, h.created_by, h.created_on, h.last_modified_by, h.last_modified_on, h.last_sequence,
	coalesce(v.sequence_after, -1), v.runs, v.slots, v.text, v.digest, false, '', ''::bytea
	FROM heads h LEFT JOIN LATERAL (SELECT * FROM versions
		WHERE kind = h.kind AND identifier = h.identifier AND version = h.version OFFSET 0) v ON true
	WHERE h.kind = $1 AND h.identifier = $2`

// row is what a statement reads about an entity.
type row struct {
	engine.Version
	metadata     oda.Metadata
	lastSequence int64
	body         oda.Body
	runs         engine.Runs // nil: no list of records
	superseded   bool        // there is a later version
	damage       error       // why it must not be served
	keyDigest    []byte      // if it was found by its key
}

// runner runs work on a connection: with or write.
type runner func(ctx context.Context, work func(context.Context, *pgxpool.Conn) error) error

// read reads one row in the form of selectCurrent, nil if there is none. A row that
// was found by its key says which entity it is.
func (s *Store) read(ctx context.Context, run runner, ref oda.Ref, query string, args ...any) (*row, error) {
	var r row
	var id string
	var after int64
	var runs []int64
	var slots []int32
	m := &r.metadata
	err := s.again(ctx, func(ctx context.Context) error {
		return run(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
			return conn.QueryRow(ctx, query, args...).Scan(
				&m.Version, &m.CreatedBy, &m.CreatedOn, &m.LastModifiedBy, &m.LastModifiedOn, &r.lastSequence,
				&after, &runs, &slots, &r.body.Text, (*digest)(&r.body.Digest), &r.superseded, &id, &r.keyDigest)
		})
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	ref.ID = cmp.Or(ref.ID, id)
	r.Version = engine.Version{Ref: ref, Number: m.Version}
	if unreadable(err) {
		r.damage = oda.Damaged(ref, m.Version, 0).Because(err)
		return &r, nil
	}
	if err != nil {
		return nil, err
	}
	if r.runs, r.damage = currentRuns(r.Version, runs, after, r.lastSequence); r.damage != nil {
		return &r, nil
	}
	if r.body.Slots, err = decodeSlots(slots, len(r.body.Text)); err != nil {
		r.damage = oda.Damaged(ref, m.Version, 0).Because(err)
	}
	return &r, nil
}

// digest scans the digest of a text. If the column has none, it becomes a digest
// that no text has.
type digest oda.Digest

// ScanBytes implements pgtype.BytesScanner.
func (d *digest) ScanBytes(v []byte) error {
	*d = digest{}
	if len(v) == len(d) {
		copy(d[:], v)
	}
	return nil
}

// Get implements oda.Engine.
func (s *Store) Get(ctx context.Context, ref oda.Ref) (*oda.Entity, error) {
	r, err := s.read(ctx, s.with, ref, selectCurrent, int16(ref.Kind), ref.ID)
	if err != nil {
		return nil, s.storageError(ctx, err)
	}
	if r == nil {
		return nil, oda.Missing(ref)
	}
	return s.entity(ctx, r)
}

// entity returns what was read as an oda.Entity, if its text is the one that was
// stored.
func (s *Store) entity(ctx context.Context, r *row) (*oda.Entity, error) {
	if r.damage != nil {
		return nil, r.damage
	}
	if err := r.Check(r.body); err != nil {
		return nil, err
	}
	e := &oda.Entity{Ref: r.Ref, Metadata: r.metadata, Body: r.body, Superseded: r.superseded}
	if r.runs != nil {
		e.Records = s.texts(ctx, r.Version, r.runs)
	}
	return e, nil
}

// texts reads the records of a version.
func (s *Store) texts(ctx context.Context, of engine.Version, runs engine.Runs) oda.Texts {
	read := s.parts(ctx, of.Ref)
	return engine.Texts(of, runs, func(first, last int64) ([]engine.Numbered, error) {
		part, err := read(first, last)
		return part, s.storageError(ctx, err)
	})
}

// parts reads records of a block a part at a time.
func (s *Store) parts(ctx context.Context, ref oda.Ref) func(first, last int64) ([]engine.Numbered, error) {
	return func(first, last int64) (part []engine.Numbered, err error) {
		err = s.reading(ctx, func(ctx context.Context, conn *pgxpool.Conn) (err error) {
			part, err = readPart(ctx, conn, ref, first, min(last, first+partRecords-1))
			return err
		})
		return part, err
	}
}

// textsWithin reads records within a transaction. Its parts grow from a small size,
// because a few records may be enough and the head is locked meanwhile.
func textsWithin(ctx context.Context, tx pgx.Tx, of engine.Version, runs engine.Runs) oda.Texts {
	size := int64(8)
	return engine.Texts(of, runs, func(first, last int64) ([]engine.Numbered, error) {
		size = min(2*size, partRecords)
		return readPart(ctx, tx, of.Ref, first, min(last, first+size-1))
	})
}

// queryer is a connection or a transaction.
type queryer interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// readPart reads the records from first to last.
func readPart(ctx context.Context, q queryer, ref oda.Ref, first, last int64) ([]engine.Numbered, error) {
	rows, err := q.Query(ctx, `SELECT sequence, recorded_on, text, digest FROM records
		WHERE kind = $1 AND identifier = $2 AND sequence BETWEEN $3 AND $4 ORDER BY sequence`, int16(ref.Kind), ref.ID, first, last)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r engine.Numbered, err error) {
		return r, row.Scan(&r.Sequence, &r.RecordedOn, &r.Text, (*digest)(&r.Digest))
	})
}

// Counts implements oda.Engine.
func (s *Store) Counts(ctx context.Context) (map[oda.Kind]int64, error) {
	counts := make(map[oda.Kind]int64, len(oda.Kinds))
	err := s.reading(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, "SELECT kind, sum(n)::bigint FROM counts GROUP BY kind")
		if err != nil {
			return err
		}
		var kind int16
		var n int64
		_, err = pgx.ForEachRow(rows, []any{&kind, &n}, func() error {
			counts[oda.Kind(kind)] = n
			return nil
		})
		return err
	})
	return counts, s.storageError(ctx, err)
}
