package postgres

import (
	"context"

	"oda"
)

// plan says which records of a new version are stored already, and the last
// sequence on which it rests.
type plan struct {
	lastSequence *int64  // nil: it rests on nothing
	sequences    []int64 // for each record, 0 where it is new
}

// plan reads the records that are stored now, where the put lists any. It
// holds if the metadata matches, since every record moves the metadata. If it
// does not match now, the put is refused or planned again.
func (s *Store) plan(ctx context.Context, p *oda.Put) (plan, error) {
	if len(p.Records) == 0 {
		return plan{}, nil
	}
	last := int64(0)
	r, err := s.read(ctx, s.with, selectCurrent, int16(p.Kind), p.ID)
	if err != nil || r == nil {
		return plan{lastSequence: &last}, err
	}
	if expected, _ := p.Expected.Matchable(p.Compare); expected.Tag() != r.metadata.Tag() {
		return plan{}, errRefused
	}
	var sharing oda.Sharing
	for one, err := range s.numbered(ctx, p.Ref, r.runs) {
		if err != nil {
			return plan{}, err
		}
		sharing.Stored(one.sequence, one.text)
	}
	return plan{&r.lastSequence, sharing.Plan(p.Records)}, nil
}

// records gives the runs of the new version, nil for no list, and the records
// that are to be written.
func (pl plan) records(p *oda.Put) (runs []int64, fresh [][]byte) {
	fresh = [][]byte{}
	if !p.Listed {
		return nil, fresh
	}
	var list oda.Runs
	next := int64(0)
	if pl.lastSequence != nil {
		next = *pl.lastSequence
	}
	for i, text := range p.Records {
		if pl.sequences != nil && pl.sequences[i] != 0 {
			list = list.Add(pl.sequences[i])
			continue
		}
		next++
		list = list.Add(next)
		fresh = append(fresh, text)
	}
	return encodeRuns(list), fresh
}

func encodeRuns(list oda.Runs) []int64 {
	packed := make([]int64, 0, 2*len(list))
	for _, r := range list {
		packed = append(packed, r.First, r.Last)
	}
	return packed
}

// decodeRuns unpacks runs as they are stored, and joins those that follow each
// other.
func decodeRuns(packed []int64) oda.Runs {
	runs := make(oda.Runs, 0, len(packed)/2)
	for i := 0; i+1 < len(packed); i += 2 {
		runs = runs.AddRun(packed[i], packed[i+1])
	}
	return runs
}
