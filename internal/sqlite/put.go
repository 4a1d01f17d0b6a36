package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"zombiezen.com/go/sqlite"

	"oda"
	"oda/internal/engine"
)

// Put implements oda.Engine.
func (s *Store) Put(ctx context.Context, puts []oda.Put) ([]*oda.Entity, error) {
	found := make([]recordList, len(puts))
	size := 0
	var fresh engine.AtLeast
	for i := range puts {
		size += sizeOf(&puts[i])
		var err error
		if found[i], err = s.share(ctx, &puts[i], &fresh); err != nil {
			return nil, notStored(err)
		}
	}
	entries := entriesOf(puts)
	var entities []*oda.Entity
	err := s.submit(ctx, size, func(tx *txn) (err error) {
		entities, err = tx.put(ctx, puts, found, entries)
		return err
	})
	if err != nil {
		return nil, err
	}
	return entities, nil
}

// sizeOf returns the number of bytes that a write brings.
func sizeOf(p *oda.Put) int {
	size := len(p.Body.Text)
	for _, r := range p.Records {
		size += len(r)
	}
	return size
}

// put judges all entities and, if all match, writes them.
func (t *txn) put(ctx context.Context, puts []oda.Put, found []recordList, entries []*oda.CatalogueEntry) ([]*oda.Entity, error) {
	if len(puts) == 1 && entries != nil {
		if e, err := t.putNew(ctx, puts, found[0], entries[0]); e != nil || err != nil {
			return []*oda.Entity{e}, err
		}
	}
	heads := make([]*head, len(puts))
	stored := make([]*oda.Metadata, len(puts))
	shared := make([]engine.Sharing, len(puts))
	for i := range puts {
		h, err := t.head(puts[i].Ref)
		if err != nil {
			return nil, err
		}
		if heads[i] = h; h != nil {
			stored[i] = &h.metadata
			if err := t.admit(h, puts[i].Telescopes != nil, puts[i].Admit); err != nil {
				return nil, err
			}
		}
		shared[i] = found[i].of(h)
	}
	next, err := oda.Judge(puts, stored)
	if err != nil {
		return nil, err
	}
	if err := engine.CheckNew(puts, shared); err != nil {
		return nil, err
	}
	entities := make([]*oda.Entity, len(puts))
	order := make([]int, len(puts))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return puts[a].Ref.Compare(puts[b].Ref) })
	for _, i := range order {
		var ahead *oda.CatalogueEntry
		if entries != nil {
			ahead = entries[i]
		}
		if entities[i], err = t.writeVersion(ctx, &puts[i], heads[i], next[i], newRecords{found[i].records, shared[i], found[i].keys}, ahead, nil); err != nil {
			return nil, err
		}
	}
	return entities, nil
}

// putNew writes an entity that is probably new, without looking for it first: its
// head cannot be inserted if the entity exists. In that case putNew returns nil, and
// the entity must be judged.
func (t *txn) putNew(ctx context.Context, puts []oda.Put, found recordList, entry *oda.CatalogueEntry) (*oda.Entity, error) {
	p := &puts[0]
	if p.Condition.Check(p.Ref, nil) != nil || engine.CheckNew(puts, []engine.Sharing{nil}) != nil {
		return nil, nil
	}
	e, err := t.writeVersion(ctx, p, nil, p.First(), newRecords{records: found.records, keys: found.keys}, entry, nil)
	if errors.Is(err, oda.ErrTaken) {
		return nil, nil
	}
	return e, err
}

// writeVersion writes one version of an entity. If h is nil, that is the first one,
// and the error is ErrTaken if the entity exists. It makes the entry if that is
// needed and nil.
func (t *txn) writeVersion(ctx context.Context, p *oda.Put, h *head, m oda.Metadata, l newRecords, entry *oda.CatalogueEntry, key *oda.Key) (*oda.Entity, error) {
	e := &oda.Entity{Ref: p.Ref, Metadata: m, Body: p.Body}
	var runs engine.Runs
	isNew := h == nil
	if entry == nil && (isNew || h.summaryHash != p.Extract.Hash()) {
		entry = p.Extract.Entry(p.Ref)
	}
	switch {
	case isNew:
		var err error
		if h, err = t.insertHead(p.Ref, m, key, entry); err != nil {
			return nil, err
		}
	case h.summaryHash != p.Extract.Hash():
		if err := t.restate(p.Ref, h, entry); err != nil {
			return nil, err
		}
	}
	if !isNew && p.KeepRecords {
		var err error
		if runs, err = t.runs(p.Ref, h); err != nil {
			return nil, err
		}
		if runs != nil {
			if e.Records, err = t.kept(ctx, engine.Version{Ref: p.Ref, Number: h.metadata.Version}, h.entity, runs); err != nil {
				return nil, err
			}
		}
	}
	before := h.lastSequence
	if p.Listed {
		var err error
		if runs, err = t.insertRecords(p.Ref, h, m, l); err != nil {
			return nil, err
		}
		e.Records = oda.TextsOf(p.Records)
	}
	if !isNew || h.lastSequence > 0 { // else insertHead has written all of it
		h.dirty = true
	}
	return e, t.insertVersion(p.Ref, h, m, before, runs, &p.Body)
}

