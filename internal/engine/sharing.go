package engine

import (
	"iter"

	"oda"
)

// Sharing says which of the records that a new version lists are stored
// already, so that they are not stored again: for each record the sequence
// number of the stored record that it equals, or 0 where it is new. Nil means
// that all are new.
type Sharing []int64

// Share finds which records of a list are among the stored ones of the version
// before, by their digests. Each stored record is used once, the earliest first.
func Share(list []Fresh, stored iter.Seq2[Numbered, error]) (Sharing, error) {
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

// Fresh is a record of a list that may have to be stored.
type Fresh struct {
	Text   []byte
	Digest oda.Digest
}

// List computes the digests of a list of records.
func List(texts [][]byte) []Fresh {
	list := make([]Fresh, len(texts))
	for i, text := range texts {
		list[i] = Fresh{text, oda.DigestOf(text)}
	}
	return list
}

// Place returns the runs of a version that holds this list, in a block whose last
// sequence is given, and the records that are to be written behind it.
func (s Sharing) Place(list []Fresh, last int64) (runs Runs, fresh []Fresh) {
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

// FreshOf gives of something that is known of each record of a list that of those
// which are to be written.
func FreshOf[T any](s Sharing, all []T) []T {
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

// CheckNew holds the number of new records of a request against the bound.
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
