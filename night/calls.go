package night

import (
	"context"
	"math"

	"oda"
)

// Calls is what all calls of a block add up to, whenever they were made.
type Calls struct {
	Tally
	First        oda.Moment  // when the first call was made, if there is one
	LastResponse oda.Moment  // when all had their responses
	Busy         oda.Elapsed // in calls; overlapping ones count once
}

// always is the night that every call is made in.
var always = Query{From: math.MinInt64, To: math.MaxInt64}

// Calls adds up all calls of each block, which must be as it was found. Blocks that have
// not changed since they were last asked for are not read. If there is an error, such as
// that the time is up, Calls returns with it what it has got: nil for the other blocks.
func (r *Reporter) Calls(ctx context.Context, blocks []*oda.Found) ([]*Calls, error) {
	all := make([]*Calls, len(blocks))
	var changed []int
	for i, block := range blocks {
		if b, there := r.known.Get(wholeKey(block)); there && b.isOf(block) {
			all[i] = b.calls()
		} else {
			changed = append(changed, i)
		}
	}
	if len(changed) == 0 {
		return all, nil
	}
	giveBack, err := r.readers.Take(ctx, oda.Errorf(oda.Overloaded, "The calls of too many blocks are added up at once. Try again shortly."))
	if err != nil {
		return all, err
	}
	defer giveBack()
	return all, oda.Share(oda.WithRoom(ctx, nil), workers, len(changed), func(ctx context.Context, _, n int) error {
		block := blocks[changed[n]]
		before, _ := r.known.Get(wholeKey(block))
		b, err := blockSumOf(ctx, r.engine, always, block, before)
		if err != nil {
			return err
		}
		r.known.Add(wholeKey(block), b, b.size())
		all[changed[n]] = b.calls()
		return nil
	})
}

func wholeKey(block *oda.Found) blockNight { return blockNight{block.ID, always.From, always.To} }

func (b *blockSum) calls() *Calls {
	return &Calls{Tally: b.block.Tally, First: b.block.FirstCall, LastResponse: b.block.LastResponse, Busy: b.busy.sum()}
}