// insertVersion writes the row of a version, after its records. Before is the last
// sequence number before them.
func (t *txn) insertVersion(ref oda.Ref, h *head, m oda.Metadata, before int64, runs engine.Runs, body *oda.Body) error {
	h.metadata, h.position = m, t.next()
	t.changes = append(t.changes, oda.Change{Position: oda.Position(h.position), Ref: ref, Version: m.Version, By: m.LastModifiedBy, On: m.LastModifiedOn})
	var packed any
	if runs != nil {
		packed = encodeRuns(runs)
	}
	var room placeRoom
	row := engine.VersionRow{
		Place: place(&room, h.position, h.entity), Version: m.Version, By: m.LastModifiedBy, On: m.LastModifiedOn,
		Before: before, After: h.lastSequence, Runs: runs, Slots: body.Slots, Digest: body.Digest,
	}
	row.OfEntity(m)
	seal := row.Seal()
	return t.failed(t.conn.execGiven(body.Text, `INSERT INTO versions
		(position, entity, version, stored_by, stored_on, sequence_before, sequence_after, runs, slots, text, digest, seal)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, given(), ?, ?)`,
		h.position, h.entity, m.Version, m.LastModifiedBy, int64(m.LastModifiedOn), before, h.lastSequence, packed,
		encodeSlots(body.Slots), body.Digest[:], seal[:]))
}

// insertRecords writes the records of a new version that are not yet stored, and
// returns the runs of the version.
func (t *txn) insertRecords(ref oda.Ref, h *head, m oda.Metadata, l newRecords) (engine.Runs, error) {
	first := h.lastSequence + 1
	runs, fresh := l.shared.Number(l.records, h.lastSequence)
	h.lastSequence += int64(len(fresh))
	if err := t.insertList(h, m, first, fresh); err != nil {
		return nil, err
	}
	return runs, t.noteAll(ref, h, m, first, engine.NewOf(l.shared, l.keys))
}

// newRecords is what was worked out about the records of a new version before the
// transaction: their digests, which ones are already stored, and what their calls are
// found by.
type newRecords struct {
	records []engine.Listed
	shared  engine.Sharing
	keys    []oda.CallKeys
}

// insertList writes records that came in a list. They are numbered from first.
func (t *txn) insertList(h *head, m oda.Metadata, first int64, list []engine.Listed) error {
	var args []any
	for len(list) >= rowsAtOnce {
		args = append(args[:0], t.position+1, h.entity, first, m.Version, m.LastModifiedBy, int64(m.LastModifiedOn))
		for i := range list[:rowsAtOnce] {
			r := &list[i]
			seal := sealOf(t.position+1+int64(i), h, m, first+int64(i), "", r.Digest)
			args = append(args, r.Text, r.Digest[:], seal[:])
		}
		if err := t.exec(insertRows, args...); err != nil {
			return err
		}
		t.position += rowsAtOnce
		first += rowsAtOnce
		list = list[rowsAtOnce:]
	}
	for i := range list {
		if err := t.insertRecord(h, m, first+int64(i), oda.NewRecord{Text: list[i].Text}, &list[i].Digest); err != nil {
			return err
		}
	}
	return nil
}

// insertRows writes several records that differ only in their texts; positions and
// sequence numbers count up. It takes half the time of as many single statements.
var insertRows = func() string {
	var b strings.Builder
	b.WriteString("INSERT INTO records (position, entity, sequence, version, recorded_by, recorded_on, text, digest, seal) VALUES ")
	for i := range rowsAtOnce {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "(?1 + %d, ?2, ?3 + %[1]d, ?4, ?5, ?6, ?%d, ?%d, ?%d)", i, 7+3*i, 8+3*i, 9+3*i)
	}
	return b.String()
}()

const rowsAtOnce = 64

