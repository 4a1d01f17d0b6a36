package night

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"

	"oda"
)

// total adds up the calls of a night. Each block has one, and each worker, which
// joins those of its blocks; reportOf joins all at the end.
type total struct {
	query      Query
	blocks     []Block
	slowest    []SlowCall          // in order, at most slowestCalls
	requests   map[string]*request // by name
	others     FailedRequest       // the sum of those beyond maxRequests
	errors     map[errorName]*errorSum
	telescopes map[string]*use // of the blocks; empty: those without one
	timed      int             // calls that say how long they took
	records    int             // read so far
}

// request is the sum of the calls of a request.
type request struct {
	FailedRequest
	timed []timedCalls // of each block; none beyond maxTimed
}

// recordsBetween is how many records are read before other goroutines, whose
// requests are short, get the processor.
const recordsBetween = 256

func newTotal(q Query) total {
	return total{
		query: q, blocks: []Block{}, slowest: []SlowCall{},
		requests: make(map[string]*request), errors: make(map[errorName]*errorSum), telescopes: make(map[string]*use),
	}
}

// read adds the calls of a block.
func (s *total) read(ctx context.Context, from Engine, kept *known, block *oda.Found) error {
	key := blockNight{block.ID, s.query.From, s.query.To}
	b, _ := kept.Get(key)
	if b == nil || !b.isOf(block) {
		var err error
		if b, err = blockSumOf(ctx, from, s.query, block, b); err != nil {
			return err
		}
		kept.Add(key, b, b.size())
		runtime.Gosched()
	}
	s.join(&b.sum)
	if b.block.Calls == 0 {
		return nil
	}
	s.use(block.Summary.Telescope).add(b)
	one := b.block
	one.Status = block.Standing
	one.CreatedBy, one.References = block.Metadata.CreatedBy, block.Summary.References
	if one.References == nil {
		one.References = []oda.Reference{}
	}
	if block.Summary.Telescope != "" {
		one.Telescope = &block.Summary.Telescope
	}
	s.blocks = append(s.blocks, one)
	return nil
}

// add counts a record if its call was made in the night, and returns the call and whether it
// was. Of all calls of a block, it counts neither requests nor errors.
func (s *total) add(block *Block, r oda.Record) (c oda.Call, isIn bool) {
	if s.records++; s.records%recordsBetween == 0 {
		runtime.Gosched()
	}
	c = oda.CallOf(r.Text)
	at := c.At(r.RecordedOn)
	if at < s.query.From || at >= s.query.To {
		return c, false
	}
	took, known := c.Took()
	block.FirstCall, block.LastCall = min(block.FirstCall, oda.Moment(at)), max(block.LastCall, oda.Moment(at))
	block.LastResponse = max(block.LastResponse, oda.Moment(at))
	if received := c.Received(); received != nil {
		block.LastResponse = max(block.LastResponse, oda.Moment(*received))
	}
	block.Tally.add(Tally{1, count(c.Failed), took})
	if s.query == always {
		return c, true
	}
	request := s.request(c.Request())
	one := FailedRequest{Calls: 1}
	if c.Failed {
		one.Failures = 1
		s.fail(&c, at, CallPlace{block.ID, r.Sequence})
	}
	request.add(&one)
	if known {
		s.slow(SlowCall{block.ID, r.Sequence, request.Request, oda.Moment(*c.Sent()), took})
		s.time(request, block.ID, timedCall{oda.Moment(*c.Sent()), took, r.Sequence})
	}
	return c, true
}

