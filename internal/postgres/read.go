package postgres

import (
	"cmp"
	"context"
	"errors"
	"math"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
	"oda/internal/engine"
)

// Bounds of what is read from a block at a time, so that a slow client holds no
// connection, and little memory.
const (
	partRecords = 512
	partBytes   = 512 << 10
)

// unlessLarge is the text of a version, unless that is large (oda.LargeText), and its size.
const unlessLarge = `CASE WHEN octet_length(v.text) <= 65536 THEN v.text END, coalesce(octet_length(v.text), 0)`

// selectCurrent looks up the version after it has found the head. A plain join might
// read all versions of the entity and then compare them with the head.
const selectCurrent = `SELECT h.version, h.created_by, h.created_on, h.last_modified_by, h.last_modified_on, h.last_sequence,
	coalesce(v.sequence_after, -1), v.runs, v.slots, ` + unlessLarge + `, v.digest, false, '', ''::bytea
	FROM heads h LEFT JOIN LATERAL (SELECT * FROM versions
		WHERE kind = h.kind AND identifier = h.identifier AND version = h.version OFFSET 0) v ON true
	WHERE h.kind = $1 AND h.identifier = $2`

// row is what a statement reads about an entity.
type row struct {
	engine.Version
	metadata     oda.Metadata
	lastSequence int64
	body         oda.Body
	bytes        int64       // of the text; a large one is not read yet
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
				&after, &runs, &slots, &r.body.Text, &r.bytes, (*digest)(&r.body.Digest), &r.superseded, &id, &r.keyDigest)
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
	if r.body.Slots, err = decodeSlots(slots, int(r.bytes)); err != nil {
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
	if err := s.readLarge(ctx, r); err != nil {
		return nil, err
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

// readLarge reads a text that was left out because it is large, once there is room for
// it. What a version was stored with never changes, so no snapshot is needed.
func (s *Store) readLarge(ctx context.Context, r *row) error {
	if r.body.Text != nil || r.bytes == 0 {
		return nil
	}
	if err := oda.RoomIn(ctx).Take(ctx, r.bytes); err != nil {
		return err
	}
	var err error
	r.body.Text, err = s.text(ctx, "SELECT text FROM versions WHERE kind = $1 AND identifier = $2 AND version = $3", int16(r.Kind), r.ID, r.Number)
	return s.storageError(ctx, err)
}

// text reads one text, nil if it is not there.
func (s *Store) text(ctx context.Context, query string, args ...any) (text []byte, err error) {
	err = s.reading(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, query, args...).Scan(&text)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return text, err
}

// recordText reads the text of one record.
func (s *Store) recordText(ctx context.Context, ref oda.Ref, sequence int64) ([]byte, error) {
	return s.text(ctx, "SELECT text FROM records WHERE kind = $1 AND identifier = $2 AND sequence = $3", int16(ref.Kind), ref.ID, sequence)
}

// texts reads the records of a version.
func (s *Store) texts(ctx context.Context, of engine.Version, runs engine.Runs) oda.Texts {
	read := s.parts(ctx, of.Ref)
	return engine.Texts(of, runs, func(first, last int64) ([]engine.Numbered, error) {
		part, err := read(first, last)
		return part, s.storageError(ctx, err)
	})
}

// parts reads records of a block a part at a time. Large texts are read later, one by one.
func (s *Store) parts(ctx context.Context, ref oda.Ref) func(first, last int64) ([]engine.Numbered, error) {
	p := part{ref: ref, most: oda.LargeText, later: func(sequence, bytes int64) func() ([]byte, func(), error) {
		return engine.Later(ctx, bytes, func() ([]byte, error) {
			text, err := s.recordText(ctx, ref, sequence)
			return text, s.storageError(ctx, err)
		})
	}}
	records := int64(partRecords)
	return func(first, last int64) (read []engine.Numbered, err error) {
		err = s.reading(ctx, func(ctx context.Context, conn *pgxpool.Conn) (err error) {
			read, err = p.read(ctx, conn, first, min(last, first+records-1))
			return err
		})
		// Of a part that is full, the server has sent records in vain.
		records = min(partRecords, 2*max(1, int64(len(read))))
		return read, err
	}
}

// textsWithin reads records within a transaction. Its parts grow from a small size,
// because a few records may be enough and the head is locked meanwhile.
func textsWithin(ctx context.Context, tx pgx.Tx, of engine.Version, runs engine.Runs) oda.Texts {
	size := int64(8)
	p := part{ref: of.Ref, most: math.MaxInt64} // nothing may wait within a transaction
	return engine.Texts(of, runs, func(first, last int64) ([]engine.Numbered, error) {
		size = min(2*size, partRecords)
		return p.read(ctx, tx, first, min(last, first+size-1))
	})
}

// queryer is a connection or a transaction.
type queryer interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// part reads records of a block. Those with a text of more than most bytes are read by
// what later returns.
type part struct {
	ref   oda.Ref
	most  int64
	later func(sequence, bytes int64) func() ([]byte, func(), error)
}

// read reads the records from first to last, or as many of them as fit.
func (p part) read(ctx context.Context, q queryer, first, last int64) ([]engine.Numbered, error) {
	rows, err := q.Query(ctx, `SELECT sequence, recorded_on, CASE WHEN octet_length(text) <= $5::bigint THEN text END, octet_length(text), digest, recorded_by FROM records
		WHERE kind = $1 AND identifier = $2 AND sequence BETWEEN $3 AND $4 ORDER BY sequence`, int16(p.ref.Kind), p.ref.ID, first, last, p.most)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var read []engine.Numbered
	for size := 0; size <= partBytes && rows.Next(); {
		var r engine.Numbered
		var bytes int64
		if err := rows.Scan(&r.Sequence, &r.RecordedOn, &r.Text, &bytes, (*digest)(&r.Digest), &r.By); err != nil {
			return nil, err
		}
		if bytes > p.most {
			r.Read = p.later(r.Sequence, bytes)
		}
		read = append(read, r)
		size += len(r.Text)
	}
	rows.Close()
	return read, rows.Err()
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
