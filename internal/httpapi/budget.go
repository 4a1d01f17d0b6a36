package httpapi

import "sync/atomic"

// budget limits the memory that all requests take together for bodies.
type budget struct {
	most  int64
	spare int64 // part of it that is kept for recording
	used  atomic.Int64
}

// newBudget keeps a part for recording, if a body of the largest size still fits into
// the rest.
func newBudget(bounds Bounds) budget {
	return budget{most: bounds.InFlight, spare: max(0, min(bounds.InFlight/8, bounds.InFlight-bounds.Body))}
}

// take reserves n bytes. It reports whether there was room for them.
func (b *budget) take(n int64, recording bool) bool {
	most := b.most
	if !recording {
		most -= b.spare
	}
	if b.used.Add(n) > most {
		b.used.Add(-n)
		return false
	}
	return true
}

func (b *budget) give(n int64) { b.used.Add(-n) }
