package calls

import (
	"cmp"
	"context"
	"fmt"
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
	sums, complete, err := f.count(ctx, asked, counting{by: by})
	if err != nil {
		return nil, err
	}
	return tallyOf(sums[0], by, complete), nil
}

// tallyOf puts counts in order.
func tallyOf(counts counts, by By, complete bool) *Tally {
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
	return t
}

// Overview is what there is to say about the calls of a question at one look.
type Overview struct {
	Tallies  []*Tally // in the order of what was asked for
	Bars     []Bar
	Complete bool
}

// Bar counts the calls of a part of time.
type Bar struct {
	From            oda.Instant
	Calls, Failures int64
}

// Bars asks for a number of bars of equal width. The first begins at From.
type Bars struct {
	From, Width oda.Instant
	Number      int
}

// Overview tallies the calls of a question by several things, and counts them in parts of
// time. It goes through them once.
func (f *Finder) Overview(ctx context.Context, asked Query, bars Bars, by ...By) (*Overview, error) {
	ways := []counting{{from: bars.From, width: bars.Width}}
	for _, by := range by {
		ways = append(ways, counting{by: by})
	}
	sums, complete, err := f.count(ctx, asked, ways...)
	if err != nil {
		return nil, err
	}
	o := &Overview{Complete: complete}
	for i := range bars.Number {
		from := bars.From + oda.Instant(i)*bars.Width
		c := sums[0][from.String()]
		o.Bars = append(o.Bars, Bar{from, c.calls, c.failures})
	}
	for i, by := range by {
		o.Tallies = append(o.Tallies, tallyOf(sums[i+1], by, complete))
	}
	return o, nil
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

// count counts the calls of a question in several ways, each by its keys.
func (f *Finder) count(ctx context.Context, asked Query, ways ...counting) ([]counts, bool, error) {
	asked.Behind, asked.Limit, asked.OldestFirst = nil, 0, false
	q, ctx, done, err := f.begin(ctx, asked)
	if err != nil {
		return nil, false, err
	}
	defer done()
	q.late = time.Now().Add(cmp.Or(asked.Within, tallyTime))
	if !q.byTime() {
		sum, err := q.countDays(ctx, ways)
		return sum.counts, sum.complete, cause(ctx, err)
	}
	sum := newSum(ways)
	for e, err := range q.found(ctx, lookAtOnce) {
		if err != nil {
			return nil, false, err
		}
		sum.count(ways, &e)
	}
	return sum.counts, sum.complete && q.cut == nil, nil
}

// sumKey is what the sums of a unit are kept under.
type sumKey struct {
	asked string // the question and what is counted by
	day   oda.Day
	block string
}

// sum is calls that were counted in several ways.
type sum struct {
	counts   []counts // for each way
	complete bool
}

func newSum(ways []counting) sum {
	s := sum{make([]counts, len(ways)), true}
	for i := range ways {
		s.counts[i] = make(counts)
	}
	return s
}

// count counts a call in each way.
func (s *sum) count(ways []counting, e *oda.CallEntry) {
	for i, way := range ways {
		s.complete = s.counts[i].add(way.key(e), countOf(e)) && s.complete
	}
}

// unitSum is the sums of a unit, for a state of its block. Once made, it never changes.
type unitSum struct {
	version  int64
	modified oda.Instant
	sum
}

func (s *unitSum) size() int {
	n := 200
	for _, counts := range s.counts {
		for key := range counts {
			n += 100 + len(key)
		}
	}
	return n
}

// countDays counts all calls of a range. Blocks that have not changed since they were
// last counted in the same way are not read.
func (q *question) countDays(ctx context.Context, ways []counting) (sum, error) {
	total, asked := newSum(ways), q.keyOf(ways)
	for day, err := range q.days(ctx) {
		if err != nil {
			return sum{}, err
		}
		units, err := q.unitsOn(ctx, day)
		if err != nil {
			return sum{}, err
		}
		if time.Now().After(q.late) {
			total.complete = false
			return total, nil
		}
		units = slices.DeleteFunc(units, func(u unit) bool { return !q.wants(u) })
		parts := make([]*unitSum, len(units))
		err = oda.Share(ctx, countersAtOnce, len(units), func(ctx context.Context, _, n int) (err error) {
			if time.Now().Before(q.late) {
				parts[n], err = q.sumOf(ctx, units[n], ways, asked)
			}
			return err
		})
		if err != nil {
			return sum{}, err
		}
		for _, part := range parts {
			if part == nil {
				total.complete = false
				return total, nil
			}
			total.complete = total.complete && part.complete
			for i := range ways {
				for key, c := range part.counts[i] {
					total.complete = total.counts[i].add(key, c) && total.complete
				}
			}
		}
	}
	return total, nil
}

// countersAtOnce is how many units are read in parallel.
const countersAtOnce = 4

// keyOf returns the question and what is counted by as a text.
func (q *question) keyOf(ways []counting) string {
	key := q.cursor(oda.CallPlace{})
	for _, way := range ways {
		key += fmt.Sprint(" ", way.by, int64(way.from), int64(way.width))
	}
	return key
}

// sumOf returns the sums of a unit.
func (q *question) sumOf(ctx context.Context, u unit, ways []counting, asked string) (*unitSum, error) {
	key := sumKey{asked, u.day, u.block.ID}
	m := u.block.Metadata
	if known, there := q.sums.Get(key); there && known.version == m.Version && known.modified == m.LastModifiedOn {
		return known, nil
	}
	sum := &unitSum{version: m.Version, modified: m.LastModifiedOn, sum: newSum(ways)}
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
		sum.count(ways, &e)
	}
	q.sums.Add(key, sum, sum.size())
	return sum, nil
}
