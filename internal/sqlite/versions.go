package sqlite

import (
	"context"
	"errors"
	"math"

	"zombiezen.com/go/sqlite"

	"oda"
	"oda/internal/engine"
)

// A version ends where the next one (n) begins. Its metadata is that of the last
// record (r) that was recorded into it, or that with which it was stored.
const (
	versionMetadata = `h.created_by, h.created_on, coalesce(r.recorded_by, v.stored_by), coalesce(r.recorded_on, v.stored_on)`
	versionEnd      = `LEFT JOIN versions n ON n.entity = v.entity AND n.version = v.version + 1
	LEFT JOIN records r ON r.entity = v.entity AND r.sequence > v.sequence_after AND r.sequence = `
)

// versionLast is the sequence number with which a version ends, or -1 if the next
// version is missing.
const versionLast = `CASE WHEN h.version > v.version THEN coalesce(n.sequence_before, -1) ELSE h.last_sequence END`

// selectVersion reads a version in the form of selectCurrent, with its records up
// to a sequence number.
const selectVersion = `SELECT h.entity, ?3, ` + versionMetadata + `, min(` + versionLast + `, ?4),
	coalesce(v.sequence_after, -1), v.runs, v.slots, ` + unlessLarge + `, v.digest, h.version > ?3
	FROM heads h LEFT JOIN versions v ON v.entity = h.entity AND v.version = ?3
	` + versionEnd + `min(` + versionLast + `, ?4)
	WHERE h.kind = ?1 AND h.identifier = ?2 AND h.version >= ?3`

// Version implements oda.Engine.
func (s *Store) Version(ctx context.Context, ref oda.Ref, version int64) (*oda.Entity, error) {
	if err := s.readable(ref); err != nil {
		return nil, err
	}
	if version < 1 {
		return nil, oda.MissingVersion(ref, version)
	}
	if e := s.cache.version(ref, version); e != nil {
		return e, nil
	}
	r, err := s.readRow(ctx, ref, selectVersion, int64(ref.Kind), ref.ID, version, int64(math.MaxInt64))
	if err != nil {
		return nil, readError(ref, err)
	}
	if r == nil {
		return nil, oda.MissingVersion(ref, version)
	}
	return s.past(ctx, r, state{key: cacheKey{Ref: ref, version: version}, ended: true})
}

// past returns a state that was read as an oda.Entity. It keeps it in the cache if
// it never changes again.
func (s *Store) past(ctx context.Context, r *row, found state) (*oda.Entity, error) {
	e, err := s.entity(ctx, r)
	if err != nil || found.ended && !e.Superseded || !r.renderable() {
		return e, err
	}
	if err := e.Render(cacheEntry); err != nil {
		return nil, storageError(err)
	}
	if e.Rendered() != nil {
		s.cache.keep(found.key, e)
	}
	return e, nil
}

// AsOf implements oda.Engine.
func (s *Store) AsOf(ctx context.Context, ref oda.Ref, at oda.Instant) (*oda.Entity, error) {
	if err := s.readable(ref); err != nil {
		return nil, err
	}
	r, found, err := s.readAsOf(ctx, ref, at)
	switch {
	case err != nil:
		return nil, readError(ref, err)
	case found.cached != nil:
		return found.cached, nil
	}
	return s.past(ctx, r, found)
}

// state names a state of an entity.
type state struct {
	key        cacheKey
	sequence   int64       // of its last record
	ended      bool        // it is the last state of its version
	superseded bool        // there is a later version
	cached     *oda.Entity // the state itself, if it is in the cache
}

// readAsOf finds a state and reads it, unless it is in the cache. It reads the head
// once. What that says about the past never changes, so no snapshot is needed.
func (s *Store) readAsOf(ctx context.Context, ref oda.Ref, at oda.Instant) (r *row, found state, err error) {
	if ref.Kind != oda.ExecutionBlock { // records also make states of a block
		if version := s.marks.version(ref, at); version > 0 {
			key := cacheKey{Ref: ref, version: version}
			if e := s.cache.past(key); e != nil && e.Superseded {
				return nil, state{key: key, cached: e}, nil
			}
		}
	}
	c, err := s.readers.take(ctx)
	if err != nil {
		return nil, state{}, err
	}
	defer s.readers.give(c)
	if found, err = s.stateAt(c, ref, at); err != nil {
		return nil, state{}, err
	}
	cached := s.cache.past(found.key)
	if found.ended {
		cached = s.cache.version(ref, found.key.version)
	}
	// The current version in the cache may be newer than the head that was read, and
	// a version that was current when it was cached may be superseded by now.
	if cached != nil && cached.Metadata.LastModifiedOn <= at {
		if cached.Superseded != found.superseded {
			now := *cached
			now.Superseded, cached = found.superseded, &now
		}
		found.cached = cached
		return nil, found, nil
	}
	if r, err = c.row(ref, selectVersion, int64(ref.Kind), ref.ID, found.key.version, found.sequence); err != nil {
		return nil, state{}, err
	}
	if r == nil {
		return nil, state{}, oda.LostHistory(ref)
	}
	r.superseded = found.superseded
	return r, found, nil
}

