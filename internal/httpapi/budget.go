package httpapi

import "sync/atomic"

// budget bounds the bytes of requests that are in memory together: bodies, and
// documents that are compared.
type budget struct {
	most int64
	used atomic.Int64
}

// take reserves bytes, or reports that there is no room.
func (b *budget) take(n int64) bool {
	if b.used.Add(n) > b.most {
		b.used.Add(-n)
		return false
	}
	return true
}

func (b *budget) give(n int64) { b.used.Add(-n) }
