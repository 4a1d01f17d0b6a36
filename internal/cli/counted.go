package cli

import (
	"context"
	"iter"
	"strconv"

	"oda"
	asking "oda/calls"
	"oda/client"
)

// countedBlock is an ExecutionBlock with the number of its calls.
type countedBlock struct {
	*oda.Found
	asking.Count
}

// countedPrinter prints ExecutionBlocks as a table.
func countedPrinter(l look) *printer[countedBlock] {
	found := foundPrinter(l)
	return &printer[countedBlock]{
		look: l, header: append(found.header[:5:5], "CALLS", "FAILED", "NAME"),
		row: func(b countedBlock) []cell {
			row, numbers := found.row(b.Found), plainCells(strconv.FormatInt(b.Calls, 10), strconv.FormatInt(b.Failures, 10))
			if b.Failures > 0 {
				numbers[1].ink = red
			}
			return append(append(row[:5:5], numbers...), row[5])
		},
	}
}

// countedAtOnce is how many blocks are counted at the same time.
const countedAtOnce = 8

// withCalls asks for the numbers of calls of blocks, some blocks at a time.
func withCalls(ctx context.Context, archive *client.Client, blocks iter.Seq2[*oda.Found, error]) iter.Seq2[countedBlock, error] {
	return func(yield func(countedBlock, error) bool) {
		var some []countedBlock
		flush := func() bool {
			err := oda.Share(ctx, countedAtOnce, len(some), func(ctx context.Context, _, n int) error {
				tally, err := archive.TallyCalls(ctx, asking.Query{Block: some[n].ID}, asking.ByBlock)
				if err == nil && len(tally.Tally) == 1 {
					some[n].Count = tally.Tally[0]
				}
				return err
			})
			for _, b := range some {
				if !yield(b, err) || err != nil {
					return false
				}
			}
			some = some[:0]
			return true
		}
		for f, err := range blocks {
			if err != nil {
				if flush() {
					yield(countedBlock{}, err)
				}
				return
			}
			if some = append(some, countedBlock{Found: f}); len(some) == 4*countedAtOnce && !flush() {
				return
			}
		}
		flush()
	}
}
