package engine

import (
	"cmp"
	"slices"

	"oda"
)

// Run is a stretch of sequence numbers, both ends included.
type Run struct{ First, Last int64 }

// Runs says which records a version of an ExecutionBlock holds, in order.
// Records are rows of their own and never change, so versions share them.
type Runs []Run

// Add appends one record.
func (r Runs) Add(sequence int64) Runs {
	if n := len(r); n > 0 && r[n-1].Last == sequence-1 {
		r[n-1].Last = sequence
		return r
	}
	return append(r, Run{sequence, sequence})
}

// AddRun appends the records from first to last, if there are any.
func (r Runs) AddRun(first, last int64) Runs {
	if first > last {
		return r
	}
	if n := len(r); n > 0 && r[n-1].Last == first-1 {
		r[n-1].Last = last
		return r
	}
	return append(r, Run{first, last})
}

// Joined joins the runs that follow each other.
func (r Runs) Joined() Runs {
	if r == nil {
		return nil
	}
	joined := r[:0]
	for _, run := range r {
		joined = joined.AddRun(run.First, run.Last)
	}
	return joined
}

// Behind returns the runs in the order of sequence numbers, without what is not
// behind the given one.
func (r Runs) Behind(sequence int64) Runs {
	behind := make(Runs, 0, len(r))
	for _, run := range r {
		if run.Last > sequence {
			behind = append(behind, Run{max(run.First, sequence+1), run.Last})
		}
	}
	slices.SortFunc(behind, func(a, b Run) int { return cmp.Compare(a.First, b.First) })
	return behind
}

// Count is the number of records.
func (r Runs) Count() int64 {
	n := int64(0)
	for _, run := range r {
		n += run.Last - run.First + 1
	}
	return n
}

// Skip returns the runs without the first n records.
func (r Runs) Skip(n int64) Runs {
	for i, run := range r {
		if length := run.Last - run.First + 1; n >= length {
			n -= length
			continue
		}
		return append(Runs{{run.First + n, run.Last}}, r[i+1:]...)
	}
	return nil
}

// Absent is what statements give for the sequence number of a version that is
// missing, and for the end of one whose next version is missing.
const Absent = -1

// Current returns the records of the version: those that it was stored with, and
// those that were recorded since, which belong to it as well. They are nil where
// the document has no list of records: it was stored without one (nil), and
// nothing has been recorded. After is the last sequence of the block when the
// version was stored; last is the one at which the version ends, which for the
// current version is that of the head. What cannot be so is damage.
//
// The statement with which PostgreSQL stores a version that keeps the records
// (keepBody) repeats this rule.
func (v Version) Current(stored Runs, after, last int64) (Runs, error) {
	switch {
	case after == Absent:
		return nil, oda.LostVersion(v.Ref, v.Number)
	case last == Absent:
		return nil, oda.LostVersion(v.Ref, v.Number+1)
	case after < 0 || last < after || !stored.within(after):
		return nil, oda.Damaged(v.Ref, v.Number, 0).Because(ErrRuns)
	}
	return stored.AddRun(after+1, last), nil
}

// within reports whether the runs can be those of a version of a block whose last
// sequence is given: no record comes twice.
func (r Runs) within(last int64) bool {
	count := int64(0)
	for _, run := range r {
		if run.First < 1 || run.Last < run.First || run.Last > last {
			return false
		}
		length := run.Last - run.First + 1
		if length > last-count {
			return false
		}
		count += length
	}
	return true
}
