package auditlog

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// attempts counts failed attempts to get in, by address and status, over a minute.
type attempts struct {
	since  time.Time
	counts map[attempt]int
}

type attempt struct {
	from   string
	status int
}

// mostAddresses bounds the addresses that are counted in a minute. Further ones
// are counted together.
const mostAddresses = 1024

// others is the address of those that are counted together.
const others = "other addresses"

func newAttempts(now time.Time) attempts { return attempts{now, make(map[attempt]int)} }

func (a *attempts) add(from string, status int) {
	one := attempt{from, status}
	if _, known := a.counts[one]; !known && len(a.counts) >= mostAddresses {
		one.from = others
	}
	a.counts[one]++
}

// over returns the sums if the minute is over, and begins the next.
func (a *attempts) over(now time.Time) []knocks {
	if now.Sub(a.since) < time.Minute {
		return nil
	}
	return a.sums(now)
}

// sums returns the sums up to now, and begins again.
func (a *attempts) sums(now time.Time) []knocks {
	var lines []knocks
	for _, one := range slices.SortedFunc(maps.Keys(a.counts), func(a, b attempt) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.status, b.status))
	}) {
		lines = append(lines, knocks{now.UTC(), a.since.UTC(), clip(one.from), one.status, a.counts[one]})
	}
	*a = newAttempts(now)
	return lines
}
