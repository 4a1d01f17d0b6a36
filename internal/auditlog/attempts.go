package auditlog

import (
	"maps"
	"slices"
	"time"
)

// attempts counts failed attempts to get in, by address, over a minute.
type attempts struct {
	since  time.Time
	counts map[string]int
}

// mostAddresses bounds the addresses that are counted in a minute. Further ones
// are counted together.
const mostAddresses = 1024

// others is the address of those that are counted together.
const others = "other addresses"

func newAttempts(now time.Time) attempts { return attempts{now, make(map[string]int)} }

func (a *attempts) add(from string) {
	if _, known := a.counts[from]; !known && len(a.counts) >= mostAddresses {
		from = others
	}
	a.counts[from]++
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
	for _, from := range slices.Sorted(maps.Keys(a.counts)) {
		lines = append(lines, knocks{now.UTC(), a.since.UTC(), clip(from), 401, a.counts[from]})
	}
	*a = newAttempts(now)
	return lines
}
