package audit

import (
	"fmt"
	"math"
	"slices"

	"oda"
	"oda/internal/engine"
)

// entity is the state of one entity that follows from its log, as far as it has
// been read.
type entity struct {
	*auditor
	key  Key
	head *HeadRow // nil: there is none
	name string

	version  int64 // the last one
	sequence int64 // the last one
	by       string
	on       oda.Instant
	position int64             // the last one
	body     int64             // the position of the last version
	current  *VersionRow       // the last version
	calls    map[dayPart]int64 // the first sequence number of each day and part
}

// entity audits one entity: its head, if there is one, and its whole log.
func (a *auditor) entity(key Key) {
	e := &entity{auditor: a, key: key, name: nameOf(key.Ref), calls: make(map[dayPart]int64)}
	if key.Ref.ID == "" {
		e.name = fmt.Sprintf("entity %d", key.Number)
	}
	if a.heads.of(key) {
		head := a.heads.row
		e.head, e.name = &head, nameOf(head.Ref)
		a.heads.advance()
		a.report.Entities.Add(1)
	}
	versions, records, statuses := a.report.Versions.Load(), a.report.Records.Load(), a.report.Statuses.Load()
	e.log()
	e.unknown(math.MaxInt64, 0)
	e.noNotable(math.MaxInt64)
	now := e.readStatuses()
	standing, entry, days := e.standing(), e.entry(), e.indexedDays()
	if e.head == nil {
		versions, records, statuses = a.report.Versions.Load()-versions, a.report.Records.Load()-records, a.report.Statuses.Load()-statuses
		if versions+records+statuses == 0 {
			a.report.Add(Orphan, e.name, "listings, searches or the log of changes know it, but nothing is stored")
		} else {
			a.report.Add(Orphan, e.name, "has no head, but %d versions, %d records and %d statuses", versions, records, statuses)
		}
		return
	}
	if !slices.Contains(oda.Kinds[:], e.head.Ref.Kind) {
		a.report.Add(Head, e.name, "its head names a kind that does not exist")
		return
	}
	e.checkHead()
	e.checkEntry(entry)
	e.checkStanding(standing, now)
	e.checkDays(days)
}

func nameOf(ref oda.Ref) string { return fmt.Sprintf("%s %s", ref.Kind, ref.ID) }

// log reads versions and records in the order in which they were written: what was
// recorded before a version, the records that came with it, the version itself.
func (e *entity) log() {
	for e.versions.of(e.key) {
		v := e.versions.row
		e.versions.advance()
		e.report.Versions.Add(1)
		if v.Version > e.version+1 {
			e.report.Add(Gap, e.name, "%s missing", span("version", e.version+1, v.Version-1))
		}
		if v.Before < e.sequence {
			e.report.Add(Log, e.place(&v), "says that %d records came before it, but there were %d", v.Before, e.sequence)
		}
		e.recorded(v.Before, v.Version-1)
		e.listed(&v)
		e.checkVersion(&v)
		e.version, e.by, e.on, e.body = v.Version, v.By, v.On, v.Position
		e.current = &v
	}
	last := int64(math.MaxInt64)
	latest := e.version
	if e.head != nil {
		latest = max(latest, e.head.Metadata.Version)
	}
	e.recorded(last, latest)
}

// recorded reads the records up to a sequence number that did not come with a
// version. They must belong to the last version that was read, or to one of the
// missing versions up to latest.
func (e *entity) recorded(upTo, latest int64) {
	e.each(upTo, func(r *RecordRow) {
		if r.Version < e.version || r.Version > latest {
			e.report.Add(Log, e.record(r), "says that it was recorded in version %d, but it is among the records of version %d", r.Version, e.version)
		}
		e.logged(e.record(r), r.Version, r.Sequence, r.Position, r.By, r.On)
		if r.On <= e.on {
			e.report.Add(Log, e.record(r), "was recorded at %s, which is not after what precedes it (%s)", r.On, e.on)
		}
		e.by, e.on = r.By, r.On
	})
}

// listed reads the records that came with a version.
func (e *entity) listed(v *VersionRow) {
	if v.After < v.Before {
		e.report.Add(Log, e.place(v), "says that the last record was %d before it and %d after it", v.Before, v.After)
	}
	e.each(v.After, func(r *RecordRow) {
		if !e.loggedApart {
			e.inOrder(e.record(r), r.Position)
		}
		if r.Version != v.Version || r.By != v.By || r.On != v.On || r.Key != "" {
			e.report.Add(Log, e.record(r), "came with version %d, but does not say so", v.Version)
		}
	})
}

// each reads the records up to a sequence number.
func (e *entity) each(upTo int64, check func(*RecordRow)) {
	for e.records.of(e.key) && e.records.row.Sequence <= upTo {
		r := e.records.row
		e.records.advance()
		e.report.Records.Add(1)
		if r.Sequence > e.sequence+1 {
			e.report.Add(Gap, e.name, "%s missing", span("record", e.sequence+1, r.Sequence-1))
		}
		e.sequence = r.Sequence
		e.checkRecord(&r)
		check(&r)
	}
	if upTo != math.MaxInt64 && e.sequence < upTo {
		e.report.Add(Gap, e.name, "%s missing", span("record", e.sequence+1, upTo))
		e.sequence = upTo
	}
}

