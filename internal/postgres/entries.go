package postgres

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
	"oda/internal/engine"
)

// Bounds of a part in which the log is read: numbers or records, and bytes of texts.
// The last text may exceed them.
const (
	entriesAtOnce = 1024
	entriesBytes  = 4 << 20
	entryRounds   = 16
)

const (
	// selectVersionEntries reads versions in order, and no more after $4 bytes: $1 has their
	// kinds, $2 their identifiers, $3 their numbers.
	selectVersionEntries = `SELECT nth, before, h.created_by, h.created_on, v.sequence_before, v.sequence_after, v.stored_by, v.stored_on,
			v.runs, v.slots, v.text, v.digest, v.seal, k.key, k.digest, k.seal
		FROM (SELECT w.nth, v.*, sum(octet_length(v.text)) OVER (ORDER BY w.nth) - octet_length(v.text) AS before
			FROM unnest($1::smallint[], $2::text[], $3::bigint[]) WITH ORDINALITY AS w (kind, identifier, version, nth)
			CROSS JOIN LATERAL (SELECT * FROM versions WHERE kind = w.kind AND identifier = w.identifier AND version = w.version OFFSET 0) v) v
		CROSS JOIN LATERAL (SELECT created_by, created_on FROM heads WHERE kind = v.kind AND identifier = v.identifier OFFSET 0) h
		LEFT JOIN LATERAL (SELECT key, digest, seal FROM creation_keys
			WHERE kind = v.kind AND identifier = v.identifier AND v.version = 1 OFFSET 0) k ON true
		WHERE before < $4 ORDER BY nth`

	// selectRecordEntries reads records of blocks in order, and no more after $4 bytes:
	// $1 has the blocks, $2 and $3 the first and last sequence number of each.
	selectRecordEntries = `SELECT * FROM (
			SELECT w.nth, r.sequence, r.recorded_on, coalesce(r.key, ''), r.text, r.digest, r.seal,
				sum(octet_length(r.text)) OVER (ORDER BY w.nth, r.sequence) - octet_length(r.text) AS before
			FROM unnest($1::text[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS w (identifier, first, last, nth)
			CROSS JOIN LATERAL (SELECT * FROM records WHERE kind = 3 AND identifier = w.identifier
				AND sequence BETWEEN w.first AND w.last ORDER BY sequence OFFSET 0) r
			ORDER BY w.nth, r.sequence) part
		WHERE before < $4`
)

// Entries implements oda.Mover.
func (s *Store) Entries(ctx context.Context, until oda.Position, wanted func(oda.Ref) bool, emit func(*oda.LogEntry) error) error {
	for at := oda.Position(0); at < until; {
		begin, runs, err := s.rounds(ctx, at, until, entryRounds)
		if err == nil && (begin != at || len(runs) == 0) {
			err = oda.LostChange(at)
		}
		if err != nil {
			return s.storageError(ctx, err)
		}
		for len(runs) > 0 {
			var part []run
			part, runs = take(runs, entriesAtOnce)
			all, err := s.written(ctx, part)
			if err != nil {
				return s.storageError(ctx, err)
			}
			var changes []change
			for _, one := range part {
				from := at
				for _, c := range within(all, one) {
					at += c.width
					if wanted(c.Ref) {
						changes = append(changes, c)
					}
				}
				if one.end != 0 && one.end != at {
					return oda.LostChange(from)
				}
			}
			if err := s.entries(ctx, changes, emit); err != nil {
				return err
			}
		}
	}
	return nil
}

