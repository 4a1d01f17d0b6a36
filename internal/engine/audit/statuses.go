package audit

import (
	"fmt"

	"oda"
)

// readStatuses reads the statuses of the entity, and returns the standing that follows
// from them.
func (e *entity) readStatuses() (now oda.Standing) {
	var position int64
	for e.statuses.of(e.key) {
		s := e.statuses.row
		e.statuses.advance()
		e.report.Statuses.Add(1)
		place := fmt.Sprintf("%s, status %d", e.name, s.Sequence)
		if s.Sequence > now.Last+1 {
			e.report.Add(Gap, e.name, "%s missing", span("status", now.Last+1, s.Sequence-1))
		}
		if s.Check(s.Digest) != nil {
			e.report.Add(Row, place, "its row was edited, or has changed places with another")
		}
		if e.head != nil && s.Version > e.head.Metadata.Version {
			e.report.Add(Log, place, "means version %d, but the last one is %d", s.Version, e.head.Metadata.Version)
		}
		if should := now.Yields(s.At); s.Current != should {
			e.report.Add(Log, place, "does not agree with the statuses before it on whether it became the current one")
			s.Current = should
		}
		if e.loggedApart {
			s.Position = e.loggedStatus(place, &s)
		}
		if s.Position <= position {
			e.report.Add(Log, place, "comes in the log of changes before the status before it")
		}
		position = s.Position
		now = now.After(&s.Status)
	}
	for e.said.of(e.key) {
		e.report.Add(Log, e.name, "%s in the log of changes twice, or not in the archive", span("status", e.said.row.Said.Sequence, e.said.row.Said.Sequence))
		e.said.advance()
	}
	return now
}

// loggedStatus returns the position of a status, which the log of changes has.
func (e *entity) loggedStatus(place string, s *StatusRow) int64 {
	for e.said.of(e.key) && e.said.row.Said.Sequence < s.Sequence {
		e.report.Add(Log, e.name, "%s in the log of changes twice, or not in the archive", span("status", e.said.row.Said.Sequence, e.said.row.Said.Sequence))
		e.said.advance()
	}
	if !e.said.of(e.key) || e.said.row.Said.Sequence != s.Sequence {
		e.report.Add(Gap, place, "is missing in the log of changes")
		return Unnumbered
	}
	c := e.said.row
	e.said.advance()
	if c.By != s.By || c.On != s.On || c.Version != s.Version {
		e.report.Add(Log, place, "the log of changes names another user, time or version")
	}
	return int64(c.Position)
}

// standing reads what is kept of the current status.
func (e *entity) standing() (row *StandingRow) {
	if e.standings.of(e.key) {
		found := e.standings.row
		row = &found
		e.standings.advance()
	}
	return row
}

// checkStanding compares what is kept of the current status with the entries or, if there
// are none, with the document.
func (e *entity) checkStanding(row *StandingRow, now oda.Standing) {
	if now.Last == 0 {
		extract := e.extract()
		if extract == nil {
			return
		}
		now = oda.StandingOf(extract.Summary().Status)
	}
	switch {
	case row == nil && now.Text != "":
		e.report.Add(Index, e.name, "searches do not know its status %q", now.Text)
	case row == nil:
	case now.Last > row.Last:
		e.report.Add(Index, e.name, "its current status is that of %d statuses, but there are %d", row.Last, now.Last)
	case now.Last < row.Last:
		e.report.Add(Gap, e.name, "%s missing", span("status", now.Last+1, row.Last))
	case row.Text != now.Text:
		e.report.Add(Index, e.name, "its current status is kept as %q, but is %q", row.Text, now.Text)
	case row.Standing != now, row.Folded != oda.FoldStatus(now.Text):
		e.report.Add(Index, e.name, "of its current status %q, another form, class, sequence number or time is kept", now.Text)
	case row.Ref != e.head.Ref, row.CreatedOn != e.head.Metadata.CreatedOn:
		e.report.Add(Index, e.name, "searches by status know another identifier or time of creation")
	}
}
