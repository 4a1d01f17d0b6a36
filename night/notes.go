package night

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"oda"
)

// Bounds of what people said.
const (
	maxNotes      = 500 // of a report
	maxUnresolved = 100
	maxProblems   = 2000 // that are looked at for those that are not resolved
)

// Notes finds what people said. A search.Searcher does, but package search needs package
// progress, which needs this one.
type Notes interface {
	// Notes goes through the notes that are not withdrawn, the newest first: those about a
	// part of a range, whose bounds may be nil, and of one level, unless it is empty.
	Notes(ctx context.Context, after, before *oda.Instant, level oda.Level) iter.Seq2[*oda.Found, error]
}

// TimeLost is how much time was lost to something.
type TimeLost struct {
	Type oda.Loss    `json:"type"`
	Lost oda.Elapsed `json:"seconds"`
}

// say puts what people said about the night into a report.
func (r *Reporter) say(ctx context.Context, q Query, report *Report) error {
	lost := make(map[oda.Loss]oda.Elapsed)
	report.Notes, report.TimeLost = []oda.Found{}, []TimeLost{}
	for f, err := range r.notes.Notes(ctx, &q.From, &q.To, "") {
		if err != nil {
			return err
		}
		if !q.concerns(f) {
			continue
		}
		remark := f.Summary.Remark
		if from, _ := remark.Interval(f.Metadata.CreatedOn); from >= q.From && remark.Lost > 0 {
			lost[remark.LostTo] = plus(lost[remark.LostTo], remark.Lost)
		}
		if report.Notes = append(report.Notes, *f); len(report.Notes) == 2*maxNotes {
			report.Notes = firstNotes(report.Notes)
		}
	}
	report.Notes = firstNotes(report.Notes)
	for _, loss := range oda.LossNames() {
		if lost := lost[oda.Loss(loss)]; lost > 0 {
			report.TimeLost = append(report.TimeLost, TimeLost{oda.Loss(loss), lost})
		}
	}
	return nil
}

// Unresolved returns the notes about problems that began before the end of a night and
// that nobody has resolved until now, the newest first. It looks at the newest problems,
// and returns the newest of those.
func (r *Reporter) Unresolved(ctx context.Context, q Query) ([]oda.Found, error) {
	var open []oda.Found
	looked := 0
	for f, err := range r.notes.Notes(ctx, nil, nil, oda.Trouble) {
		if err != nil {
			return nil, err
		}
		from, _ := f.Summary.Remark.Interval(f.Metadata.CreatedOn)
		if f.Unresolved() && from < q.To && q.concerns(f) {
			open = append(open, *f)
		}
		if looked++; looked == maxProblems || len(open) == maxUnresolved {
			break
		}
	}
	return open, nil
}

// concerns reports whether a note is about the telescopes of the query, as one that names
// none is.
func (q Query) concerns(f *oda.Found) bool {
	return q.Telescope == "" || f.Summary.Telescope == "" || f.Summary.Telescope == q.Telescope
}

// firstNotes returns the first notes of a night, by the time that they are about.
func firstNotes(notes []oda.Found) []oda.Found {
	begin := func(f *oda.Found) oda.Instant {
		from, _ := f.Summary.Remark.Interval(f.Metadata.CreatedOn)
		return from
	}
	slices.SortFunc(notes, func(a, b oda.Found) int {
		return cmp.Or(cmp.Compare(begin(&a), begin(&b)), cmp.Compare(a.Metadata.CreatedOn, b.Metadata.CreatedOn), cmp.Compare(a.ID, b.ID))
	})
	return slices.Clip(notes[:min(len(notes), maxNotes)])
}