func (t *txn) insertRecord(h *head, m oda.Metadata, sequence int64, r oda.NewRecord, digest *oda.Digest) error {
	var key any
	if r.Key != "" {
		key = r.Key
	}
	position := t.next()
	seal := sealOf(position, h, m, sequence, r.Key, *digest)
	return t.exec(`INSERT INTO records (position, entity, sequence, version, recorded_by, recorded_on, key, digest, text, seal)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		position, h.entity, sequence, m.Version, m.LastModifiedBy, int64(m.LastModifiedOn), key, digest[:], r.Text, seal[:])
}

// sealOf returns the seal of a record that is written with that metadata.
func sealOf(position int64, h *head, m oda.Metadata, sequence int64, key string, digest oda.Digest) engine.Seal {
	var room placeRoom
	row := engine.RecordRow{
		Place: place(&room, position, h.entity), Sequence: sequence, Version: m.Version,
		By: m.LastModifiedBy, On: m.LastModifiedOn, Key: key, Digest: digest,
	}
	return row.Seal()
}

// placeRoom has room for a place.
type placeRoom [48]byte

// place returns the place of a row, for its seal.
func place(room *placeRoom, position, entity int64) []byte {
	b := append(strconv.AppendInt(room[:0], position, 10), '\n')
	return strconv.AppendInt(b, entity, 10)
}

// kept returns the records that a version carries over. It reads the first of them
// within the transaction, since the answer must not fail once that is committed.
func (t *txn) kept(ctx context.Context, of engine.Version, entity int64, runs engine.Runs) (oda.Texts, error) {
	records, err := engine.Ahead(runs,
		func(runs engine.Runs) oda.Texts {
			return engine.Texts(of, runs, func(first, last int64) ([]engine.Numbered, error) {
				return t.conn.part(entity, first, last, math.MaxInt64, nil) // nothing may wait within a transaction
			})
		},
		func(runs engine.Runs) oda.Texts { return t.store.texts(ctx, of, entity, runs) })
	// A damaged record must undo the transaction too, because other entities of the
	// request may already have been written.
	return records, t.failed(err)
}

// runs returns the records of the current version, nil if it has no list.
func (t *txn) runs(ref oda.Ref, h *head) (engine.Runs, error) {
	var packed []byte
	after := int64(engine.Absent)
	err := t.query("SELECT runs, sequence_after FROM versions WHERE position = ? AND entity = ? AND version = ?", func(stmt *sqlite.Stmt) error {
		packed, after = bytesOf(stmt, 0), stmt.ColumnInt64(1)
		return nil
	}, h.position, h.entity, h.metadata.Version)
	if err != nil {
		return nil, err
	}
	runs, err := currentRuns(engine.Version{Ref: ref, Number: h.metadata.Version}, packed, after, h.lastSequence)
	return runs, t.failed(err)
}

// recordList holds the records of a new version with their digests, and says which
// of them are already stored. It is made before the transaction, because reading a
// long block must not delay the writer. It is valid for the state that it was made
// from. That is the state that the caller read, or else the write is refused anyway.
type recordList struct {
	records []engine.Listed
	keys    []oda.CallKeys // of all records
	sharing engine.Sharing
	entity  int64
	tag     string
}

// of returns what is shared with the stored state, nothing if the list was made
// from another state.
func (l recordList) of(h *head) engine.Sharing {
	if h == nil || l.tag != h.metadata.Tag() || l.entity != h.entity {
		return nil
	}
	return l.sharing
}

func (s *Store) share(ctx context.Context, p *oda.Put, fresh *engine.AtLeast) (recordList, error) {
	if len(p.Records) == 0 {
		return recordList{}, nil
	}
	row, err := s.read(ctx, p.Ref)
	if err != nil {
		return recordList{}, err
	}
	var stored int64
	if row != nil {
		if row.damage != nil {
			return recordList{}, row.damage
		}
		stored = row.runs.Count()
	}
	if fresh.TooMany(p.Records, stored) {
		return recordList{}, nil
	}
	list := recordList{records: engine.List(p.Records), keys: oda.KeysOfCalls(p.Records)}
	if stored == 0 {
		return list, nil
	}
	list.entity, list.tag = row.entity, row.metadata.Tag()
	list.sharing, err = engine.Share(list.records, engine.InParts(row.Version, row.runs, s.parts(ctx, row.entity)))
	return list, err
}

// Create implements oda.Engine.
func (s *Store) Create(ctx context.Context, put oda.Put, key *oda.Key) (*oda.Entity, error) {
	if err := oda.CheckNewRecords(len(put.Records)); err != nil {
		return nil, err
	}
	entry := put.Extract.Entry(put.Ref)
	var entity *oda.Entity
	records := engine.List(put.Records)
	replayed := false
	keys := oda.KeysOfCalls(put.Records)
	err := s.submit(ctx, sizeOf(&put), func(tx *txn) error {
		entity, replayed = nil, false
		if key != nil {
			used, err := tx.keyUsed(put.Kind, *key)
			if err != nil || used {
				replayed = used
				return err
			}
		}
		var err error
		entity, err = tx.writeVersion(ctx, &put, nil, put.First(), newRecords{records: records, keys: keys}, entry, key)
		return err
	})
	if err == nil && replayed {
		return s.Created(ctx, put.Kind, *key)
	}
	return entity, err
}

// keyUsed reports whether the key has already created an entity. If that was another
// request, it returns an error.
func (t *txn) keyUsed(kind oda.Kind, key oda.Key) (bool, error) {
	var digest []byte
	err := t.query("SELECT create_digest FROM heads WHERE kind = ? AND create_key = ?", func(stmt *sqlite.Stmt) error {
		digest = bytesOf(stmt, 0)
		return nil
	}, int64(kind), key.Value)
	if err != nil || digest == nil {
		return false, err
	}
	return true, key.Check(digest)
}
