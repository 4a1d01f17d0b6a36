package night

import (
	"cmp"
	"math"
	"slices"

	"oda"
)

// use is how the time of a telescope was used.
type use struct {
	Telescope
	inCalls union
}

// use returns how the time of a telescope was used.
func (s *total) use(telescope string) *use {
	known := s.telescopes[telescope]
	if known == nil {
		known = &use{Telescope: Telescope{Telescope: orNil(telescope), FirstCall: math.MaxInt64, LastCall: math.MinInt64}}
		s.telescopes[telescope] = known
	}
	return known
}

// add adds a block of the telescope.
func (u *use) add(b *blockSum) {
	u.join(&use{Telescope{
		Blocks: 1, Calls: b.block.Calls, Failures: b.block.Failures, FirstCall: b.block.FirstCall, LastCall: b.block.LastCall,
	}, b.inCalls})
}

// join adds other blocks of the telescope.
func (u *use) join(other *use) {
	u.Blocks += other.Blocks
	u.Calls += other.Calls
	u.Failures += other.Failures
	u.FirstCall, u.LastCall = min(u.FirstCall, other.FirstCall), max(u.LastCall, other.LastCall)
	u.inCalls.join(&other.inCalls)
}

// fillUse tells how the time of the telescopes was used.
func (r *Report) fillUse(telescopes map[string]*use) {
	r.Telescopes = []Telescope{}
	var all union
	for _, u := range telescopes {
		one := u.Telescope
		one.Busy, one.InCalls = u.inCalls.sum(), u.inCalls.stretches
		one.Idle = max(0, oda.Elapsed(one.LastCall-one.FirstCall)-u.inCalls.until(oda.Instant(one.LastCall)))
		r.Telescopes = append(r.Telescopes, one)
		r.Idle += one.Idle
		all.join(&u.inCalls)
	}
	r.Busy = all.sum()
	slices.SortFunc(r.Telescopes, func(a, b Telescope) int {
		if a.Telescope == nil || b.Telescope == nil {
			return cmp.Compare(unnamed(a), unnamed(b))
		}
		return cmp.Compare(*a.Telescope, *b.Telescope)
	})
}

func unnamed(t Telescope) int {
	if t.Telescope == nil {
		return 1
	}
	return 0
}
