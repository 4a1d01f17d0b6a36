package calls

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"oda"
)

// unit is the calls of a block on a day. It is read at once.
type unit struct {
	day   oda.Day
	block *oda.Found
}

// maxBlocks is how many blocks may have calls on a day.
const maxBlocks = 100_000

// unitsOn returns the units of a day in the order of the question, from where its page
// begins.
func (q *question) unitsOn(ctx context.Context, day oda.Day) ([]unit, error) {
	ids, err := q.engine.BlocksOn(ctx, oda.Days{First: day, Last: day}, maxBlocks+1)
	if err != nil {
		return nil, err
	}
	if len(ids) > maxBlocks {
		return nil, oda.Errorf(oda.InvalidQuery, "More than %d ExecutionBlocks have calls on %s, too many to go through. Ask for failed calls, or for one block.",
			maxBlocks, day.Begin())
	}
	if behind := q.Behind; behind != nil && oda.DayOf(behind.At) == day {
		ids = slices.DeleteFunc(ids, func(id string) bool { return q.order(strings.Compare(id, behind.Block)) < 0 })
	}
	blocks, err := q.look(ctx, ids)
	if err != nil {
		return nil, err
	}
	units := make([]unit, len(blocks))
	for i, block := range blocks {
		units[i] = unit{day, block}
	}
	slices.SortFunc(units, func(a, b unit) int { return q.order(strings.Compare(a.block.ID, b.block.ID)) })
	return units, nil
}

// wants reports whether calls of the unit may be asked for.
func (q *question) wants(u unit) bool {
	return q.Telescope == "" || u.block.Summary.Telescope == q.Telescope
}

// order returns a comparison in the order of the question.
func (q *question) order(compared int) int {
	if q.OldestFirst {
		return compared
	}
	return -compared
}

// days yields the days of the range that is asked for on which there may be calls, in the
// order of the question, from where its page begins.
func (q *question) days(ctx context.Context) iter.Seq2[oda.Day, error] {
	return func(yield func(oda.Day, error) bool) {
		if *q.To <= *q.From {
			return
		}
		first, last := oda.DayOf(*q.From), oda.DayOf(*q.To-1)
		if q.Behind != nil {
			if behind := oda.DayOf(q.Behind.At); q.OldestFirst {
				first = max(first, behind)
			} else {
				last = min(last, behind)
			}
		}
		for first <= last {
			before, after, err := q.engine.DaysAround(ctx, last, first)
			next := cmp.Or(before, after)
			if q.OldestFirst {
				next = after
			}
			if err != nil {
				yield(0, err)
				return
			}
			if next == nil || *next < first || *next > last || !yield(*next, nil) {
				return
			}
			if q.OldestFirst {
				first = *next + 1
			} else {
				last = *next - 1
			}
		}
	}
}

// byDay yields calls in the order of days, blocks and sequence numbers.
func (q *question) byDay(ctx context.Context) iter.Seq2[oda.CallEntry, error] {
	return func(yield func(oda.CallEntry, error) bool) {
		for day, err := range q.days(ctx) {
			var units []unit
			if err == nil {
				units, err = q.unitsOn(ctx, day)
			}
			if err != nil {
				yield(oda.CallEntry{}, err)
				return
			}
			for _, u := range units {
				if q.wants(u) {
					for e, err := range q.ofUnit(ctx, u) {
						if !yield(e, err) || err != nil {
							return
						}
					}
				}
				// Many units may have nothing to yield, so nobody else looks at the clock. Each
				// page gets further than where it began.
				if end := q.endOf(u); time.Now().After(q.late) && (q.Behind == nil || *q.Behind != end) {
					q.cut = &end
					return
				}
			}
		}
	}
}

// endOf returns the place behind all calls of a unit in the order of the question.
func (q *question) endOf(u unit) oda.CallPlace {
	end := oda.CallPlace{At: u.day.Begin(), Block: u.block.ID, Sequence: 1}
	if q.OldestFirst {
		end.Sequence = math.MaxInt64 - 1
	}
	return end
}

// ofUnit yields the calls of a unit in the order of the question.
func (q *question) ofUnit(ctx context.Context, u unit) iter.Seq2[oda.CallEntry, error] {
	among := oda.AllSequences
	if behind := q.Behind; behind != nil && oda.DayOf(behind.At) == u.day && behind.Block == u.block.ID {
		if q.OldestFirst {
			among.First = behind.Sequence + 1
		} else {
			among.Last = behind.Sequence - 1
		}
	}
	if q.OldestFirst {
		return q.callsOn(ctx, u, among)
	}
	return func(yield func(oda.CallEntry, error) bool) {
		end, err := q.engine.Records(ctx, u.block.ID, math.MaxInt64-1, 1)
		if err != nil {
			yield(oda.CallEntry{}, err)
			return
		}
		// Records are read forwards, so a window of them is turned around.
		for last := min(among.Last, end.Last); last > 0; last -= window {
			var calls []oda.CallEntry
			for e, err := range q.callsOn(ctx, u, oda.Sequences{First: last - window + 1, Last: last}) {
				if err != nil {
					yield(e, err)
					return
				}
				calls = append(calls, e)
			}
			for _, e := range slices.Backward(calls) {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// window is how many sequence numbers are read before they are turned around.
const window = 2048

// callsOn yields the calls of a unit in the order of their sequence numbers.
func (f *Finder) callsOn(ctx context.Context, u unit, among oda.Sequences) iter.Seq2[oda.CallEntry, error] {
	return func(yield func(oda.CallEntry, error) bool) {
		for r, err := range f.engine.RecordsOn(ctx, u.block.ID, oda.Days{First: u.day, Last: u.day}, among) {
			if err != nil {
				yield(oda.CallEntry{}, err)
				return
			}
			if e := r.Entry(u.block.ID); oda.DayOf(e.At) == u.day && !yield(e, nil) {
				return
			}
		}
	}
}
