package sqlite

import (
	"context"
	"errors"
	"slices"

	"zombiezen.com/go/sqlite"

	"oda"
	"oda/internal/engine"
)

// Bounds of a part in which the log is read: positions, and bytes of texts. The last
// text may exceed them.
const (
	entriesAtOnce = 1024
	entriesBytes  = 2 << 20
)

const (
	selectVersionEntries = `SELECT v.position, h.kind, h.identifier, v.entity, v.version, v.stored_by, v.stored_on, h.created_by, h.created_on,
			v.sequence_before, v.sequence_after, v.runs, v.slots, v.digest, v.text, h.create_key, h.create_digest, v.seal, h.create_seal
		FROM versions v LEFT JOIN heads h ON h.entity = v.entity WHERE v.position BETWEEN ? AND ? ORDER BY v.position`

	// Records that came with a version are read with it.
	selectRecordEntries = `SELECT r.position, h.kind, h.identifier, r.sequence, r.version, r.recorded_by, r.recorded_on,
			r.key, r.digest, r.text, r.entity, r.seal, r.sequence > v.sequence_after
		FROM records r LEFT JOIN heads h ON h.entity = r.entity LEFT JOIN versions v ON v.entity = r.entity AND v.version = r.version
		WHERE r.position BETWEEN ? AND ? ORDER BY r.position`

	selectStatusEntries = `SELECT s.position, h.kind, h.identifier, ` + statusColumns + `
		FROM statuses s LEFT JOIN heads h ON h.entity = s.entity WHERE s.position BETWEEN ? AND ? ORDER BY s.position`

	selectCame = "SELECT sequence, position, text, digest, seal FROM records WHERE entity = ? AND sequence BETWEEN ? AND ? ORDER BY sequence"
)

// Entries implements oda.Mover.
func (s *Store) Entries(ctx context.Context, until oda.Position, wanted func(oda.Ref) bool, emit func(*oda.LogEntry) error) error {
	for after := oda.Position(0); after < until; {
		part, err := s.entriesPart(ctx, after, until, wanted)
		if err != nil {
			return storageError(err)
		}
		for i := range part.entries {
			if err := emit(&part.entries[i].LogEntry); err != nil {
				return err
			}
		}
		after = part.end
	}
	return nil
}

// entriesPart is a part of the log.
type entriesPart struct {
	entries []entryAt
	read    []oda.Position
	end     oda.Position
}

type entryAt struct {
	oda.LogEntry
	position oda.Position
	entity   int64
	came     bool // a record that came with a version
}

