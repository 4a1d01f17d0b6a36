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
	query    Query
	blocks   []Block
	slowest  []SlowCall                // in order, at most slowestCalls
	requests map[string]*FailedRequest // by name
	others   FailedRequest             // the sum of those beyond maxRequests
	records  int                       // read so far
}

// recordsBetween is how many records are read before other goroutines, whose
// requests are short, get the processor.
const recordsBetween = 256

func newTotal(q Query) total {
	return total{query: q, blocks: []Block{}, slowest: []SlowCall{}, requests: make(map[string]*FailedRequest)}
}

// read adds the calls of a block.
func (s *total) read(ctx context.Context, from Engine, kept *cache, block *oda.Found) error {
	key := blockNight{block.ID, s.query.From, s.query.To}
	b := kept.get(key)
	if b == nil || !b.isOf(block) {
		var err error
		if b, err = blockSumOf(ctx, from, s.query, block, b); err != nil {
			return err
		}
		kept.add(key, b)
		runtime.Gosched()
	}
	s.join(&b.sum)
	if b.block.Calls == 0 {
		return nil
	}
	one := b.block
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

// add counts a record if its call was made in the night, and returns the call. Of all
// calls of a block, it does not count the requests.
func (s *total) add(block *Block, r oda.Record) oda.Call {
	if s.records++; s.records%recordsBetween == 0 {
		runtime.Gosched()
	}
	c := oda.CallOf(r.Text)
	at := c.At(r.RecordedOn)
	if at < s.query.From || at >= s.query.To {
		return c
	}
	took, known := c.Took()
	block.FirstCall, block.LastCall = min(block.FirstCall, oda.Moment(at)), max(block.LastCall, oda.Moment(at))
	block.LastResponse = max(block.LastResponse, oda.Moment(at))
	if received := c.Received(); received != nil {
		block.LastResponse = max(block.LastResponse, oda.Moment(*received))
	}
	block.Tally.add(Tally{1, count(c.Failed), took})
	if s.query == always {
		return c
	}
	request := s.request(c.Request())
	one := FailedRequest{Calls: 1}
	if c.Failed {
		one.Failures, one.Blocks = 1, []string{block.ID}
	}
	request.add(&one)
	if known {
		s.slow(SlowCall{block.ID, r.Sequence, request.Request, oda.Moment(*c.Sent()), took})
	}
	return c
}

func count(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// add adds other to the counts. A sum of times that overflows becomes the
// largest time.
func (t *Tally) add(other Tally) {
	t.Calls += other.Calls
	t.Failures += other.Failures
	if t.Took += other.Took; t.Took < 0 {
		t.Took = math.MaxInt64
	}
}

// request returns the counts of a request.
func (s *total) request(name []byte) *FailedRequest {
	if len(name) > requestBytes {
		name = append(bytes.ToValidUTF8(name[:requestBytes], nil), "…"...)
	}
	if known := s.requests[string(name)]; known != nil {
		return known
	}
	return s.distinct(string(name))
}

// distinct begins to count a request separately.
func (s *total) distinct(name string) *FailedRequest {
	if len(s.requests) >= 2*maxRequests {
		s.bound()
	}
	known := &FailedRequest{Request: name}
	s.requests[name] = known
	return known
}

// bound adds up the requests whose names sort after the first maxRequests. Which
// ones these are depends neither on the order in which blocks are read nor on the
// sums that are joined.
func (s *total) bound() {
	if len(s.requests) <= maxRequests {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.requests))[maxRequests:] {
		s.others.add(s.requests[name])
		delete(s.requests, name)
	}
}

func (r *FailedRequest) add(other *FailedRequest) {
	for _, block := range other.Blocks {
		if at, known := slices.BinarySearch(r.Blocks, block); !known && at < FailedBlocks {
			r.Blocks = slices.Insert(r.Blocks, at, block)
			r.Blocks = r.Blocks[:min(len(r.Blocks), FailedBlocks)]
		}
	}
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
	report := &Report{From: oda.Moment(q.From), To: oda.Moment(q.To), Blocks: all.blocks, Slowest: all.slowest, FailuresByRequest: []FailedRequest{}}
	for i := range report.Blocks {
		report.Tally.add(report.Blocks[i].Tally)
	}
	slices.SortFunc(report.Blocks, func(a, b Block) int {
		return cmp.Or(cmp.Compare(a.FirstCall, b.FirstCall), strings.Compare(a.ID, b.ID))
	})
	all.bound()
	all.others.Request, all.others.Blocks = OtherRequests, nil // they are many
	for _, r := range append(slices.Collect(maps.Values(all.requests)), &all.others) {
		if r.Failures > 0 {
			report.FailuresByRequest = append(report.FailuresByRequest, *r)
		}
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
		known.add(r)
	}
	s.others.add(&other.others)
}
