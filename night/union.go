package night

import (
	"cmp"
	"math"
	"slices"

	"oda"
)

// union is when something was in calls during a night: overlapping calls count once. It
// is exact for up to maxTimed calls. Beyond, calls count from and to whole seconds: as all of
// them are sent in one night, its memory is bounded.
type union struct {
	stretches []Stretch
	inOrder   int // the first so many are in order, and none touches the next
	calls     int
}

// unsettled is how many stretches may be out of order beside as many that are in order.
const unsettled = 1024

// add adds a call.
func (u *union) add(sent oda.Instant, took oda.Elapsed) {
	u.calls++
	u.put(Stretch{sent, sent + oda.Instant(took)})
}

// join adds the calls of another union.
func (u *union) join(other *union) {
	u.calls += other.calls
	for _, one := range other.stretches {
		u.put(one)
	}
}

func (u *union) put(one Stretch) {
	if one.From == one.To {
		return
	}
	if n := len(u.stretches); n == u.inOrder {
		if n > 0 && one.From >= u.stretches[n-1].From && one.From <= u.stretches[n-1].To {
			u.stretches[n-1].To = max(u.stretches[n-1].To, one.To)
			return
		}
		if n == 0 || one.From > u.stretches[n-1].To {
			u.inOrder++
		}
	}
	u.stretches = append(u.stretches, one)
	if out := len(u.stretches) - u.inOrder; out > u.inOrder+unsettled || len(u.stretches) > 2*maxTimed {
		u.settle()
	}
}

// settle puts the stretches in order.
func (u *union) settle() {
	if u.calls > maxTimed {
		u.inOrder = 0
		for i := range u.stretches {
			u.stretches[i] = u.stretches[i].inSeconds()
		}
	}
	if u.inOrder == len(u.stretches) {
		return
	}
	slices.SortFunc(u.stretches, func(a, b Stretch) int { return cmp.Compare(a.From, b.From) })
	n := 0
	for _, one := range u.stretches {
		if n > 0 && one.From <= u.stretches[n-1].To {
			u.stretches[n-1].To = max(u.stretches[n-1].To, one.To)
			continue
		}
		u.stretches[n] = one
		n++
	}
	u.stretches, u.inOrder = u.stretches[:n], n
}

// inSeconds returns the stretch from and to whole seconds.
func (s Stretch) inSeconds() Stretch {
	const second = 1_000_000
	down := func(at oda.Instant) oda.Instant { return at - (at%second+second)%second }
	return Stretch{down(s.From), down(s.To + second - 1)}
}

// sum returns how long it was busy.
func (u *union) sum() oda.Elapsed { return u.until(math.MaxInt64) }

// until returns how long it was busy before an instant.
func (u *union) until(end oda.Instant) oda.Elapsed {
	u.settle()
	sum := oda.Elapsed(0)
	for _, one := range u.stretches {
		if one.From >= end {
			break
		}
		sum += oda.Elapsed(min(one.To, end) - one.From)
	}
	return sum
}
