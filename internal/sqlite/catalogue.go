package sqlite

import (
	"context"
	"log/slog"
	"strconv"
	"strings"

	"zombiezen.com/go/sqlite"

	"oda"
	"oda/internal/engine/migrate"
)

// entry is what the catalogue holds about an entity.
type entry struct {
	hash      int64
	telescope any // nil: none
	summary   []byte
	terms     string // each with a space before and after it
}

func entryOf(ref oda.Ref, x *oda.Extract) *entry {
	s := x.Summary()
	e := &entry{hash: x.Hash(), summary: s.Pack(), terms: s.TermList(ref)}
	if s.Telescope != "" {
		e.telescope = s.Telescope
	}
	return e
}

// entriesOf makes the entries of entities that are probably new, so that the
// writer need not do it. It returns nil if none is.
func entriesOf(puts []oda.Put) []*entry {
	var entries []*entry
	for i := range puts {
		if puts[i].Expected.Has != 0 {
			continue
		}
		if entries == nil {
			entries = make([]*entry, len(puts))
		}
		entries[i] = entryOf(puts[i].Ref, puts[i].Extract)
	}
	return entries
}

// enter writes the entry of a new entity.
func (t *txn) enter(ref oda.Ref, h *head, e *entry) error {
	t.unindexed = append(t.unindexed, unindexedRow{entity: h.entity, kind: ref.Kind, terms: e.terms})
	return t.exec("INSERT INTO catalogue (entity, summary) VALUES (?, ?)", h.entity, e.summary)
}

// restate writes the entry of an entity whose summary has changed.
func (t *txn) restate(ref oda.Ref, h *head, e *entry) error {
	h.summaryHash = e.hash
	t.unindexed = append(t.unindexed, unindexedRow{entity: h.entity, kind: ref.Kind, terms: e.terms, again: true})
	err := t.exec("UPDATE heads SET telescope = ?, summary_hash = ? WHERE entity = ?", e.telescope, e.hash, h.entity)
	if err == nil {
		err = t.exec("UPDATE catalogue SET summary = ? WHERE entity = ?", e.summary, h.entity)
	}
	if err == nil {
		err = t.exec("INSERT OR IGNORE INTO unindexed (entity) VALUES (?)", h.entity)
	}
	return err
}

// catalogueStep fills the catalogue for what is stored.
func catalogueStep(rows int, log *slog.Logger) step {
	return step{
		Number: 3, Name: "fill the catalogue", Checksum: "fill the catalogue 1",
		Work: func(_ context.Context, c *conn, at string) (migrate.Part, error) {
			return fillCatalogue(c, at, min(rows, enteredAtOnce), log)
		},
	}
}

// enteredAtOnce is how many entities one part of the step enters at most.
const enteredAtOnce = 1000

// fillCatalogue enters the next entities, in the order of their numbers.
func fillCatalogue(c *conn, at string, most int, log *slog.Logger) (migrate.Part, error) {
	after, done := int64(0), int64(0)
	if at != "" {
		number, count, _ := strings.Cut(at, " ")
		var err error
		if after, err = strconv.ParseInt(number, 10, 64); err == nil {
			done, err = strconv.ParseInt(count, 10, 64)
		}
		if err != nil {
			return migrate.Part{}, err
		}
	}
	total, err := c.number("SELECT sbdefinitions + sbinstances + executionblocks + projects FROM state")
	if err != nil {
		return migrate.Part{}, err
	}
	type row struct {
		entity int64
		ref    oda.Ref
		body   oda.Body
		damage error
	}
	var rows []row
	size := 0
	err = c.query(`SELECT h.entity, h.kind, h.identifier, v.slots, v.text FROM heads h JOIN versions v ON v.position = h.position
		WHERE h.entity > ? ORDER BY h.entity LIMIT ?`, func(stmt *sqlite.Stmt) error {
		r := row{entity: stmt.ColumnInt64(0), ref: oda.Ref{Kind: oda.Kind(stmt.ColumnInt(1)), ID: stmt.ColumnText(2)}}
		r.body.Text = bytesOf(stmt, 4)
		r.body.Slots, r.damage = decodeSlots(bytesOf(stmt, 3), len(r.body.Text))
		rows = append(rows, r)
		return partFull(&size, len(r.body.Text))
	}, after, int64(most))
	if err = notFull(err); err != nil {
		return migrate.Part{}, err
	}
	for _, r := range rows {
		var x *oda.Extract
		err := r.damage
		if err == nil {
			x, err = oda.ExtractOf(r.ref.Kind, r.body)
		}
		if err != nil {
			// One damaged document must not keep the archive from being opened.
			log.Error("a stored document is damaged and is not in the catalogue; run oda verify",
				"kind", r.ref.Kind.Collection(), "identifier", r.ref.ID, "error", err)
			x = oda.NoExtract(r.ref.Kind)
		}
		e := entryOf(r.ref, x)
		after = r.entity
		err = c.exec("UPDATE heads SET telescope = ?, summary_hash = ? WHERE entity = ?", e.telescope, e.hash, r.entity)
		if err == nil {
			err = c.exec("INSERT INTO catalogue (entity, summary) VALUES (?, ?)", r.entity, e.summary)
		}
		if err == nil {
			err = c.exec(insertTerms, r.entity, e.terms)
		}
		if err != nil {
			return migrate.Part{}, err
		}
	}
	if err := c.exec("UPDATE state SET indexed_entity = ?", after); err != nil {
		return migrate.Part{}, err
	}
	done += int64(len(rows))
	at = strconv.FormatInt(after, 10) + " " + strconv.FormatInt(done, 10)
	return migrate.Part{At: at, Done: done, Total: total, End: len(rows) == 0}, nil
}
