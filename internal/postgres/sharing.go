package postgres

import (
	"context"

	"oda"
	"oda/internal/engine"
)

// sharing says which records of a new version are already stored. It is valid while
// the block has that last sequence number.
type sharing struct {
	engine.Sharing
	records      []engine.Listed // that the version lists
	lastSequence *int64          // nil: always valid
}

// share compares the records of a put, if it lists any, with the stored ones. The
// result is valid if the metadata matches, since every record changes the metadata.
// If it does not match now, the put is refused or tried again.
func (s *Store) share(ctx context.Context, p *oda.Put, fresh *engine.AtLeast) (sharing, error) {
	if len(p.Records) == 0 {
		return sharing{}, nil
	}
	var r *row // nil: it can only be the first version
	if expected, matchable := p.Expected.Matchable(p.Compare); matchable {
		var err error
		if r, err = s.read(ctx, s.with, p.Ref, selectCurrent, int16(p.Kind), p.ID); err != nil {
			return sharing{}, err
		}
		if r != nil && expected.Tag() != r.metadata.Tag() {
			return sharing{}, errRefused
		}
		if r != nil && r.damage != nil {
			return sharing{}, r.damage
		}
	}
	var stored int64
	if r != nil {
		stored = r.runs.Count()
	}
	if fresh.TooMany(p.Records, stored) {
		return sharing{}, nil
	}
	found := sharing{records: engine.List(p.Records), lastSequence: new(int64)}
	if r == nil {
		return found, nil
	}
	found.lastSequence = &r.lastSequence
	var err error
	found.Sharing, err = engine.Share(found.records, engine.InParts(r.Version, r.runs, s.parts(ctx, p.Ref)))
	return found, err
}

// number returns the runs of the new version, nil for no list, and the texts and
// digests of the records that must be written.
func (s sharing) number(p *oda.Put) (runs []int64, texts, digests [][]byte) {
	texts, digests = [][]byte{}, [][]byte{}
	if !p.Listed {
		return nil, texts, digests
	}
	last := int64(0)
	if s.lastSequence != nil {
		last = *s.lastSequence
	}
	list, fresh := s.Number(s.records, last)
	for i := range fresh {
		texts, digests = append(texts, fresh[i].Text), append(digests, fresh[i].Digest[:])
	}
	return encodeRuns(list), texts, digests
}

func encodeRuns(list engine.Runs) []int64 {
	packed := make([]int64, 0, 2*len(list))
	for _, r := range list {
		packed = append(packed, r.First, r.Last)
	}
	return packed
}

// decodeRuns unpacks stored runs. An empty list of records is not the same as no
// list.
func decodeRuns(packed []int64) (engine.Runs, error) {
	if packed == nil {
		return nil, nil
	}
	if len(packed)%2 != 0 {
		return nil, engine.ErrRuns
	}
	runs := make(engine.Runs, 0, len(packed)/2)
	for i := 0; i < len(packed); i += 2 {
		runs = append(runs, engine.Run{First: packed[i], Last: packed[i+1]})
	}
	return runs, nil
}

// currentRuns returns the records of a version. Packed has those that it was stored
// with.
func currentRuns(of engine.Version, packed []int64, after, last int64) (engine.Runs, error) {
	stored, err := decodeRuns(packed)
	if err != nil {
		return nil, oda.Damaged(of.Ref, of.Number, 0).Because(err)
	}
	return of.Current(stored, after, last)
}
