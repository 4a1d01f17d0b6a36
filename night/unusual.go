package night

import (
	"cmp"
	"slices"

	"oda"
)

// timedCall is a call that says how long it took.
type timedCall struct {
	sent     oda.Moment
	took     oda.Elapsed
	sequence int64
}

// timedCalls are those of a request in a block. Blocks that are read share them with the
// cache, so they are only ever appended to where nothing follows in memory.
type timedCalls struct {
	block string
	calls []timedCall
}

// time keeps how long a call of a request took, if there are not too many.
func (s *total) time(of *request, block string, call timedCall) {
	if s.timed++; s.timed > maxTimed {
		s.forgetTimes()
		return
	}
	if n := len(of.timed); n == 0 || of.timed[n-1].block != block {
		of.timed = append(of.timed, timedCalls{block: block})
	}
	last := &of.timed[len(of.timed)-1]
	last.calls = append(last.calls, call)
}

// joinTimes adds the calls of other blocks.
func (r *request) joinTimes(others []timedCalls) {
	for _, other := range others {
		r.timed = append(r.timed, timedCalls{other.block, slices.Clip(other.calls)})
	}
}

// forgetTimes forgets how long the calls took, as they are too many.
func (s *total) forgetTimes() {
	for _, r := range s.requests {
		r.timed = nil
	}
}

// unusual returns the calls that took longest when compared to the median of the same
// request, and at least twice as long. It also returns the medians.
func (s *total) unusual() ([]UnusualCall, map[string]oda.Elapsed) {
	var most ranking
	usual := make(map[string]oda.Elapsed)
	for name, r := range s.requests {
		twice, calls := twiceMedian(r.timed)
		if calls < LeastForUsual || twice == 0 {
			continue
		}
		usual[name] = twice / 2
		for _, in := range r.timed {
			for _, c := range in.calls {
				if c.took >= twice {
					call := UnusualCall{CallPlace{in.block, c.sequence}, r.Request, c.sent, c.took, twice / 2}
					most.add(ranked{call, float64(c.took) / float64(twice)})
				}
			}
		}
	}
	calls := []UnusualCall{}
	for _, one := range most {
		calls = append(calls, one.UnusualCall)
	}
	return calls, usual
}

// twiceMedian returns twice the median of how long calls took, which is exact, and how many
// calls there are.
func twiceMedian(of []timedCalls) (twice oda.Elapsed, calls int) {
	var all []oda.Elapsed
	for _, in := range of {
		for _, c := range in.calls {
			all = append(all, c.took)
		}
	}
	if len(all) == 0 {
		return 0, 0
	}
	slices.Sort(all)
	return all[(len(all)-1)/2] + all[len(all)/2], len(all)
}

// ranking has the most unusual calls, in order.
type ranking []ranked

type ranked struct {
	UnusualCall
	ratio float64 // of how long it took to twice the median
}

// add adds a call if it is one of the most unusual.
func (k *ranking) add(one ranked) {
	at, _ := slices.BinarySearchFunc(*k, one, lessUsual)
	if at < unusualCalls {
		*k = slices.Insert(*k, at, one)
		*k = (*k)[:min(len(*k), unusualCalls)]
	}
}

func lessUsual(a, b ranked) int {
	return cmp.Or(cmp.Compare(b.ratio, a.ratio), cmp.Compare(b.Took, a.Took), cmp.Compare(a.SentAt, b.SentAt),
		cmp.Compare(a.Block, b.Block), cmp.Compare(a.Sequence, b.Sequence))
}