// checkVersion checks a version by itself.
func (e *entity) checkVersion(v *VersionRow) {
	place := e.place(v)
	if v.On <= e.on && e.version != 0 {
		e.report.Add(Log, place, "was stored at %s, which is not after what precedes it (%s)", v.On, e.on)
	}
	e.logged(place, v.Version, 0, v.Position, v.By, v.On)
	if oda.DigestOf(v.Text) != v.Digest {
		e.report.Add(Text, place, "its text is not the one that was stored")
	}
	if v.Damage != nil {
		e.report.Add(Row, place, "%v", v.Damage)
		return
	}
	row := v.VersionRow
	if e.head != nil {
		row.OfEntity(e.head.Metadata)
	}
	switch {
	case row.Seal().Fits(v.Seal):
	case v.VersionRow.Seal().Fits(v.Seal):
		m := e.head.Metadata
		e.report.Add(Head, e.name, "its head says that %q created it, at %s, but the log says %q, at %s", m.CreatedBy, m.CreatedOn, v.By, v.On)
	default:
		e.report.Add(Row, place, "its row was edited, or has changed places with another")
	}
	for _, run := range v.Runs {
		if run.First < 1 || run.Last < run.First || run.Last > v.After {
			e.report.Add(Log, place, "holds the records %d to %d, but the last one then was %d", run.First, run.Last, v.After)
		}
	}
	if e.head != nil {
		if fault := e.document.check(e.head.Ref, oda.Body{Text: v.Text, Slots: v.Slots}); fault != "" {
			e.report.Add(Document, place, "%s", fault)
		}
	}
}

// checkRecord checks a record by itself.
func (e *entity) checkRecord(r *RecordRow) {
	place := e.record(r)
	if oda.DigestOf(r.Text) != r.Digest {
		e.report.Add(Text, place, "its text is not the one that was stored")
	}
	if !r.RecordRow.Seal().Fits(r.Seal) {
		e.report.Add(Row, place, "its row was edited, or has changed places with another")
	}
	if fault := notObject(r.Text); fault != "" {
		e.report.Add(Document, place, "%s", fault)
		return
	}
	keys := oda.KeysOfCall(r.Text)
	e.checkNotable(r, keys.Notable)
	call := dayPart{keys.Day.Or(r.On), engine.PartOf(r.Sequence)}
	if _, known := e.calls[call]; !known && len(e.calls) < mostDays {
		e.calls[call] = r.Sequence
	}
}

// inOrder checks that positions grow.
func (e *entity) inOrder(place string, position int64) {
	switch {
	case position > e.position:
	case e.position > Unnumbered:
		e.report.Add(Log, place, "comes in the log of changes before what precedes it")
	default:
		e.report.Add(Log, place, "has the position %d, which is not after %d", position, e.position)
	}
	e.position = max(e.position, position)
}

// logged checks the position of a version or a record. If the log of changes has
// rows of its own, the position comes from there.
func (e *entity) logged(place string, version, sequence, position int64, by string, on oda.Instant) {
	if !e.loggedApart {
		e.inOrder(place, position)
		return
	}
	e.unknown(version, sequence)
	c := e.changes
	if !c.more || c.row.Entity != e.key || c.row.Version != version || c.row.FirstSequence > sequence {
		e.report.Add(Gap, place, "is missing in the log of changes")
		return
	}
	last := c.row.LastSequence == sequence
	if c.row.By != by || last && c.row.On != on {
		e.report.Add(Log, place, "the log of changes names another user or time")
	}
	e.inOrder(place, int64(c.row.Position)-(c.row.LastSequence-sequence))
	if last {
		c.advance()
	} else {
		c.row.FirstSequence = sequence + 1
	}
}

// unknown reports entries of the log of changes that come before a version or a
// record and should not be there.
func (e *entity) unknown(version, sequence int64) {
	for c := e.changes; c.more && c.row.Entity == e.key; c.advance() {
		if c.row.Version > version || c.row.Version == version && c.row.LastSequence >= sequence {
			return
		}
		what := span("version", c.row.Version, c.row.Version)
		if !c.row.Stored() {
			what = span("record", c.row.FirstSequence, c.row.LastSequence)
		}
		e.report.Add(Log, e.name, "%s in the log of changes twice, or not in the archive", what)
	}
}

// checkHead compares the head with the log.
func (e *entity) checkHead() {
	h, m := e.head, e.head.Metadata
	switch {
	case m.Version > e.version:
		e.report.Add(Gap, e.name, "%s missing", span("version", e.version+1, m.Version))
	case m.Version < e.version:
		e.report.Add(Head, e.name, "its head says version %d, but version %d is there", m.Version, e.version)
	case h.Position != e.body && !e.loggedApart:
		e.report.Add(Head, e.name, "its head leads to position %d, but version %d is at %d", h.Position, e.version, e.body)
	}
	switch {
	case h.LastSequence > e.sequence:
		e.report.Add(Gap, e.name, "%s missing", span("record", e.sequence+1, h.LastSequence))
	case h.LastSequence < e.sequence:
		e.report.Add(Head, e.name, "its head says that the last record is %d, but record %d is there", h.LastSequence, e.sequence)
	case m.Version == e.version && (m.LastModifiedBy != e.by || m.LastModifiedOn != e.on):
		e.report.Add(Head, e.name, "its head says that %q modified it last, at %s, but the log says %q, at %s", m.LastModifiedBy, m.LastModifiedOn, e.by, e.on)
	}
}

func (e *entity) place(v *VersionRow) string { return fmt.Sprintf("%s, version %d", e.name, v.Version) }

func (e *entity) record(r *RecordRow) string { return fmt.Sprintf("%s, record %d", e.name, r.Sequence) }

// span names missing versions or records.
func span(what string, first, last int64) string {
	if first == last {
		return fmt.Sprintf("%s %d is", what, first)
	}
	return fmt.Sprintf("%ss %d to %d are", what, first, last)
}
