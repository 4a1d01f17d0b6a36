package sqlite

import (
	"context"
	"errors"
	"iter"

	"zombiezen.com/go/sqlite"

	"oda"
)

// Bounds of what is read of a block at a time. Records never change, so each
// part is a short read of its own, and a slow client holds nothing up.
const (
	partRecords = 512
	partBytes   = 512 << 10
)

// renderRecords is the number of records up to which a block is rendered in
// memory and may be kept in the cache.
const renderRecords = 256

// errPartFull ends the reading of a part.
var errPartFull = errors.New("the part is full")

// row is what a single statement reads of an entity.
type row struct {
	entity   int64
	metadata oda.Metadata
	body     oda.Body
	runs     oda.Runs // nil: no list of records

	// Of a row that was found by its key:
	id     string
	digest []byte
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
		return nil, storageError(err)
	}
	if r == nil {
		return nil, oda.Missing(ref)
	}
	e = s.entity(ctx, ref, r)
	if len(r.body.Text) > cacheEntry || r.runs.Count() > renderRecords {
		return e, nil
	}
	if err := e.Render(); err != nil {
		return nil, storageError(err)
	}
	s.cache.put(e, ticket)
	return e, nil
}

const selectCurrent = `SELECT h.entity, h.version, h.created_by, h.created_on, h.last_modified_by, h.last_modified_on, h.last_sequence,
	v.sequence_after, v.runs, v.slots, v.text
	FROM heads h JOIN versions v ON v.position = h.position WHERE h.kind = ? AND h.identifier = ?`

// read reads the current version, nil where the entity is unknown.
func (s *Store) read(ctx context.Context, ref oda.Ref) (*row, error) {
	return s.readRow(ctx, selectCurrent, true, int64(ref.Kind), ref.ID)
}

// readRow reads one row of selectCurrent's form. With recorded, the records
// that came after the version was stored belong to it.
func (s *Store) readRow(ctx context.Context, query string, recorded bool, args ...any) (*row, error) {
	c, err := s.readers.take(ctx)
	if err != nil {
		return nil, err
	}
	defer s.readers.give(c)
	var r *row
	err = c.query(query, func(stmt *sqlite.Stmt) error {
		r = &row{entity: stmt.ColumnInt64(0), metadata: metadataOf(stmt, 1)}
		last, after := stmt.ColumnInt64(6), stmt.ColumnInt64(7)
		if !recorded {
			last = after
		}
		var err error
		if r.runs, err = currentRuns(bytesOf(stmt, 8), after, last); err != nil {
			return err
		}
		r.body.Text = bytesOf(stmt, 10)
		if stmt.ColumnCount() > 11 {
			r.id, r.digest = stmt.ColumnText(11), bytesOf(stmt, 12)
		}
		r.body.Slots, err = oda.DecodeSlots(bytesOf(stmt, 9), len(r.body.Text))
		return err
	}, args...)
	return r, err
}

const selectCreated = `SELECT h.entity, v.version, h.created_by, h.created_on, v.stored_by, v.stored_on, h.last_sequence,
	v.sequence_after, v.runs, v.slots, v.text, h.identifier, h.create_digest
	FROM heads h JOIN versions v ON v.entity = h.entity AND v.version = 1 WHERE h.kind = ? AND h.create_key = ?`

// Created implements oda.Engine.
func (s *Store) Created(ctx context.Context, kind oda.Kind, key oda.Key) (*oda.Entity, error) {
	r, err := s.readRow(ctx, selectCreated, false, int64(kind), key.Value)
	if err != nil || r == nil {
		return nil, storageError(err)
	}
	if err := key.Check(r.digest); err != nil {
		return nil, err
	}
	return s.entity(ctx, oda.Ref{Kind: kind, ID: r.id}, r), nil
}

// entity gives what was read to the rules.
func (s *Store) entity(ctx context.Context, ref oda.Ref, r *row) *oda.Entity {
	e := &oda.Entity{Ref: ref, Metadata: r.metadata, Body: r.body}
	if r.runs != nil {
		e.Records = s.records(ctx, r.entity, r.runs)
	}
	return e
}

// numberedRecord is a record with its sequence number.
type numberedRecord struct {
	sequence int64
	text     []byte
}

// records reads the records of a version.
func (s *Store) records(ctx context.Context, entity int64, runs oda.Runs) oda.Texts {
	return textsOf(s.numbered(ctx, entity, runs))
}

// textsOf gives records without their sequence numbers.
func textsOf(numbered iter.Seq2[numberedRecord, error]) oda.Texts {
	return func(yield func([]byte, error) bool) {
		for r, err := range numbered {
			if !yield(r.text, err) {
				return
			}
		}
	}
}

// numbered reads records in order, a part at a time.
func (s *Store) numbered(ctx context.Context, entity int64, runs oda.Runs) iter.Seq2[numberedRecord, error] {
	return inParts(runs, func(first, last int64) ([]numberedRecord, error) {
		c, err := s.readers.take(ctx)
		if err != nil {
			return nil, err
		}
		defer s.readers.give(c)
		return c.part(entity, first, last)
	})
}

// inParts reads records in order. Read gives those from first to last, or some
// of them from first on.
func inParts(runs oda.Runs, read func(first, last int64) ([]numberedRecord, error)) iter.Seq2[numberedRecord, error] {
	return func(yield func(numberedRecord, error) bool) {
		for _, run := range runs {
			for at := run.First; at <= run.Last; {
				part, err := read(at, run.Last)
				if err != nil {
					yield(numberedRecord{}, storageError(err))
					return
				}
				for _, r := range part {
					if !yield(r, nil) {
						return
					}
				}
				at = part[len(part)-1].sequence + 1
			}
		}
	}
}

// part reads records from first on, not beyond last, as many as fit.
func (c *conn) part(entity, first, last int64) ([]numberedRecord, error) {
	last = min(last, first+partRecords-1)
	part := make([]numberedRecord, 0, last-first+1)
	size := 0
	err := c.query("SELECT sequence, text FROM records WHERE entity = ? AND sequence BETWEEN ? AND ? ORDER BY sequence",
		func(stmt *sqlite.Stmt) error {
			r := numberedRecord{stmt.ColumnInt64(0), bytesOf(stmt, 1)}
			part = append(part, r)
			if size += len(r.text); size > partBytes {
				return errPartFull
			}
			return nil
		}, entity, first, last)
	if err != nil && !errors.Is(err, errPartFull) {
		return nil, err
	}
	if len(part) == 0 || part[0].sequence != first {
		return nil, oda.Errorf(oda.Internal, "Records of this ExecutionBlock are missing in the archive's file. Tell the operator.")
	}
	return part, nil
}

// Counts implements oda.Engine. The writer keeps them, so nothing is counted.
func (s *Store) Counts(context.Context) (map[oda.Kind]int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := make(map[oda.Kind]int64, len(oda.Kinds))
	for _, k := range oda.Kinds {
		counts[k] = s.counts[k]
	}
	return counts, nil
}
