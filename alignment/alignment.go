// Package alignment puts the calls of two runs next to each other: calls of the same
// function, in the order in which both runs made them. It also sums up what differs.
//
// Of all ways to do so it takes one that leaves the fewest calls alone, and among these one
// in which the most calls were said the same. What it takes is bounded: where two long runs
// have so little in common that this would take long, it aligns them part by part, and says so.
package alignment

import (
	"oda"
	"oda/internal/jsondiff"
)

// Call is what is compared of a call.
type Call struct {
	Function int32
	Said     uint64 // the same for calls that are the same in all that is compared
	Failed   bool
	Took     oda.Elapsed // negative: it is not known
}

func (c *Call) same(other *Call) bool { return c.Function == other.Function && c.Said == other.Said }

// Row is a call of one run next to a call of the other, by their places; -1 where there is
// none.
type Row struct{ From, To int }

// Places are the places of both calls.
func (r Row) Places() [2]int { return [2]int{r.From, r.To} }

// Bounds of the search for the best alignment.
const (
	bandCells  = 1 << 24 // of a table; each takes a byte
	allCells   = 1 << 25 // of all tables, but those of windows
	firstBand  = 16      // calls that may be alone in the first try
	windowSize = 128     // calls of each run that are aligned at a time, where they are too many
)

// Calls aligns two runs. It reports whether there is no better alignment: otherwise they
// were too long and different, and were aligned part by part.
func Calls(from, to []Call) (rows []Row, isBest bool) {
	a := aligner{from: from, to: to, table: bandCells, left: allCells, window: windowSize, isBest: true}
	a.all()
	return a.rows, a.isBest
}

// aligner aligns two runs from their beginnings to their ends.
type aligner struct {
	from, to []Call
	i, j     int // calls that are aligned
	rows     []Row
	isBest   bool

	table, left, window int
	choices             []choice
	sums                []int64
}

func (a *aligner) all() {
	n, m := len(a.from), len(a.to)
	for a.i < n && a.j < m && a.from[a.i].same(&a.to[a.j]) {
		a.pair()
	}
	end := 0
	for a.i < n-end && a.j < m-end && a.from[n-1-end].same(&a.to[m-1-end]) {
		end++
	}
	if !a.exactly(n-end, m-end) {
		a.isBest = false
		a.betweenAnchors(n-end, m-end)
	}
	for range end {
		a.pair()
	}
}

func (a *aligner) pair() {
	a.rows = append(a.rows, Row{a.i, a.j})
	a.i, a.j = a.i+1, a.j+1
}

// betweenAnchors aligns the calls before two places. Calls that each run made exactly once,
// with the same arguments, belong together. So no long part that only one run has can shift
// all that follows.
func (a *aligner) betweenAnchors(n, m int) {
	numbers := func(calls []Call) []uint64 {
		all := make([]uint64, len(calls))
		for i, c := range calls {
			all[i] = c.Said + uint64(c.Function)*0x9e3779b97f4a7c15
		}
		return all
	}
	begin := Row{a.i, a.j}
	for _, one := range jsondiff.Anchors(numbers(a.from[a.i:n]), numbers(a.to[a.j:m])) {
		i, j := begin.From+one[0], begin.To+one[1]
		if a.from[i].Function != a.to[j].Function {
			continue // their numbers are the same by chance
		}
		a.stretch(i, j)
		a.pair()
	}
	a.stretch(n, m)
}

// stretch aligns the calls before two places, window by window if they are too many.
func (a *aligner) stretch(n, m int) {
	for !a.exactly(n, m) {
		a.inBand(min(n, a.i+a.window), min(m, a.j+a.window), a.window, a.window/2)
	}
}

// exactly aligns the calls before two places, or returns false if that would take too long.
func (a *aligner) exactly(n, m int) bool {
	rows, columns := n-a.i, m-a.j
	whole := max(rows, columns)
	for band := firstBand; ; band *= 4 {
		band = min(band, whole)
		_, width := diagonals(min(rows, columns), whole, band)
		if cells := (min(rows, columns) + 1) * width; cells > 4*a.window*a.window { // smaller ones are not counted
			if cells > a.table || cells > a.left {
				return false
			}
			a.left -= cells
		}
		i, j, done := a.i, a.j, len(a.rows)
		a.inBand(n, m, band, rows+columns)
		// Another alignment that leaves no more calls alone would be in the band too.
		alone := 2*(len(a.rows)-done) - rows - columns
		if band == whole || alone <= whole-min(rows, columns)+2*band {
			return true
		}
		a.i, a.j, a.rows = i, j, a.rows[:done]
	}
}

// inBand aligns the calls before two places, as well as can be if in neither run many more are
// skipped before a call than in the other: as many as the band is wide. It stops after most
// calls of either run.
func (a *aligner) inBand(n, m, band, most int) {
	t := table{rows: a.from[a.i:n], columns: a.to[a.j:m], skipFirst: skipRow}
	isTurned := n-a.i > m-a.j
	if isTurned { // so that there are few rows
		t = table{rows: t.columns, columns: t.rows, skipFirst: skipColumn}
	}
	t.choices, t.sums = a.choices, a.sums
	t.fill(band)
	a.choices, a.sums = t.choices, t.sums
	for r, c := 0, 0; (r < len(t.rows) || c < len(t.columns)) && max(r, c) < most; {
		choice := t.choices[r*t.width+c-r-t.low]
		if choice != skipColumn {
			r++
		}
		if choice != skipRow {
			c++
		}
		switch {
		case choice == pairThem:
			a.pair()
		case choice == t.skipFirst:
			a.rows = append(a.rows, Row{a.i, -1})
			a.i++
		default:
			a.rows = append(a.rows, Row{-1, a.j})
			a.j++
		}
	}
}
