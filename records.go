package oda

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
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

// Behind gives the runs in the order of sequence numbers, without what is not
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

// Skip gives the runs without the first n records.
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

// Encode packs the runs for keeping.
func (r Runs) Encode() []byte {
	out := make([]byte, 0, 4*len(r))
	for _, run := range r {
		out = binary.AppendUvarint(out, uint64(run.First))
		out = binary.AppendUvarint(out, uint64(run.Last-run.First))
	}
	return out
}

// DecodeRuns unpacks what Encode packed.
func DecodeRuns(packed []byte) (Runs, error) {
	runs := make(Runs, 0, len(packed)/2)
	for len(packed) > 0 {
		first, n := binary.Uvarint(packed)
		if n <= 0 {
			return nil, errRuns
		}
		length, m := binary.Uvarint(packed[n:])
		if m <= 0 || first == 0 || first > 1<<62 || length > 1<<62-first {
			return nil, errRuns
		}
		runs = append(runs, Run{int64(first), int64(first + length)})
		packed = packed[n+m:]
	}
	return runs, nil
}

var errRuns = errors.New("the list of records of a stored version is damaged")

// Ahead gives the records of a version that is about to be committed: the
// first of them read with now, the rest later, when they are asked for.
func Ahead(runs Runs, now, later func(Runs) Texts) (Texts, error) {
	var first [][]byte
	size := 0
	for text, err := range now(runs) {
		if err != nil {
			return nil, err
		}
		first = append(first, text)
		if size += len(text); size >= AnswerAhead {
			break
		}
	}
	rest := later(runs.Skip(int64(len(first))))
	return func(yield func([]byte, error) bool) {
		for _, text := range first {
			if !yield(text, nil) {
				return
			}
		}
		rest(yield)
	}, nil
}

// PageBytes is the size of records from which on no more are read at once.
const PageBytes = 4 << 20

// PageReader gathers records until there are enough of them.
type PageReader struct {
	Page  RecordPage
	bytes int
}

// ErrPageFull ends the gathering of a page.
var ErrPageFull = errors.New("the page is full")

// Add takes the next record, or says that the page is full.
func (p *PageReader) Add(r Record, limit int) error {
	if len(p.Page.Records) >= limit || p.bytes >= PageBytes {
		p.Page.More = true
		return ErrPageFull
	}
	p.Page.Records = append(p.Page.Records, r)
	p.bytes += len(r.Text)
	return nil
}

// Sharing finds which of the records that a new version lists are stored
// already, so that they are not stored again. Feed it the stored records of the
// version before with Stored, then ask Plan. It keeps digests, not texts, since
// a block may be much longer than the list that replaces it.
type Sharing struct {
	known map[[sha256.Size]byte][]int64
}

// Stored notes a record of the version before.
func (s *Sharing) Stored(sequence int64, text []byte) {
	if s.known == nil {
		s.known = make(map[[sha256.Size]byte][]int64)
	}
	digest := sha256.Sum256(text)
	s.known[digest] = append(s.known[digest], sequence)
}

// Plan gives for each record of the new version the sequence number of the
// stored record that it equals, each used once and the earliest first, or 0
// where it is new.
func (s *Sharing) Plan(records [][]byte) []int64 {
	plan := make([]int64, len(records))
	if len(s.known) == 0 {
		return plan
	}
	for i, text := range records {
		digest := sha256.Sum256(text)
		if equal := s.known[digest]; len(equal) > 0 {
			plan[i] = equal[0]
			s.known[digest] = equal[1:]
		}
	}
	return plan
}

// MaxNewRecords is how many records that are not stored yet one request may
// bring in lists: others must not wait long until all of them are written.
const MaxNewRecords = 100_000

// CheckNewRecords holds the number of new records of a request against the
// bound. Planned says of the records of each list which are stored already, as
// Sharing does; nil where none is.
func CheckNewRecords(puts []Put, planned func(i int) []int64) error {
	n := 0
	for i := range puts {
		n += len(puts[i].Records)
		for _, sequence := range planned(i) {
			if sequence != 0 {
				n--
			}
		}
	}
	if n <= MaxNewRecords {
		return nil
	}
	return Errorf(InvalidRequest, "This request brings %d records that are not stored yet, and at most %d are taken at once, "+
		"since others would have to wait for them. Nothing was stored. Store the block with fewer of them, and record the others.", n, MaxNewRecords)
}
