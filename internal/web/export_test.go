package web

import "context"

// FixedCounts and Refresh are for the browser tests, which are outside the
// package because their tools import it.
var FixedCounts = fixedCounts

// Refresh counts once.
func (s *Site) Refresh(ctx context.Context) error { return s.refresh(ctx) }

// CallIndexes are the indexes of blocks.
type CallIndexes struct{ callIndexes }

// Use takes the index of a block, which then costs so much.
func (c *CallIndexes) Use(block string, cost int) { c.keep(c.take(block), cost) }

// Kept returns the blocks whose indexes are kept, and what they cost.
func (c *CallIndexes) Kept() (blocks []string, cost int) {
	for _, x := range c.cache {
		blocks, cost = append(blocks, x.of), cost+x.cost
	}
	return blocks, cost
}
