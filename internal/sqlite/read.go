package sqlite

import (
	"context"
	"errors"

	"zombiezen.com/go/sqlite"

	"oda"
	"oda/internal/engine"
)

// Bounds of what is read from a block at a time.
const (
	partRecords = 512
	partBytes   = 512 << 10
)

// renderRecords is the largest number of records of a block that may be rendered in
// memory and kept in the cache, if they are small.
const renderRecords = 256

// errPartFull stops the reading of a part.
var errPartFull = errors.New("the part is full")

// row is what a statement reads about an entity.
type row struct {
	engine.Version
	entity   int64
	metadata oda.Metadata
	body     oda.Body
	large    int64       // bytes of a large text, which is not read yet
	runs     engine.Runs // nil: no list of records
	damage   error       // why it must not be served

	superseded bool   // there is a later version
	keyDigest  []byte // if it was found by its key
}

// Get implements oda.Engine.
func (s *Store) Get(ctx context.Context, ref oda.Ref) (*oda.Entity, error) {
	if err := s.readable(ref); err != nil {
		return nil, err
	}
	e, ticket := s.cache.get(ref)
	if e != nil {
		return e, nil
	}
	r, err := s.read(ctx, ref)
	if err != nil {
		return nil, readError(ref, err)
	}
	if r == nil {
		return nil, oda.Missing(ref)
	}
	if e, err = s.entity(ctx, r); err != nil {
		return nil, err
	}
	if !r.renderable() {
		return e, nil
	}
	if err := e.Render(cacheEntry); err != nil {
		return nil, readError(ref, err)
	}
	if e.Rendered() != nil {
		s.cache.put(e, ticket)
	}
	return e, nil
}

// unlessLarge is the text of a version, or the size of a large one (oda.LargeText).
const unlessLarge = `iif(length(v.text) <= 65536, v.text, length(v.text))`

const selectCurrent = `SELECT h.entity, h.version, h.created_by, h.created_on, h.last_modified_by, h.last_modified_on, h.last_sequence,
	coalesce(v.sequence_after, -1), v.runs, v.slots, ` + unlessLarge + `, v.digest, 0
	FROM heads h LEFT JOIN versions v ON v.position = h.position AND v.entity = h.entity AND v.version = h.version WHERE h.kind = ? AND h.identifier = ?`

// read reads the current version. It returns nil if the entity is not stored.
func (s *Store) read(ctx context.Context, ref oda.Ref) (*row, error) {
	return s.readRow(ctx, ref, selectCurrent, int64(ref.Kind), ref.ID)
}

// readRow reads one row in the form of selectCurrent.
func (s *Store) readRow(ctx context.Context, ref oda.Ref, query string, args ...any) (*row, error) {
	c, err := s.readers.take(ctx)
	if err != nil {
		return nil, err
	}
	defer s.readers.give(c)
	return c.row(ref, query, args...)
}

// row reads one row in the form of selectCurrent, nil if there is none. A row that
// was found by its key says which entity it is.
func (c *conn) row(ref oda.Ref, query string, args ...any) (r *row, err error) {
	err = c.query(query, func(stmt *sqlite.Stmt) error {
		r = &row{entity: stmt.ColumnInt64(0), metadata: metadataOf(stmt, 1), superseded: stmt.ColumnBool(12)}
		if stmt.ColumnCount() > 13 {
			ref.ID, r.keyDigest = stmt.ColumnText(13), bytesOf(stmt, 14)
		}
		r.Version = engine.Version{Ref: ref, Number: r.metadata.Version}
		size := int64(stmt.ColumnLen(10))
		if r.body.Digest = digestOf(stmt, 11); stmt.ColumnType(10) == sqlite.TypeInteger {
			r.large = stmt.ColumnInt64(10)
			size = r.large
		} else {
			r.body.Text = bytesOf(stmt, 10)
		}
		if r.runs, r.damage = currentRuns(r.Version, bytesOf(stmt, 8), stmt.ColumnInt64(7), stmt.ColumnInt64(6)); r.damage != nil {
			return nil
		}
		if r.body.Slots, err = decodeSlots(bytesOf(stmt, 9), int(size)); err != nil {
			r.damage = oda.Damaged(ref, r.Number, 0).Because(err)
		}
		return nil
	}, args...)
	return r, err
}

// currentRuns returns the records of a version. Packed has those that it was stored
// with.
func currentRuns(of engine.Version, packed []byte, after, last int64) (engine.Runs, error) {
	stored, err := decodeRuns(packed)
	if err != nil {
		return nil, oda.Damaged(of.Ref, of.Number, 0).Because(err)
	}
	return of.Current(stored, after, last)
}

// renderable reports whether the document may be small enough to be rendered in memory
// and kept in the cache.
func (r *row) renderable() bool {
	return max(r.large, int64(len(r.body.Text))) <= cacheEntry && r.runs.Count() <= renderRecords
}