func count(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// add adds other to the counts.
func (t *Tally) add(other Tally) {
	t.Calls += other.Calls
	t.Failures += other.Failures
	t.Took = plus(t.Took, other.Took)
}

// plus adds two times. A sum that overflows becomes the largest time.
func plus(a, b oda.Elapsed) oda.Elapsed {
	if sum := a + b; sum >= 0 {
		return sum
	}
	return math.MaxInt64
}

// request returns the counts of a request.
func (s *total) request(name []byte) *request {
	if len(name) > requestBytes {
		name = append(bytes.ToValidUTF8(name[:requestBytes], nil), "…"...)
	}
	if known := s.requests[string(name)]; known != nil {
		return known
	}
	return s.distinct(string(name))
}

// distinct begins to count a request separately.
func (s *total) distinct(name string) *request {
	if len(s.requests) >= 2*maxRequests {
		s.bound()
	}
	known := &request{FailedRequest: FailedRequest{Request: name}}
	s.requests[name] = known
	return known
}

// bound adds up the requests whose names sort after the first maxRequests, and forgets
// errors beyond the first maxErrors. Which ones these are depends neither on the order in
// which blocks are read nor on the sums that are joined.
func (s *total) bound() {
	if len(s.requests) > maxRequests {
		for _, name := range slices.Sorted(maps.Keys(s.requests))[maxRequests:] {
			s.others.add(&s.requests[name].FailedRequest)
			delete(s.requests, name)
		}
	}
	if len(s.errors) > maxErrors {
		for _, name := range slices.SortedFunc(maps.Keys(s.errors), errorName.compare)[maxErrors:] {
			delete(s.errors, name)
		}
	}
}

func (r *FailedRequest) add(other *FailedRequest) {
	r.Calls += other.Calls
	r.Failures += other.Failures
}

// slow adds a call to the slowest if it is one of them.
func (s *total) slow(c SlowCall) {
	if n := len(s.slowest); n == slowestCalls {
		if slower(c, s.slowest[n-1]) > 0 {
			return
		}
		s.slowest = s.slowest[:n-1]
	}
	at, _ := slices.BinarySearchFunc(s.slowest, c, slower)
	s.slowest = slices.Insert(s.slowest, at, c)
}

// slower orders calls: the slowest first, and equally slow ones by time.
func slower(a, b SlowCall) int {
	return cmp.Or(cmp.Compare(b.Took, a.Took), cmp.Compare(a.SentAt, b.SentAt), strings.Compare(a.Block, b.Block), cmp.Compare(a.Sequence, b.Sequence))
}

// reportOf makes the report from all sums.
func reportOf(q Query, totals []total) *Report {
	all := newTotal(q)
	for i := range totals {
		all.join(&totals[i])
	}
	report := &Report{
		Zone: q.Zone, From: oda.Moment(q.From), To: oda.Moment(q.To), Blocks: all.blocks, Slowest: all.slowest,
		FailuresByRequest: []FailedRequest{},
	}
	for i := range report.Blocks {
		report.Tally.add(report.Blocks[i].Tally)
	}
	report.fillUse(all.telescopes)
	slices.SortFunc(report.Blocks, func(a, b Block) int {
		return cmp.Or(cmp.Compare(a.FirstCall, b.FirstCall), strings.Compare(a.ID, b.ID))
	})
	all.bound()
	report.Errors = mostFrequent(all.errors)
	report.Unusual, report.Usual = all.unusual()
	all.others.Request = OtherRequests
	for _, r := range all.requests {
		if r.Failures > 0 {
			report.FailuresByRequest = append(report.FailuresByRequest, r.FailedRequest)
		}
	}
	if all.others.Failures > 0 {
		report.FailuresByRequest = append(report.FailuresByRequest, all.others)
	}
	slices.SortFunc(report.FailuresByRequest, func(a, b FailedRequest) int {
		return cmp.Or(cmp.Compare(b.Failures, a.Failures), strings.Compare(a.Request, b.Request))
	})
	return report
}

// join adds another sum.
func (s *total) join(other *total) {
	s.blocks = append(s.blocks, other.blocks...)
	for _, c := range other.slowest {
		s.slow(c)
	}
	for name, r := range other.requests {
		known := s.requests[name]
		if known == nil {
			known = s.distinct(name)
		}
		known.add(&r.FailedRequest)
		known.joinTimes(r.timed)
	}
	s.others.add(&other.others)
	if s.timed += other.timed; s.timed > maxTimed {
		s.forgetTimes()
	}
	for name, e := range other.errors {
		s.failure(name).join(e)
	}
	for name, u := range other.telescopes {
		s.use(name).join(u)
	}
}
