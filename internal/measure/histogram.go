// Package measure counts what the parts of the archive do, so cheaply that every
// request can be counted. It knows nobody, and nothing of who reads the counts.
package measure

import (
	"sync/atomic"
	"time"
)

// Histogram counts values by their size. It is safe for concurrent use.
type Histogram struct {
	bounds []int64
	counts []atomic.Int64 // one more than there are bounds
	sum    atomic.Int64
}

// NewHistogram returns a histogram with these upper bounds, in ascending order.
// Larger values have a place of their own.
func NewHistogram(bounds ...int64) *Histogram {
	return &Histogram{bounds: bounds, counts: make([]atomic.Int64, len(bounds)+1)}
}

// Note adds a value.
func (h *Histogram) Note(value int64) {
	place := 0
	for place < len(h.bounds) && value > h.bounds[place] {
		place++
	}
	h.counts[place].Add(1)
	h.sum.Add(value)
}

// Counts is what a histogram had counted at some moment.
type Counts struct {
	Bounds []int64 // shared; not to be changed
	Each   []int64 // values between a bound and the one before; the last has the rest
	Sum    int64
}

// Read returns what was counted so far.
func (h *Histogram) Read() Counts {
	c := Counts{Bounds: h.bounds, Each: make([]int64, len(h.counts)), Sum: h.sum.Load()}
	for i := range h.counts {
		c.Each[i] = h.counts[i].Load()
	}
	return c
}

// Total returns the number of values.
func (c Counts) Total() (n int64) {
	for _, each := range c.Each {
		n += each
	}
	return n
}

// Durations are the bounds for how long something takes that somebody waits for, in
// nanoseconds: from half a millisecond, which is less than a disk needs, to the time
// after which most clients have given up.
var Durations = durations(
	500*time.Microsecond, time.Millisecond, 2500*time.Microsecond, 5*time.Millisecond, 10*time.Millisecond, 25*time.Millisecond,
	50*time.Millisecond, 100*time.Millisecond, 250*time.Millisecond, 500*time.Millisecond, time.Second, 2500*time.Millisecond, 10*time.Second)

func durations(all ...time.Duration) []int64 {
	bounds := make([]int64, len(all))
	for i, d := range all {
		bounds[i] = int64(d)
	}
	return bounds
}
