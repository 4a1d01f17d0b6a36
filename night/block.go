package night

import (
	"context"
	"math"
	"slices"

	"oda"
)

// blockSum is the sum of the calls that a block has in a night, or of all its calls. Once
// made, it never changes.
type blockSum struct {
	version  int64       // of the block
	modified oda.Instant // when it last changed
	last     oda.Record  // that was read, without its text
	block    Block       // only what follows from the calls
	sum      total       // of this block alone
	busy     busyTime    // if it is of all calls
	inCalls  union       // if it is of a night
}

// newBlockSum returns the sum of no calls of a block.
func newBlockSum(q Query, block *oda.Found) *blockSum {
	return &blockSum{
		version: block.Metadata.Version, modified: block.Metadata.LastModifiedOn, sum: newTotal(q),
		block: Block{ID: block.ID, FirstCall: math.MaxInt64, LastCall: math.MinInt64, LastResponse: math.MinInt64},
	}
}

// isOf reports whether the sum is of a block as it is.
func (b *blockSum) isOf(block *oda.Found) bool {
	return b.version == block.Metadata.Version && b.modified == block.Metadata.LastModifiedOn
}

// size returns roughly how many bytes of memory the sum takes.
func (b *blockSum) size() int {
	n := entryBytes + len(b.block.ID) + 56*len(b.sum.slowest) + 16*cap(b.busy.stretches) + 16*cap(b.inCalls.stretches)
	for name, r := range b.sum.requests {
		n += 160 + len(name)
		for i := range r.timed {
			n += 24 * cap(r.timed[i].calls)
		}
	}
	for name := range b.sum.errors {
		n += 160 + len(name.kind) + len(name.detail)
	}
	return n
}

func (b *blockSum) add(r oda.Record) {
	call, isIn := b.sum.add(&b.block, r)
	switch took, known := call.Took(); {
	case b.sum.query == always:
		b.busy.add(&call)
	case isIn && known:
		b.inCalls.add(*call.Sent(), took)
	}
	b.last = oda.Record{Sequence: r.Sequence, RecordedOn: r.RecordedOn}
}

// blockSumOf adds up the calls of a block, given what was known of it before, or nil.
// The sum is of the block as it was found, or of a later state, in which case nobody
// finds the earlier one again.
func blockSumOf(ctx context.Context, from Engine, q Query, block *oda.Found, known *blockSum) (*blockSum, error) {
	if known != nil {
		if b := known.extended(ctx, from, q, block); b != nil {
			return b, nil
		}
	}
	if q == always {
		return wholeSumOf(ctx, from, block)
	}
	b := newBlockSum(q, block)
	for r, err := range from.RecordsOn(ctx, block.ID, q.days(), oda.AllSequences) {
		if err != nil {
			return nil, err
		}
		b.add(r)
	}
	b.finish()
	return b, nil
}

// finish ends the sum of a night, which takes no more memory than it needs.
func (b *blockSum) finish() {
	b.sum.bound()
	b.block.Busy = b.inCalls.sum()
	b.inCalls.stretches = tight(b.inCalls.stretches)
	for _, r := range b.sum.requests {
		for i := range r.timed {
			r.timed[i].calls = tight(r.timed[i].calls)
		}
	}
}

// tight returns the elements without room for more.
func tight[E any](all []E) []E {
	if len(all) == cap(all) {
		return all
	}
	return append(make([]E, 0, len(all)), all...)
}

// wholeSumOf adds up all calls of a block.
func wholeSumOf(ctx context.Context, from Engine, block *oda.Found) (*blockSum, error) {
	b := newBlockSum(always, block)
	for isWhole := true; ; isWhole = false {
		page, err := from.Records(ctx, block.ID, b.last.Sequence, tailMost)
		if err != nil {
			return nil, err
		}
		for _, r := range page.Records {
			b.add(r)
		}
		if page.More {
			continue
		}
		b.busy.close(keptStretches)
		if isWhole {
			return b, nil
		}
		now, err := from.Look(ctx, []oda.Ref{block.Ref})
		if err != nil || now[0] == nil || now[0].Metadata.Version == b.version {
			return b, err
		}
		return wholeSumOf(ctx, from, now[0]) // the pages may be of different versions
	}
}

// tailMost is how many new records are added to a known sum. If there are more, the
// block is read again.
const tailMost = 2000

// extended returns the sum with the records that the block was given since. It
// returns nil if the block must be read again: a new version may have lost records,
// and a database that was restored may have others.
func (b *blockSum) extended(ctx context.Context, from Engine, q Query, block *oda.Found) *blockSum {
	if b.version != block.Metadata.Version || b.last.Sequence == 0 {
		return nil
	}
	page, err := from.Records(ctx, block.ID, b.last.Sequence-1, tailMost)
	if err != nil || page.More || len(page.Records) == 0 {
		return nil
	}
	if same := page.Records[0]; same.Sequence != b.last.Sequence || same.RecordedOn != b.last.RecordedOn {
		return nil
	}
	// If it is still the same version, it was when the records were read.
	now, err := from.Look(ctx, []oda.Ref{block.Ref})
	if err != nil || now[0] == nil || now[0].Metadata.Version != b.version {
		return nil
	}
	longer := newBlockSum(q, block)
	longer.block, longer.last, longer.busy = b.block, b.last, b.busy
	longer.busy.stretches = slices.Clone(b.busy.stretches)
	longer.inCalls = b.inCalls
	longer.inCalls.stretches = slices.Clone(b.inCalls.stretches)
	longer.sum.join(&b.sum)
	for _, r := range page.Records[1:] {
		longer.add(r)
	}
	if longer.busy.late {
		return nil
	}
	longer.busy.close(keptStretches)
	longer.finish()
	return longer
}
