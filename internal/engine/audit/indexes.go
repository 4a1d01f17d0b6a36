package audit

import (
	"bytes"
	"slices"

	"oda"
	"oda/internal/engine"
	"oda/summary"
)

// entry reads what listings and searches know about the entity.
func (e *entity) entry() (entry EntryRow) {
	if e.entries.of(e.key) {
		entry = e.entries.row
		e.entries.advance()
	}
	return entry
}

// checkEntry compares what listings and searches know with the current version.
func (e *entity) checkEntry(entry EntryRow) {
	m, h := e.head.Metadata, e.head
	if e.listedApart {
		switch l := entry.Listed; {
		case l == nil:
			e.report.Add(Index, e.name, "listings do not know it")
		case l.CreatedBy != m.CreatedBy || l.CreatedOn != m.CreatedOn || l.Telescope != h.Telescope:
			e.report.Add(Index, e.name, "listings know another creator, time of creation or telescope")
		}
	}
	if entry.CreatedOn != nil && *entry.CreatedOn != m.CreatedOn {
		e.report.Add(Index, e.name, "searches know another time of creation")
	}
	extract := e.extract()
	if extract == nil {
		return
	}
	made := extract.Summary()
	switch {
	case h.Telescope != made.Telescope:
		e.report.Add(Head, e.name, "its head says that its telescope is %q, but its document says %q", h.Telescope, made.Telescope)
	case h.SummaryHash != extract.Hash():
		e.report.Add(Head, e.name, "its head has the summary of another document")
	}
	switch {
	case entry.Summary == nil:
		e.report.Add(Index, e.name, "searches do not know it")
	case !bytes.Equal(entry.Summary, made.Pack()):
		e.report.Add(Index, e.name, "searches know another summary than that of its document")
	case entry.Terms != nil && !slices.Equal(slices.Sorted(slices.Values(entry.Terms)), made.Terms(h.Ref)):
		e.report.Add(Index, e.name, "the index of words and references has other terms than its document")
	}
}

// extract returns what the current version says for its summary, nil if it is missing or
// damaged, which is reported elsewhere.
func (e *entity) extract() *summary.Extract {
	if e.current == nil || e.current.Damage != nil || e.version != e.head.Metadata.Version {
		return nil
	}
	extract, err := summary.OfBody(e.head.Ref.Kind, oda.Body{Text: e.current.Text, Slots: e.current.Slots})
	if err != nil {
		return nil
	}
	return extract
}

// Key checks the idempotency key that created an entity.
func (r *Report) Key(of oda.Ref, key string, digest, seal []byte) {
	k := oda.Key{Value: key}
	if copy(k.Digest[:], digest) != len(digest) || engine.CheckKey(of, k, seal) != nil {
		r.Add(Index, nameOf(of), "the key with which it was created was edited, or is another's")
	}
}

// dayPart is the key of a row of the index of days.
type dayPart struct {
	day  oda.Day
	part int64
}

// mostDays is how many days and parts of a block are checked. No real block has so
// many.
const mostDays = 100_000

// indexedDays reads the rows of the block in the index of days.
func (e *entity) indexedDays() map[dayPart]int64 {
	indexed := make(map[dayPart]int64)
	for e.days.of(e.key) {
		if len(indexed) < 2*mostDays {
			indexed[dayPart{e.days.row.Day, e.days.row.Part}] = e.days.row.First
		}
		e.days.advance()
	}
	return indexed
}

// checkDays checks that the index of days leads to all calls. It may also lead to
// calls of other days.
func (e *entity) checkDays(indexed map[dayPart]int64) {
	for at, first := range indexed {
		if first < 1 || engine.PartOf(first) != at.part {
			e.report.Add(Index, e.name, "the index of days leads to record %d for part %d, but that record is in another part", first, at.part)
		}
	}
	for call, first := range e.calls {
		if at, known := indexed[call]; !known || at > first {
			e.report.Add(Index, e.name, "the index of days does not lead to record %d, a call of %s", first, call.day.Begin())
		}
	}
}
