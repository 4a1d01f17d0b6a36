package calls

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"strings"
	"time"

	"oda"
)

// By is what calls are counted by.
type By int

// What calls can be counted by.
const (
	ByRequest By = iota
	ByError
	ByDevice
	ByTelescope
	ByBlock
	ByDay
)

var byNames = [...]string{"request", "error", "device", "telescope", "eb", "day"}

// String returns the name on the wire.
func (b By) String() string { return byNames[b] }

// Tally counts calls that have something in common.
type Tally struct {
	Tally    []Count `json:"tally"`    // the most failures first, or by date
	Complete bool    `json:"complete"` // else some calls were not counted
}

// Count counts the calls that have a key in common.
type Count struct {
	Key      *string     `json:"key"` // nil: those that have none
	Calls    int64       `json:"calls"`
	Failures int64       `json:"failures"`
	Took     oda.Elapsed `json:"seconds"`
}

// Bounds of a tally.
const (
	maxCounts = 1000
	maxKeys   = 50_000 // that are counted before the first are chosen
)

// Tally counts the calls of a question. It counts for a limited time.
func (f *Finder) Tally(ctx context.Context, asked Query, by By) (*Tally, error) {
	counts, complete, err := f.count(ctx, asked, counting{by: by})
	if err != nil {
		return nil, err
	}
	t := &Tally{Tally: []Count{}, Complete: complete}
	for key, c := range counts {
		one := Count{Calls: c.calls, Failures: c.failures, Took: c.took}
		if key != "" {
			one.Key = &key
		}
		t.Tally = append(t.Tally, one)
	}
	name := func(c Count) string {
		if c.Key == nil {
			return ""
		}
		return *c.Key
	}
	slices.SortFunc(t.Tally, func(a, b Count) int {
		if by == ByDay {
			return strings.Compare(name(a), name(b))
		}
		return cmp.Or(cmp.Compare(b.Failures, a.Failures), cmp.Compare(b.Calls, a.Calls), strings.Compare(name(a), name(b)))
	})
	if len(t.Tally) > maxCounts {
		t.Tally, t.Complete = t.Tally[:maxCounts], false
	}
	return t, nil
}

// Bar counts the calls of a part of a range of time.
type Bar struct {
	From            oda.Instant
	Calls, Failures int64
}

// Histogram counts the calls of a question, whose range has two ends, in parts of that
// range that are equally long.
func (f *Finder) Histogram(ctx context.Context, asked Query, bars int) (list []Bar, complete bool, err error) {
	width := max((*asked.To-*asked.From+oda.Instant(bars)-1)/oda.Instant(bars), 1)
	counts, complete, err := f.count(ctx, asked, counting{from: *asked.From, width: width})
	if err != nil {
		return nil, false, err
	}
	for from := *asked.From; from < *asked.To; from += width {
		c := counts[from.String()]
		list = append(list, Bar{from, c.calls, c.failures})
	}
	return list, complete, nil
}

// counting says what calls are counted by: the parts of a range of time if they have a
// width.
type counting struct {
	by          By
	from, width oda.Instant
}

// key returns what a call is counted under.
func (c counting) key(e *oda.CallEntry) string {
	if c.width > 0 {
		return (e.At - (e.At-c.from)%c.width).String()
	}
	var key *string
	switch c.by {
	case ByRequest:
		key = &e.Request
	case ByError:
		if e.Error != nil {
			key = e.Error.Type
		}
	case ByDevice:
		key = e.Device
	case ByTelescope:
		key = e.Telescope
	case ByBlock:
		key = &e.Block
	case ByDay:
		day, _, _ := strings.Cut(e.At.String(), "T")
		return day
	}
	if key == nil {
		return ""
	}
	return *key
}

// counts are sums of calls by key.
type counts map[string]count

type count struct {
	calls, failures int64
	took            oda.Elapsed
}

// add adds sums under a key. It reports whether there was room for them.
func (c counts) add(key string, more count) bool {
	sum, there := c[key]
	if !there && len(c) >= maxKeys {
		return false
	}
	sum.calls += more.calls
	sum.failures += more.failures
	if sum.took += more.took; sum.took < 0 {
		sum.took = 1<<63 - 1
	}
	c[key] = sum
	return true
}

