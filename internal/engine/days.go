package engine

import (
	"slices"

	"oda"
)

// PartLength is how many sequence numbers a part of a block has. The index of
// days has a row for each part and each day with calls in it; the row holds the
// first sequence number of that day. So most records do not change the index, and
// a report on a night reads little more than the calls of that night, however
// long the block is.
const PartLength = 4096

// PartOf returns the part of a sequence number. Parts count from 1.
func PartOf(sequence int64) int64 { return (sequence-1)/PartLength + 1 }

// DaySpan is a range of the records to be added. It has all of them whose calls
// are on one day.
type DaySpan struct {
	First, Last int
	Day         oda.Day
}

// DaySpans returns a span for each day of the records. DayOfRecording may turn out
// to be the same day as another span. If it occurs, all spans begin with the first
// record, so that it does not matter which of the two counts.
func DaySpans(keys []oda.CallKeys) []DaySpan {
	var spans []DaySpan
	byDay := make(map[oda.Day]int)
	for i := range keys {
		day := keys[i].Day
		if i > 0 && day == keys[i-1].Day {
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

// Parts returns the runs that rows of the index lead to, each from the first
// sequence number of a day to the end of its part. It sorts firsts.
func Parts(firsts []int64) Runs {
	slices.Sort(firsts)
	var parts Runs
	for _, first := range firsts {
		end := PartOf(first) * PartLength
		if n := len(parts); n > 0 && parts[n-1].Last == end {
			continue // an earlier row already leads to this part
		}
		parts = parts.AddRun(first, end)
	}
	return parts
}

// Within returns the intersection of the runs with others. Others must be in the
// order of sequence numbers, and so is the result.
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
