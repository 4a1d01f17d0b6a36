package httpapi

import "sync/atomic"

// budget limits the memory that all requests take together for bodies and for
// comparisons.
type budget struct {
	most int64
	used atomic.Int64
}

// take reserves n bytes. It reports whether there was room for them.
func (b *budget) take(n int64) bool {
	if b.used.Add(n) > b.most {
		b.used.Add(-n)
		return false
	}
	return true
}

func (b *budget) give(n int64) { b.used.Add(-n) }