// entries reads what is stored for changes.
func (s *Store) entries(ctx context.Context, changes []change, emit func(*oda.LogEntry) error) error {
	if err := s.addSaid(ctx, changes); err != nil {
		return s.storageError(ctx, err)
	}
	var versions []*change
	for i := range changes {
		if changes[i].Stored() {
			versions = append(versions, &changes[i])
		}
	}
	var bodies []versionEntry
	var ahead aheadRecords
	for i := range changes {
		c := &changes[i]
		if c.Stored() {
			if len(bodies) == 0 {
				var err error
				if bodies, err = s.versionEntries(ctx, versions); err != nil {
					return s.storageError(ctx, err)
				}
				versions = versions[len(bodies):]
			}
			e := &bodies[0]
			bodies = bodies[1:]
			if e.By != c.By || e.On != c.On || e.Before != c.records.First-1 || e.After != c.records.Last {
				return oda.Damaged(e.Ref, e.Version, 0).Because(errors.New("the log of changes says something else about it"))
			}
			if err := e.decode(); err != nil {
				return err
			}
			if c.width > 1 {
				err := s.eachRecord(ctx, changes[i:], &ahead, func(r *recordEntry) error {
					e.Came = append(e.Came, r.Body)
					row := engine.RecordRow{Place: []byte(e.ID), Sequence: r.sequence, Version: e.Version, By: e.By, On: e.On, Digest: r.Digest}
					return row.Check(e.Ref, r.seal)
				})
				if err != nil {
					return err
				}
			}
			if err := emit(&e.LogEntry); err != nil {
				return err
			}
			continue
		}
		if c.status != nil {
			e := oda.EntryOf(&c.status.Status, c.status.Key)
			if err := emit(&e); err != nil {
				return err
			}
			continue
		}
		err := s.eachRecord(ctx, changes[i:], &ahead, func(r *recordEntry) error {
			row := engine.RecordRow{Place: []byte(c.ID), Sequence: r.sequence, Version: c.Version, By: c.By, On: r.on, Key: r.key, Digest: r.Digest}
			if err := row.Check(c.Ref, r.seal); err != nil {
				return err
			}
			return emit(&oda.LogEntry{Ref: c.Ref, Version: c.Version, Sequence: r.sequence, By: c.By, On: r.on, Key: r.key, Body: r.Body})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// versionEntry is a version as its row has it.
type versionEntry struct {
	oda.LogEntry
	runs      []int64
	slots     []int32
	seal      []byte
	key       *string
	keyDigest digest
	keySeal   []byte
}

// decode completes the entry, whose row must fit its seal.
func (e *versionEntry) decode() (err error) {
	if e.Body.Slots, err = decodeSlots(e.slots, len(e.Body.Text)); err != nil {
		return oda.Damaged(e.Ref, e.Version, 0).Because(err)
	}
	runs, err := decodeRuns(e.runs)
	if err != nil {
		return oda.Damaged(e.Ref, e.Version, 0).Because(err)
	}
	row := engine.VersionRow{
		Place: versionPlace(int16(e.Kind), e.ID), Version: e.Version, By: e.By, On: e.On,
		Before: e.Before, After: e.After, Runs: runs, Slots: e.Body.Slots, Digest: e.Body.Digest,
	}
	row.OfEntity(e.Metadata())
	if err := row.Check(e.Ref, e.seal); err != nil {
		return err
	}
	e.Runs = runs
	if e.key == nil {
		return nil
	}
	e.CreateKey = &oda.Key{Value: *e.key, Digest: oda.Digest(e.keyDigest)}
	return engine.CheckKey(e.Ref, *e.CreateKey, e.keySeal)
}

// versionEntries reads the first of the versions.
func (s *Store) versionEntries(ctx context.Context, versions []*change) (entries []versionEntry, err error) {
	versions = versions[:min(len(versions), entriesAtOnce)]
	kinds, ids, numbers := make([]int16, len(versions)), make([]string, len(versions)), make([]int64, len(versions))
	for i, c := range versions {
		kinds[i], ids[i], numbers[i] = int16(c.Kind), c.ID, c.Version
	}
	err = s.reading(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, selectVersionEntries, kinds, ids, numbers, entriesBytes)
		if err != nil {
			return err
		}
		entries = nil
		var nth, before int64
		var e versionEntry
		row := []any{
			&nth, &before, &e.CreatedBy, &e.CreatedOn, &e.Before, &e.After, &e.By, &e.On,
			&e.runs, &e.slots, &e.Body.Text, (*digest)(&e.Body.Digest), &e.seal, &e.key, &e.keyDigest, &e.keySeal,
		}
		_, err = pgx.ForEachRow(rows, row, func() error {
			if nth != int64(len(entries))+1 {
				return errVersions
			}
			c := versions[len(entries)]
			e.Ref, e.Version = c.Ref, c.Version
			entries = append(entries, e)
			e = versionEntry{}
			return nil
		})
		return err
	})
	if err == nil && len(entries) == 0 {
		err = errVersions
	}
	return entries, err
}

var errVersions = oda.Errorf(oda.DamagedText, "A version that the log of changes names is missing in the archive's database. "+oda.FindDamage)

// recordEntry is a record of a block.
type recordEntry struct {
	oda.Body
	id       string
	sequence int64
	on       oda.Instant
	key      string
	seal     []byte
}

// aheadRecords has records that were read ahead, in the order of the changes.
type aheadRecords struct{ records []recordEntry }

// eachRecord calls emit for the records of the first of the changes.
func (s *Store) eachRecord(ctx context.Context, changes []change, ahead *aheadRecords, emit func(*recordEntry) error) error {
	c := &changes[0]
	own := c.records
	for at := own.First; at <= own.Last; at++ {
		if len(ahead.records) == 0 {
			if err := s.readAhead(ctx, changes, at, ahead); err != nil {
				return s.storageError(ctx, err)
			}
		}
		r := &ahead.records[0]
		ahead.records = ahead.records[1:]
		if r.id != c.ID || r.sequence != at {
			return oda.Lost(c.Ref, c.Version, at)
		}
		if err := emit(r); err != nil {
			return err
		}
	}
	return nil
}

// readAhead reads records of the changes, from a sequence number of the first on.
func (s *Store) readAhead(ctx context.Context, changes []change, from int64, ahead *aheadRecords) error {
	var ids []string
	var firsts, lasts []int64
	n := int64(0)
	for i := range changes {
		run := changes[i].records
		if i == 0 {
			run.First = from
		}
		if run.First > run.Last {
			continue
		}
		run.Last = min(run.Last, run.First+entriesAtOnce-n-1)
		n += run.Last - run.First + 1
		ids, firsts, lasts = append(ids, changes[i].ID), append(firsts, run.First), append(lasts, run.Last)
		if n == entriesAtOnce {
			break
		}
	}
	var found []recordEntry
	err := s.reading(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		found = found[:0]
		rows, err := conn.Query(ctx, selectRecordEntries, ids, firsts, lasts, entriesBytes)
		if err != nil {
			return err
		}
		var nth, before int64
		var r recordEntry
		_, err = pgx.ForEachRow(rows, []any{&nth, &r.sequence, &r.on, &r.key, &r.Text, (*digest)(&r.Digest), &r.seal, &before}, func() error {
			r.id = ids[nth-1]
			found = append(found, r)
			r.Text, r.seal = nil, nil
			return nil
		})
		return err
	})
	if err == nil && len(found) == 0 {
		err = oda.Lost(changes[0].Ref, changes[0].Version, from)
	}
	ahead.records = slices.Clip(found)
	return err
}