// selectCreated reads the first version as it was stored, without later records.
const selectCreated = `SELECT h.entity, 1, h.created_by, h.created_on, v.stored_by, v.stored_on, v.sequence_after,
	coalesce(v.sequence_after, -1), v.runs, v.slots, ` + unlessLarge + `, v.digest, 0, h.identifier, h.create_digest
	FROM heads h LEFT JOIN versions v ON v.entity = h.entity AND v.version = 1 WHERE h.kind = ? AND h.create_key = ?`

// Created implements oda.Engine.
func (s *Store) Created(ctx context.Context, kind oda.Kind, key oda.Key) (*oda.Entity, error) {
	r, err := s.readRow(ctx, oda.Ref{Kind: kind}, selectCreated, int64(kind), key.Value)
	if err != nil || r == nil {
		return nil, storageError(err)
	}
	if err := key.Check(r.keyDigest); err != nil {
		return nil, err
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
		e.Records = s.texts(ctx, r.Version, r.entity, r.runs)
	}
	return e, nil
}

// readLarge reads a text that was left out because it is large, once there is room for
// it. What a version was stored with never changes, so no snapshot is needed.
func (s *Store) readLarge(ctx context.Context, r *row) error {
	if r.large == 0 {
		return nil
	}
	if err := oda.RoomIn(ctx).Take(ctx, r.large); err != nil {
		return err
	}
	var err error
	r.body.Text, err = s.text(ctx, "SELECT text FROM versions WHERE entity = ? AND version = ?", r.entity, r.Number)
	return readError(r.Ref, err)
}

// text reads one text, nil if it is not there.
func (s *Store) text(ctx context.Context, query string, args ...any) (text []byte, err error) {
	c, err := s.readers.take(ctx)
	if err != nil {
		return nil, err
	}
	defer s.readers.give(c)
	err = c.query(query, func(stmt *sqlite.Stmt) error {
		text = bytesOf(stmt, 0)
		return nil
	}, args...)
	return text, err
}

// recordText reads the text of one record.
func (s *Store) recordText(ctx context.Context, entity, sequence int64) ([]byte, error) {
	return s.text(ctx, "SELECT text FROM records WHERE entity = ? AND sequence = ?", entity, sequence)
}

// texts reads the records of a version.
func (s *Store) texts(ctx context.Context, of engine.Version, entity int64, runs engine.Runs) oda.Texts {
	read := s.parts(ctx, entity)
	return engine.Texts(of, runs, func(first, last int64) ([]engine.Numbered, error) {
		part, err := read(first, last)
		return part, readError(of.Ref, err)
	})
}

// parts reads records of a block a part at a time. Large texts are read later, one by one.
func (s *Store) parts(ctx context.Context, entity int64) func(first, last int64) ([]engine.Numbered, error) {
	return func(first, last int64) ([]engine.Numbered, error) {
		c, err := s.readers.take(ctx)
		if err != nil {
			return nil, err
		}
		defer s.readers.give(c)
		return c.part(entity, first, last, oda.LargeText, func(sequence, bytes int64) func() ([]byte, func(), error) {
			return engine.Later(ctx, bytes, func() ([]byte, error) {
				text, err := s.recordText(ctx, entity, sequence)
				return text, storageError(err)
			})
		})
	}
}

// part reads records from first to last, or as many of them as fit. Those with a text of
// more than most bytes are read by what later returns.
func (c *conn) part(entity, first, last, most int64, later func(sequence, bytes int64) func() ([]byte, func(), error)) ([]engine.Numbered, error) {
	last = min(last, first+partRecords-1)
	part := make([]engine.Numbered, 0, last-first+1)
	size := 0
	err := c.query(`SELECT sequence, recorded_on, iif(length(text) <= ?4, text, length(text)), digest, recorded_by
		FROM records WHERE entity = ?1 AND sequence BETWEEN ?2 AND ?3 ORDER BY sequence`,
		func(stmt *sqlite.Stmt) error {
			r := engine.Numbered{Sequence: stmt.ColumnInt64(0), By: stmt.ColumnText(4), RecordedOn: oda.Instant(stmt.ColumnInt64(1)), Digest: digestOf(stmt, 3)}
			if stmt.ColumnType(2) == sqlite.TypeInteger {
				r.Read = later(r.Sequence, stmt.ColumnInt64(2))
			} else {
				r.Text = bytesOf(stmt, 2)
			}
			part = append(part, r)
			if size += len(r.Text); size > partBytes {
				return errPartFull
			}
			return nil
		}, entity, first, last, most)
	if err != nil && !errors.Is(err, errPartFull) {
		return nil, err
	}
	return part, nil
}

// Counts implements oda.Engine. The writer keeps the counts up to date.
func (s *Store) Counts(context.Context) (map[oda.Kind]int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := make(map[oda.Kind]int64, len(oda.Kinds))
	for _, k := range oda.Kinds {
		counts[k] = s.counts[k]
	}
	return counts, nil
}
