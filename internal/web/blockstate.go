package web

import (
	"context"
	"iter"
	"net/url"
	"strconv"

	"oda"
)

// blockState is what a page shows of a block: as it is, or an older state.
type blockState struct {
	id     string
	old    *oda.Entity // nil: as it is
	params url.Values  // that name the older state in an address
}

// ref names the block.
func (b *blockState) ref() oda.Ref { return oda.Ref{Kind: oda.ExecutionBlock, ID: b.id} }

// key names the state. An older one is the same for ever.
func (b *blockState) key() string {
	if b.old == nil {
		return b.id
	}
	return b.id + "@" + strconv.FormatInt(b.old.Metadata.Version, 10) + " " + strconv.FormatInt(int64(b.old.Metadata.LastModifiedOn), 10)
}

// olderState is the state that the page of an entity shows.
func olderState(id string, e *oda.Entity, params url.Values) *blockState {
	return &blockState{id, e, withoutEmpty(url.Values{"version": params["version"], "at": params["at"]})}
}

// blockState finds the state that an address names.
func (s *Site) blockState(ctx context.Context, id string, params url.Values) (*blockState, error) {
	now := &blockState{id: id}
	if params.Get("version") == "" && params.Get("at") == "" {
		return now, nil
	}
	e, err := s.version(ctx, now.ref(), params)
	if err != nil {
		return nil, err
	}
	current, err := s.cfg.Archive.VersionInfo(ctx, now.ref(), 0)
	if err != nil {
		return nil, err
	}
	if params.Get("at") == "" && e.Metadata.Version == current.Metadata.Version {
		return now, nil
	}
	return olderState(id, e, params), nil
}

// recordPage reads a page of records. Pages are made of one after the other, so each gives
// its room back at once.
func (s *Site) recordPage(ctx context.Context, block string, after int64, limit int) (oda.RecordPage, error) {
	page, err := s.cfg.Archive.Records(ctx, block, after, limit)
	oda.RoomIn(ctx).Give(page.Room)
	return page, err
}

// record reads a call by its number, nil if there is none.
func (s *Site) record(ctx context.Context, of *blockState, sequence int64) (*oda.Record, error) {
	if of.old != nil {
		for r, err := range recordsAfter(of.old, sequence-1) {
			if err != nil || r.Sequence != sequence {
				return nil, err
			}
			return r, nil
		}
		return nil, nil
	}
	page, err := s.recordPage(ctx, of.id, sequence-1, 1)
	if err != nil || len(page.Records) == 0 || page.Records[0].Sequence != sequence {
		return nil, err
	}
	return &page.Records[0], nil
}

// records gives the records of a state after one of them. Those of the block as it is
// are read atOnce at a time.
func (s *Site) records(ctx context.Context, of *blockState, after int64, atOnce int) iter.Seq2[*oda.Record, error] {
	if of.old != nil {
		return recordsAfter(of.old, after)
	}
	return func(yield func(*oda.Record, error) bool) {
		for more := true; more; {
			page, err := s.recordPage(ctx, of.id, after, atOnce)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range page.Records {
				if !yield(&page.Records[i], nil) {
					return
				}
				after = page.Records[i].Sequence
			}
			more = page.More
		}
	}
}

// recordsAfter gives the records of an older state of a block, without the first ones.
// They are numbered from 1, and carry the time of the state: when each was recorded is no
// longer known.
func recordsAfter(e *oda.Entity, after int64) iter.Seq2[*oda.Record, error] {
	texts := e.Records
	if document := e.Rendered(); document != nil {
		texts = recordsIn(document)
	}
	return func(yield func(*oda.Record, error) bool) {
		if texts == nil {
			return
		}
		n := int64(0)
		for text, err := range texts {
			if n++; (n > after || err != nil) && !yield(&oda.Record{Sequence: n, RecordedOn: e.Metadata.LastModifiedOn, Text: text}, err) {
				return
			}
		}
	}
}
