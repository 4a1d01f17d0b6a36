package engine

import (
	"iter"

	"oda"
)

// Sharing says which records of a new version are already stored, so that they are
// not stored again. For each record of the list it has the sequence number of the
// stored record that equals it, or 0 if it is new. Nil means that all are new.
type Sharing []int64

// Share compares the records of a list with the stored ones of the previous
// version, by their digests. It uses each stored record once, the earliest first.
func Share(list []Listed, stored iter.Seq2[Numbered, error]) (Sharing, error) {
	known := make(map[oda.Digest][]int64)
	for r, err := range stored {
		if err != nil {
			return nil, err
		}
		known[r.Digest] = append(known[r.Digest], r.Sequence)
	}
	sharing := make(Sharing, len(list))
	for i, r := range list {
		if equal := known[r.Digest]; len(equal) > 0 {
			sharing[i] = equal[0]
			known[r.Digest] = equal[1:]
		}
	}
	return sharing, nil
}

// Listed is a record of a list that may have to be stored.
type Listed struct {
	Text   []byte
	Digest oda.Digest
}

// List returns the records of a list with their digests.
func List(texts [][]byte) []Listed {
	list := make([]Listed, len(texts))
	for i, text := range texts {
		list[i] = Listed{text, oda.DigestOf(text)}
	}
	return list
}

// Number returns the runs of a version with this list, and the records that must be
// written. They get the sequence numbers after last.
func (s Sharing) Number(list []Listed, last int64) (runs Runs, fresh []Listed) {
	runs = Runs{}
	for i, r := range list {
		if s != nil && s[i] != 0 {
			runs = runs.Add(s[i])
			continue
		}
		fresh = append(fresh, r)
		runs = runs.Add(last + int64(len(fresh)))
	}
	return runs, fresh
}

// NewOf returns those elements of all that belong to records which must be
// written. All has an element for each record of the list.
func NewOf[T any](s Sharing, all []T) []T {
	if s == nil {
		return all
	}
	var fresh []T
	for i, one := range all {
		if s[i] == 0 {
			fresh = append(fresh, one)
		}
	}
	return fresh
}

// AtLeast is how many new records the lists of a request have, whatever is in them.
type AtLeast int64

// TooMany adds a list that replaces one with this number of stored records. It reports whether
// the request has too many new records in any case. Then there is no need to look at
// them: without a Sharing all count as new, and CheckNew refuses the request.
func (n *AtLeast) TooMany(list [][]byte, stored int64) bool {
	*n += AtLeast(max(0, int64(len(list))-stored))
	return *n > oda.MaxNewRecords
}

// CheckNew returns an error if a request has too many new records.
func CheckNew(puts []oda.Put, sharing []Sharing) error {
	n := 0
	for i := range puts {
		n += len(puts[i].Records)
		for _, sequence := range sharing[i] {
			if sequence != 0 {
				n--
			}
		}
	}
	return oda.CheckNewRecords(n)
}
