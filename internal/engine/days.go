package engine

import (
	"slices"

	"oda"
)

// The index of days says on which days a block has calls, by parts of so many
// sequence numbers: a row for each day and part, with the first sequence of that
// day in that part. So most records do not touch it, and a night reads little
// more of a block than its own calls, however long the block is.
const PartLength = 4096

// PartOf is the part of a sequence number. Parts count from 1.
func PartOf(sequence int64) int64 { return (sequence-1)/PartLength + 1 }

// DaySpan is records that are to be added, from one place to another, among
// which all that have calls of one day are.
type DaySpan struct {
	First, Last int
	Day         oda.Day
}

// DaySpans returns a span for each day of the records. The day of the recording
// may turn out to be one of the others; then the span that begins first must
// count, so all begin with the first record.
func DaySpans(days []oda.Day) []DaySpan {
	var spans []DaySpan
	byDay := make(map[oda.Day]int)
	for i, day := range days {
		if i > 0 && day == days[i-1] {
			spans[byDay[day]].Last = i
			continue
		}
		at, known := byDay[day]
		if !known {
			at = len(spans)
			byDay[day] = at
			spans = append(spans, DaySpan{First: i, Day: day})
		}
		spans[at].Last = i
	}
	if _, unsaid := byDay[oda.DayOfRecording]; unsaid {
		for i := range spans {
			spans[i].First = 0
		}
	}
	return spans
}

// Parts returns the stretches of sequence numbers that rows of the index lead to:
// from the first sequence of a day to the end of the part. It sorts what it is
// given.
func Parts(firsts []int64) Runs {
	slices.Sort(firsts)
	var parts Runs
	for _, first := range firsts {
		end := PartOf(first) * PartLength
		if n := len(parts); n > 0 && parts[n-1].Last == end {
			continue // another day of the same part, which begins earlier
		}
		parts = parts.AddRun(first, end)
	}
	return parts
}

// Within returns what of the runs lies in others. These are in the order of
// sequence numbers, and so is the result.
func (r Runs) Within(others Runs) Runs {
	var within Runs
	mine := r.Behind(0)
	for len(mine) > 0 && len(others) > 0 {
		within = within.AddRun(max(mine[0].First, others[0].First), min(mine[0].Last, others[0].Last))
		if mine[0].Last < others[0].Last {
			mine = mine[1:]
		} else {
			others = others[1:]
		}
	}
	return within
}
