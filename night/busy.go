package night

import (
	"slices"

	"oda"
)

// busyTime is how long something was in calls: overlapping calls count once. A call
// without both times adds none.
//
// It keeps the stretches of time that were busy, as calls need not come in order. The
// earliest ones are closed once there are many: only their sum is kept, and what a call
// adds before their end is not known any more.
type busyTime struct {
	stretches []Stretch // in order; none touches the next
	closed    oda.Elapsed
	until     oda.Instant // the end of what is closed
	late      bool        // a call began before that
}

// Stretch is a stretch of time. To is excluded.
type Stretch struct{ From, To oda.Instant }

// Bounds of what is kept of busy times.
const (
	openStretches = 64 << 10 // while a block is read
	keptStretches = 256      // of a block that was read, for the calls that are added later
)

// add adds the time of a call.
func (b *busyTime) add(c *oda.Call) {
	took, known := c.Took()
	if !known || took == 0 {
		return
	}
	one := Stretch{*c.Sent(), *c.Received()}
	if b.closed > 0 && one.From < b.until {
		b.late = true
		one.From = b.until
	}
	if one.From < one.To {
		b.join(one)
	}
	if len(b.stretches) > openStretches {
		b.close(openStretches / 2)
	}
}

// join adds a stretch to those that are open.
func (b *busyTime) join(one Stretch) {
	first := len(b.stretches) // of those that it touches
	for first > 0 && b.stretches[first-1].From > one.To {
		first--
	}
	last := first
	for first > 0 && b.stretches[first-1].To >= one.From {
		first--
	}
	for _, other := range b.stretches[first:last] {
		one.From, one.To = min(one.From, other.From), max(one.To, other.To)
	}
	b.stretches = slices.Replace(b.stretches, first, last, one)
}

// close closes all stretches but the last few.
func (b *busyTime) close(most int) {
	early := max(0, len(b.stretches)-most)
	for _, one := range b.stretches[:early] {
		b.closed += oda.Elapsed(one.To - one.From)
		b.until = one.To
	}
	b.stretches = slices.Clone(b.stretches[early:])
}

// sum returns how long it was busy.
func (b *busyTime) sum() oda.Elapsed {
	sum := b.closed
	for _, one := range b.stretches {
		sum += oda.Elapsed(one.To - one.From)
	}
	return sum
}