// entriesPart reads the part of the log that follows a position.
func (s *Store) entriesPart(ctx context.Context, after, until oda.Position, wanted func(oda.Ref) bool) (*entriesPart, error) {
	c, err := s.listers.take(ctx)
	if err != nil {
		return nil, err
	}
	defer s.listers.give(c)
	p := &entriesPart{end: min(until, after+entriesAtOnce)}
	for _, table := range []struct {
		query string
		row   func(*sqlite.Stmt, *entryAt) error
	}{{selectVersionEntries, versionEntry}, {selectRecordEntries, recordEntry}, {selectStatusEntries, statusEntry}} {
		size := 0
		err := c.query(table.query, func(stmt *sqlite.Stmt) error {
			e := entryAt{position: oda.Position(stmt.ColumnInt64(0))}
			e.Kind, e.ID = oda.Kind(stmt.ColumnInt(1)), stmt.ColumnText(2)
			if e.ID == "" {
				return oda.LostChange(e.position - 1)
			}
			p.read = append(p.read, e.position)
			if !wanted(e.Ref) {
				return nil
			}
			if err := table.row(stmt, &e); err != nil || e.came {
				return err
			}
			p.entries = append(p.entries, e)
			if size += len(e.Body.Text); size >= entriesBytes {
				p.end = e.position
				return errPartFull
			}
			return nil
		}, int64(after)+1, int64(p.end))
		if err != nil && !errors.Is(err, errPartFull) {
			return nil, err
		}
	}
	// The records may have filled the part before its versions did.
	p.read = slices.DeleteFunc(p.read, func(position oda.Position) bool { return position > p.end })
	slices.Sort(p.read)
	for i := range p.end - after {
		if int(i) >= len(p.read) || p.read[i] != after+1+i {
			return nil, oda.LostChange(after + i)
		}
	}
	p.entries = slices.DeleteFunc(p.entries, func(e entryAt) bool { return e.position > p.end })
	slices.SortFunc(p.entries, func(a, b entryAt) int { return int(a.position - b.position) })
	for i := range p.entries {
		if e := &p.entries[i]; e.After > e.Before {
			if err := c.cameWith(e); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

func versionEntry(stmt *sqlite.Stmt, e *entryAt) error {
	e.entity, e.Version, e.By, e.On = stmt.ColumnInt64(3), stmt.ColumnInt64(4), stmt.ColumnText(5), oda.Instant(stmt.ColumnInt64(6))
	e.CreatedBy, e.CreatedOn = stmt.ColumnText(7), oda.Instant(stmt.ColumnInt64(8))
	e.Before, e.After = stmt.ColumnInt64(9), stmt.ColumnInt64(10)
	e.Body = oda.Body{Text: bytesOf(stmt, 14), Digest: digestOf(stmt, 13)}
	runs, err := decodeRuns(bytesOf(stmt, 11))
	if err != nil {
		return oda.Damaged(e.Ref, e.Version, 0).Because(err)
	}
	e.Runs = runs
	if e.Body.Slots, err = decodeSlots(bytesOf(stmt, 12), len(e.Body.Text)); err != nil {
		return oda.Damaged(e.Ref, e.Version, 0).Because(err)
	}
	if e.Version == 1 && !stmt.ColumnIsNull(15) {
		e.CreateKey = &oda.Key{Value: stmt.ColumnText(15), Digest: digestOf(stmt, 16)}
		if err := engine.CheckKey(e.Ref, *e.CreateKey, bytesOf(stmt, 18)); err != nil {
			return err
		}
	}
	var room placeRoom
	row := engine.VersionRow{
		Place: place(&room, int64(e.position), e.entity), Version: e.Version, By: e.By, On: e.On,
		Before: e.Before, After: e.After, Runs: runs, Slots: e.Body.Slots, Digest: e.Body.Digest,
	}
	row.OfEntity(e.Metadata())
	return row.Check(e.Ref, bytesOf(stmt, 17))
}

func recordEntry(stmt *sqlite.Stmt, e *entryAt) error {
	e.Sequence, e.Version, e.By, e.On = stmt.ColumnInt64(3), stmt.ColumnInt64(4), stmt.ColumnText(5), oda.Instant(stmt.ColumnInt64(6))
	e.Key = stmt.ColumnText(7)
	e.Body = oda.Body{Text: bytesOf(stmt, 9), Digest: digestOf(stmt, 8)}
	var room placeRoom
	row := engine.RecordRow{
		Place: place(&room, int64(e.position), stmt.ColumnInt64(10)), Sequence: e.Sequence, Version: e.Version,
		By: e.By, On: e.On, Key: e.Key, Digest: e.Body.Digest,
	}
	if err := row.Check(e.Ref, bytesOf(stmt, 11)); err != nil {
		return err
	}
	if stmt.ColumnIsNull(12) {
		return oda.LostVersion(e.Ref, e.Version)
	}
	e.came = stmt.ColumnInt(12) == 0
	return nil
}

func statusEntry(stmt *sqlite.Stmt, e *entryAt) error {
	row, err := statusRow(stmt, e.Ref, 3)
	if err == nil {
		e.LogEntry = oda.EntryOf(&row.Status, row.Key)
	}
	return err
}

// cameWith reads the records that came with a version.
func (c *conn) cameWith(e *entryAt) error {
	err := c.query(selectCame, func(stmt *sqlite.Stmt) error {
		body := oda.Body{Text: bytesOf(stmt, 2), Digest: digestOf(stmt, 3)}
		var room placeRoom
		row := engine.RecordRow{
			Place: place(&room, stmt.ColumnInt64(1), e.entity), Sequence: e.Before + 1 + int64(len(e.Came)), Version: e.Version,
			By: e.By, On: e.On, Digest: body.Digest,
		}
		if stmt.ColumnInt64(0) != row.Sequence {
			return oda.Lost(e.Ref, e.Version, row.Sequence)
		}
		e.Came = append(e.Came, body)
		return row.Check(e.Ref, bytesOf(stmt, 4))
	}, e.entity, e.Before+1, e.After)
	if came := e.Before + int64(len(e.Came)); err == nil && came < e.After {
		err = oda.Lost(e.Ref, e.Version, came+1)
	}
	return err
}
