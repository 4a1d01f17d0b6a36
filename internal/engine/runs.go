package engine

import (
	"cmp"
	"slices"

	"oda"
)

// Run is a range of sequence numbers.
type Run = oda.Run

// Runs says which records a version of an ExecutionBlock holds, in order. Records
// never change and are stored in rows of their own, so versions share them.
type Runs []Run

// Add appends one record.
func (r Runs) Add(sequence int64) Runs { return r.AddRun(sequence, sequence) }

// AddRun appends the records from first to last, if there are any.
func (r Runs) AddRun(first, last int64) Runs {
	if first > last {
		return r
	}
	if n := len(r); n > 0 && r[n-1].Last == first-1 {
		r[n-1].Last = last
		return r
	}
	return append(r, Run{First: first, Last: last})
}

// Behind returns the records after a sequence number, as runs in the order of
// sequence numbers.
func (r Runs) Behind(sequence int64) Runs {
	behind := make(Runs, 0, len(r))
	for _, run := range r {
		if run.Last > sequence {
			behind = append(behind, Run{First: max(run.First, sequence+1), Last: run.Last})
		}
	}
	slices.SortFunc(behind, func(a, b Run) int { return cmp.Compare(a.First, b.First) })
	return behind
}

// Among returns the part of the runs that is in a range of sequence numbers.
func (r Runs) Among(s oda.Sequences) Runs { return r.Within(Runs{Run(s)}) }

// Has reports whether the runs have a record.
func (r Runs) Has(sequence int64) bool {
	return slices.ContainsFunc(r, func(run Run) bool { return run.First <= sequence && sequence <= run.Last })
}

// Count returns the number of records.
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
		return append(Runs{{First: run.First + n, Last: run.Last}}, r[i+1:]...)
	}
	return nil
}

// Absent is what statements return for the sequence number of a missing version,
// and for the end of a version whose next version is missing.
const Absent = -1

// Current returns the records of the version: those that it was stored with, and
// those that were recorded later, which belong to it as well. It returns nil if
// the document has no list of records, that is, if it was stored without one and
// nothing was recorded. After is the last sequence number of the block when the
// version was stored. Last is the one with which the version ends; for the current
// version that is the last one of the block. Values that contradict each other are
// damage.
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

// within reports whether the runs can be those of a version of a block with that
// last sequence number: no record occurs twice.
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
