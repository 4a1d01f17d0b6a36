package web

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"oda"
)

// tally is how many calls of a version of a block failed, of those that were
// counted. Calls are only ever added to a version, so counting goes on where it
// stopped.
type tally struct {
	version  int64
	last     int64 // sequence of the last call that was counted
	calls    int64
	failures int64
}

// tallies are those of the blocks that lists have shown.
type tallies struct {
	mu sync.Mutex
	of map[string]tally
}

// Bounds of counting.
const (
	talliedBlocks = 20_000                // that are kept
	tallyTime     = 15 * time.Millisecond // for all blocks of a page; the next one goes on
	tallyAtOnce   = 500                   // calls
)

func (t *tallies) get(block string, version int64) tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.of[block]; known.version == version {
		return known
	}
	return tally{version: version}
}

// keep keeps a tally, in the place of any other if there are too many.
func (t *tallies) keep(block string, of tally) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = make(map[string]tally)
	}
	for other := range t.of {
		if len(t.of) < talliedBlocks {
			break
		}
		delete(t.of, other)
	}
	t.of[block] = of
}

// countCalls says of each block in a list how many calls it has and how many of them
// failed. Short blocks come first, so that a long one does not keep the others from
// being counted.
func (s *Site) countCalls(ctx context.Context, rows []row) error {
	var blocks []*row
	for i := range rows {
		r := &rows[i]
		if r.Kind != oda.ExecutionBlock {
			continue
		}
		current, err := s.cfg.Archive.VersionInfo(ctx, r.Ref, 0)
		if err != nil {
			return err
		}
		r.Calls = current.Records
		r.tally = s.tallies.get(r.ID, current.Metadata.Version)
		blocks = append(blocks, r)
	}
	slices.SortStableFunc(blocks, func(a, b *row) int { return cmp.Compare(a.Calls-a.tally.calls, b.Calls-b.tally.calls) })
	late := time.Now().Add(tallyTime)
	for _, r := range blocks {
		if !r.Counted() {
			r.tally = s.count(ctx, r, late)
		}
	}
	return nil
}

// count goes on counting the failures of a block until it is late. A block that cannot
// be read is not counted; its page says why.
func (s *Site) count(ctx context.Context, r *row, late time.Time) tally {
	t := r.tally
	for t.calls < r.Calls && time.Now().Before(late) {
		page, err := s.recordPage(ctx, r.ID, t.last, tallyAtOnce)
		if err != nil || len(page.Records) == 0 {
			break
		}
		for i := range page.Records {
			t.calls++
			if oda.CallOf(page.Records[i].Text).Failed {
				t.failures++
			}
		}
		t.last = page.Records[len(page.Records)-1].Sequence
	}
	if t == r.tally {
		return t
	}
	// Another version may have other calls, so those that were read while it was
	// stored belong to none.
	now, err := s.cfg.Archive.VersionInfo(ctx, r.Ref, 0)
	if err != nil || now.Metadata.Version != t.version {
		return tally{version: t.version}
	}
	s.tallies.keep(r.ID, t)
	return t
}

// Failures is how many calls of a block failed, of those that were counted.
func (r *row) Failures() int64 { return r.tally.failures }

// Counted reports whether all calls of a block were counted.
func (r *row) Counted() bool { return r.tally.calls >= r.Calls }

// Tallied is how many calls were counted.
func (r *row) Tallied() int64 { return r.tally.calls }