// stateAt finds the latest state that is not after an instant.
func (s *Store) stateAt(c *conn, ref oda.Ref, at oda.Instant) (state, error) {
	var entity, version, last int64
	var created, modified oda.Instant
	err := c.query("SELECT entity, version, last_sequence, created_on, last_modified_on FROM heads WHERE kind = ? AND identifier = ?",
		func(stmt *sqlite.Stmt) error {
			entity, version, last = stmt.ColumnInt64(0), stmt.ColumnInt64(1), stmt.ColumnInt64(2)
			created, modified = oda.Instant(stmt.ColumnInt64(3)), oda.Instant(stmt.ColumnInt64(4))
			return nil
		}, int64(ref.Kind), ref.ID)
	switch {
	case err != nil:
		return state{}, err
	case version == 0 || at < created:
		return state{}, oda.MissingAsOf(ref, at)
	case at >= modified:
		return state{key: cacheKey{Ref: ref, version: version}, sequence: last, ended: true}, nil
	}
	e := ending{ref, entity, version, created, modified}
	s.marks.end(e)
	low, high, err := e.around(at, facts[oda.Instant](s, c, &e, storedOn))
	if err != nil {
		return state{}, err
	}
	found := state{key: cacheKey{Ref: ref, version: low.Number}, ended: true, superseded: low.Number < version}
	if ref.Kind != oda.ExecutionBlock {
		return found, nil // only blocks have records
	}
	found.sequence, err = facts[int64](s, c, &e, sequenceAfter)(low.Number)
	if err == nil && found.superseded {
		last, err = facts[int64](s, c, &e, sequenceBefore)(low.Number + 1)
	}
	if err != nil {
		return state{}, err
	}
	if _, err := (engine.Version{Ref: ref, Number: low.Number}).Current(nil, found.sequence, last); err != nil {
		return state{}, err
	}
	low, _, err = engine.Around(at, engine.Mark{Number: found.sequence, On: low.On}, engine.Mark{Number: last + 1, On: high.On},
		facts[oda.Instant](s, c, &e, recordedOn))
	if found.sequence = low.Number; found.sequence < last {
		found.key.on, found.ended = low.On, false
	}
	return found, err
}

var selectFact = [...]string{
	storedOn:       "SELECT stored_on FROM versions WHERE entity = ? AND version = ?",
	sequenceBefore: "SELECT sequence_before FROM versions WHERE entity = ? AND version = ?",
	sequenceAfter:  "SELECT sequence_after FROM versions WHERE entity = ? AND version = ?",
	recordedOn:     "SELECT recorded_on FROM records WHERE entity = ? AND sequence = ?",
}

// facts returns a function that returns a fact by the number of its version or record.
func facts[T ~int64](s *Store, c *conn, of *ending, what fact) func(number int64) (T, error) {
	return through(&s.marks, of.entity, what, func(number int64) (value T, err error) {
		found := false
		err = c.query(selectFact[what], func(stmt *sqlite.Stmt) error {
			value, found = T(stmt.ColumnInt64(0)), true
			return nil
		}, of.entity, number)
		if err == nil && !found {
			err = oda.LostHistory(of.ref)
		}
		return value, err
	})
}

const selectVersions = `SELECT v.version, ` + versionMetadata + `, ` + versionLast + `, v.sequence_after, v.runs, length(v.text)
	FROM heads h JOIN versions v ON v.entity = h.entity AND v.version < ?3
	` + versionEnd + versionLast + `
	WHERE h.kind = ?1 AND h.identifier = ?2 ORDER BY v.version DESC LIMIT ?4`

// Versions implements oda.Engine.
func (s *Store) Versions(ctx context.Context, ref oda.Ref, before int64, limit int) ([]oda.VersionInfo, error) {
	if err := s.readable(ref); err != nil {
		return nil, err
	}
	c, err := s.readers.take(ctx)
	if err != nil {
		return nil, err
	}
	var page engine.VersionPage
	err = c.query(selectVersions, func(stmt *sqlite.Stmt) error {
		m := metadataOf(stmt, 0)
		runs, err := currentRuns(engine.Version{Ref: ref, Number: m.Version}, bytesOf(stmt, 7), stmt.ColumnInt64(6), stmt.ColumnInt64(5))
		if err != nil {
			return err
		}
		if !page.Add(m, stmt.ColumnInt64(8), runs) {
			return errPartFull
		}
		return nil
	}, int64(ref.Kind), ref.ID, before, int64(limit))
	s.readers.give(c)
	if err != nil && !errors.Is(err, errPartFull) {
		return nil, readError(ref, err)
	}
	return page.All(ref, before, limit, func() (*oda.Entity, error) { return s.Get(ctx, ref) })
}
