package calls

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"

	"oda"
)

// source yields calls in the order of the question, from where its page begins. All that
// match are among them.
func (q *question) source(ctx context.Context) iter.Seq2[oda.CallEntry, error] {
	switch {
	case q.Outcome == oda.CallFailed:
		return q.engine.FailedCalls(ctx, q.indexRange())
	case q.At != nil:
		return q.inParts(ctx, q.engine.LongCalls(ctx, q.indexRange(), *q.At))
	case q.Block != "":
		return q.inParts(ctx, q.ofBlock(ctx))
	}
	return q.byDay(ctx)
}

// indexRange returns what indexes are asked for.
func (q *question) indexRange() oda.CallRange {
	r := oda.CallRange{
		From: math.MinInt64, To: math.MaxInt64, Behind: q.Behind, Backwards: !q.OldestFirst,
		Block: q.Block, Device: q.Device, Error: q.Error,
	}
	if q.Request != "" {
		r.Function = oda.Function(q.Request)
	}
	if q.From != nil {
		r.From = *q.From
	}
	if q.To != nil {
		r.To = *q.To
	}
	if q.At != nil {
		r.From, r.To = *q.At-oda.Instant(oda.LongestCall), *q.At+1
	}
	return r
}

// inParts reads the records at some places, a number of them at a time.
func (q *question) inParts(ctx context.Context, places iter.Seq2[oda.CallPlace, error]) iter.Seq2[oda.CallEntry, error] {
	return func(yield func(oda.CallEntry, error) bool) {
		var part []oda.CallPlace
		flush := func() bool {
			calls, err := q.read(ctx, part)
			if err != nil {
				yield(oda.CallEntry{}, err)
				return false
			}
			for _, e := range calls {
				if !yield(e, nil) {
					return false
				}
			}
			part = part[:0]
			return true
		}
		for place, err := range places {
			if err != nil {
				yield(oda.CallEntry{}, err)
				return
			}
			if part = append(part, place); len(part) == min(readAtOnce, max(q.Limit, 1)+1) && !flush() {
				return
			}
		}
		flush()
	}
}

// read returns the calls at some places. One that the current version of its block does
// not have is left out.
func (q *question) read(ctx context.Context, places []oda.CallPlace) ([]oda.CallEntry, error) {
	byBlock := make(map[string][]int64)
	for _, place := range places {
		byBlock[place.Block] = append(byBlock[place.Block], place.Sequence)
	}
	found := make(map[oda.CallPlace]oda.CallEntry, len(places))
	for block, sequences := range byBlock {
		slices.Sort(sequences)
		for len(sequences) > 0 {
			// Those that are close to each other are read together.
			n := 1
			for n < len(sequences) && sequences[n]-sequences[n-1] <= 8 {
				n++
			}
			first, last := sequences[0], sequences[n-1]
			sequences = sequences[n:]
			for err := error(nil); first <= last; {
				var page oda.RecordPage
				if page, err = q.engine.Records(ctx, block, first-1, int(last-first)+1); err != nil {
					return nil, err
				}
				for i := range page.Records {
					e := page.Records[i].Entry(block)
					found[e.Place()] = e
					first = e.Sequence + 1
				}
				if !page.More {
					break
				}
			}
		}
	}
	var calls []oda.CallEntry
	for _, place := range places {
		if e, there := found[place]; there {
			calls = append(calls, e)
		}
	}
	return calls, nil
}

// blockTimes are the places of all calls of a block, in order. Once made, they never
// change.
type blockTimes struct {
	version int64
	last    oda.Record // that was read, without its text
	places  []timed
}

type timed struct {
	at       oda.Instant
	sequence int64
}

func (t timed) compare(other timed) int {
	return cmp.Or(cmp.Compare(t.at, other.at), cmp.Compare(t.sequence, other.sequence))
}

// ofBlock yields the places of the calls of a block in the range that is asked for.
func (q *question) ofBlock(ctx context.Context) iter.Seq2[oda.CallPlace, error] {
	return func(yield func(oda.CallPlace, error) bool) {
		times, err := q.timesOf(ctx, q.Block)
		if err != nil {
			yield(oda.CallPlace{}, err)
			return
		}
		// What is asked for is among the places from first until just before end.
		r, first, end := q.indexRange(), 0, len(times.places)
		at := func(t timed) int { i, _ := slices.BinarySearchFunc(times.places, t, timed.compare); return i }
		if first = at(timed{at: r.From}); r.To < math.MaxInt64 {
			end = at(timed{at: r.To})
		}
		if behind := r.Behind; behind != nil && r.Backwards {
			end = min(end, at(timed{behind.At, behind.Sequence}))
		} else if behind != nil {
			first = max(first, at(timed{behind.At, behind.Sequence + 1}))
		}
		for ; first < end; first++ {
			one := times.places[first]
			if r.Backwards {
				end--
				first--
				one = times.places[end]
			}
			if !yield(oda.CallPlace{At: one.at, Block: q.Block, Sequence: one.sequence}, nil) {
				return
			}
		}
	}
}

// timesOf returns the places of all calls of a block. It reads only what it does not know
// already; a new version may have other records, so then it reads all of them.
func (f *Finder) timesOf(ctx context.Context, block string) (*blockTimes, error) {
	for {
		before, err := f.engine.Look(ctx, []oda.Ref{{Kind: oda.ExecutionBlock, ID: block}})
		if err != nil || before[0] == nil {
			return &blockTimes{}, err
		}
		known, there := f.blocks.Get(block)
		if !there || known.version != before[0].Metadata.Version {
			known = &blockTimes{}
		}
		times, err := f.extended(ctx, block, known)
		if err != nil {
			return nil, err
		}
		times.version = before[0].Metadata.Version
		after, err := f.engine.Look(ctx, []oda.Ref{before[0].Ref})
		if err != nil {
			return nil, err
		}
		if after[0] != nil && after[0].Metadata.Version == times.version {
			f.blocks.Add(block, times, 100+16*len(times.places))
			return times, nil
		}
	}
}

// extended returns the places with those of the records that follow.
func (f *Finder) extended(ctx context.Context, block string, known *blockTimes) (*blockTimes, error) {
	times := &blockTimes{last: known.last, places: slices.Clone(known.places)}
	// The last record is read again: a database that was restored may have another.
	for after, again := max(known.last.Sequence-1, 0), known.last.Sequence > 0; ; again = false {
		page, err := f.engine.Records(ctx, block, after, lookAtOnce)
		if err != nil {
			return nil, err
		}
		records := page.Records
		if again {
			if len(records) == 0 || records[0].Sequence != known.last.Sequence || records[0].RecordedOn != known.last.RecordedOn {
				return f.extended(ctx, block, &blockTimes{})
			}
			records = records[1:]
		}
		for i := range records {
			r := &records[i]
			call := oda.CallOf(r.Text)
			times.places = append(times.places, timed{call.At(r.RecordedOn), r.Sequence})
			times.last = oda.Record{Sequence: r.Sequence, RecordedOn: r.RecordedOn}
		}
		if after = times.last.Sequence; !page.More {
			slices.SortFunc(times.places, timed.compare)
			return times, nil
		}
	}
}
