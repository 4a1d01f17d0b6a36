package alignment

import (
	"slices"

	"oda"
)

// Kind is how the two calls of a row differ.
type Kind byte

// Kinds of rows. Calls that are the same may have failed in both runs.
const (
	Same    Kind = iota
	Changed      // other arguments
	Failed       // it failed in one of both runs
	Extra        // only the second run has it
	Missing      // only the first run has it
	kinds
)

// Sum is what differs between two runs.
type Sum struct {
	Rows  int
	Of    [kinds]int // rows, by kind; those that failed in one run may also have other arguments
	First [kinds]int // the first row of each kind

	Steps    int    // calls that both runs made
	FailedIn [2]int // calls that failed in one run, and not in the other
	FirstIn  [2]int // the first rows of those
	Both     int    // calls that failed in both

	Timed int            // calls that both runs made, that failed in neither and took a known time
	Took  [2]oda.Elapsed // together
}

// KindOf returns how the calls of a row differ.
func KindOf(r Row, from, to []Call) Kind {
	switch {
	case r.From < 0:
		return Extra
	case r.To < 0:
		return Missing
	case from[r.From].Failed != to[r.To].Failed:
		return Failed
	case !from[r.From].same(&to[r.To]):
		return Changed
	}
	return Same
}

// SumOf sums up an alignment.
func SumOf(rows []Row, from, to []Call) Sum {
	s := Sum{Rows: len(rows)}
	for n, r := range rows {
		kind := KindOf(r, from, to)
		if s.Of[kind]++; s.Of[kind] == 1 {
			s.First[kind] = n
		}
		if isTimed(r, from, to) {
			s.Timed++
			s.Took[0] += from[r.From].Took
			s.Took[1] += to[r.To].Took
		}
		var failed [2]bool
		if r.From >= 0 {
			failed[0] = from[r.From].Failed
		}
		if r.To >= 0 {
			failed[1] = to[r.To].Failed
		}
		switch {
		case failed[0] && failed[1]:
			s.Both++
		case failed[0]:
			s.fails(0, n)
		case failed[1]:
			s.fails(1, n)
		}
		if r.From >= 0 && r.To >= 0 {
			s.Steps++
		}
	}
	return s
}

func (s *Sum) fails(run, row int) {
	if s.FailedIn[run]++; s.FailedIn[run] == 1 {
		s.FirstIn[run] = row
	}
}

// Slower returns by how much the second run was slower, of the time that the first took: 0.12
// if it was 12 % slower, less than 0 if it was faster. Only the calls that both runs made, and
// that failed in neither, count: how soon a call fails says little.
func (s *Sum) Slower() (share float64, isKnown bool) {
	if s.Timed == 0 || s.Took[0] == 0 {
		return 0, false
	}
	return float64(s.Took[1])/float64(s.Took[0]) - 1, true
}

// Slowest returns the rows of a few steps whose durations differ most, the most unlike
// first. Both runs made these steps, and they failed in neither.
func Slowest(rows []Row, from, to []Call, most int) []int {
	var found []int
	by := func(n int) oda.Elapsed {
		d := to[rows[n].To].Took - from[rows[n].From].Took
		return max(d, -d)
	}
	for n, r := range rows {
		if !isTimed(r, from, to) || len(found) == most && by(n) <= by(found[most-1]) {
			continue
		}
		at, _ := slices.BinarySearchFunc(found, n, func(other, n int) int {
			if by(other) >= by(n) {
				return -1
			}
			return 1
		})
		found = slices.Insert(found, at, n)
		found = found[:min(most, len(found))]
	}
	return found
}

// isTimed reports whether a row says how long something took in both runs.
func isTimed(r Row, from, to []Call) bool {
	return r.From >= 0 && r.To >= 0 && !from[r.From].Failed && !to[r.To].Failed && from[r.From].Took >= 0 && to[r.To].Took >= 0
}
