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
	stretches []stretch
	inOrder   int // the first so many are in order, and none touches the next
	calls     int
}

// unsettled is how many stretches may be out of order beside as many that are in order.
const unsettled = 1024

// add adds a call.
func (u *union) add(sent oda.Instant, took oda.Elapsed) {
	u.calls++
	u.put(stretch{sent, sent + oda.Instant(took)})
}

// join adds the calls of another union.
func (u *union) join(other *union) {
	u.calls += other.calls
	for _, one := range other.stretches {
		u.put(one)
	}
}

func (u *union) put(one stretch) {
	if one.from == one.to {
		return
	}
	if n := len(u.stretches); n == u.inOrder {
		if n > 0 && one.from >= u.stretches[n-1].from && one.from <= u.stretches[n-1].to {
			u.stretches[n-1].to = max(u.stretches[n-1].to, one.to)
			return
		}
		if n == 0 || one.from > u.stretches[n-1].to {
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
	slices.SortFunc(u.stretches, func(a, b stretch) int { return cmp.Compare(a.from, b.from) })
	n := 0
	for _, one := range u.stretches {
		if n > 0 && one.from <= u.stretches[n-1].to {
			u.stretches[n-1].to = max(u.stretches[n-1].to, one.to)
			continue
		}
		u.stretches[n] = one
		n++
	}
	u.stretches, u.inOrder = u.stretches[:n], n
}

// inSeconds returns the stretch from and to whole seconds.
func (s stretch) inSeconds() stretch {
	const second = 1_000_000
	down := func(at oda.Instant) oda.Instant { return at - (at%second+second)%second }
	return stretch{down(s.from), down(s.to + second - 1)}
}

// sum returns how long it was busy.
func (u *union) sum() oda.Elapsed { return u.until(math.MaxInt64) }

// until returns how long it was busy before an instant.
func (u *union) until(end oda.Instant) oda.Elapsed {
	u.settle()
	sum := oda.Elapsed(0)
	for _, one := range u.stretches {
		if one.from >= end {
			break
		}
		sum += oda.Elapsed(min(one.to, end) - one.from)
	}
	return sum
}