func countOf(e *oda.CallEntry) count {
	c := count{calls: 1}
	if e.Outcome == oda.CallFailed {
		c.failures = 1
	}
	if e.Took != nil {
		c.took = *e.Took
	}
	return c
}

func (f *Finder) count(ctx context.Context, asked Query, by counting) (counts, bool, error) {
	asked.Behind, asked.Limit, asked.OldestFirst = nil, 0, true
	q, ctx, done, err := f.begin(ctx, asked)
	if err != nil {
		return nil, false, err
	}
	defer done()
	late := time.Now().Add(tallyTime)
	if !q.byTime() {
		sums, complete, err := q.countDays(ctx, by, late)
		return sums, complete, cause(ctx, err)
	}
	sums, complete := make(counts), true
	w := walk{question: q, late: late, atOnce: lookAtOnce}
	for e, err := range w.found(ctx) {
		if err != nil {
			return nil, false, err
		}
		complete = sums.add(by.key(&e), countOf(&e)) && complete
	}
	return sums, complete && !w.cut, nil
}

// sumKey is what the sums of a unit are kept under.
type sumKey struct {
	asked string // the question and what is counted by
	day   oda.Day
	block string
}

// unitSum is the sums of a unit, for a state of its block. Once made, it never changes.
type unitSum struct {
	version  int64
	modified oda.Instant
	counts   counts
	complete bool
}

func (s *unitSum) size() int {
	n := 200
	for key := range s.counts {
		n += 100 + len(key)
	}
	return n
}

// countDays counts all calls of a range. Blocks that have not changed since they were
// last counted in the same way are not read.
func (q *question) countDays(ctx context.Context, by counting, late time.Time) (counts, bool, error) {
	sums, complete := make(counts), true
	asked := q.keyOf(by)
	for day, err := range q.days(ctx) {
		if err != nil {
			return nil, false, err
		}
		units, err := q.unitsOn(ctx, day)
		if err != nil {
			return nil, false, err
		}
		parts := make([]*unitSum, len(units))
		err = oda.Share(ctx, countersAtOnce, len(units), func(ctx context.Context, _, n int) (err error) {
			if time.Now().Before(late) {
				parts[n], err = q.sumOf(ctx, units[n], by, asked)
			}
			return err
		})
		if err != nil {
			return nil, false, err
		}
		for _, part := range parts {
			if part == nil {
				return sums, false, nil
			}
			complete = complete && part.complete
			for key, c := range part.counts {
				complete = sums.add(key, c) && complete
			}
		}
	}
	return sums, complete, nil
}

// countersAtOnce is how many units are read in parallel.
const countersAtOnce = 4

// keyOf returns the question and what is counted by as a text.
func (q *question) keyOf(by counting) string {
	return q.cursor(oda.CallPlace{At: by.from, Sequence: int64(by.width), Block: by.by.String()})
}

// sumOf returns the sums of a unit.
func (q *question) sumOf(ctx context.Context, u unit, by counting, asked string) (*unitSum, error) {
	key := sumKey{asked, u.day, u.block.ID}
	m := u.block.Metadata
	if known, there := q.sums.Get(key); there && known.version == m.Version && known.modified == m.LastModifiedOn {
		return known, nil
	}
	sum := &unitSum{version: m.Version, modified: m.LastModifiedOn, counts: make(counts), complete: true}
	n := 0
	for e, err := range q.callsOn(ctx, u, oda.AllSequences) {
		if err != nil {
			return nil, err
		}
		if n++; n%256 == 0 {
			runtime.Gosched() // others have short requests
		}
		if !q.matches(&e) {
			continue
		}
		if telescope := u.block.Summary.Telescope; telescope != "" {
			e.Telescope = &telescope
		}
		sum.complete = sum.counts.add(by.key(&e), countOf(&e)) && sum.complete
	}
	q.sums.Add(key, sum, sum.size())
	return sum, nil
}
