package work

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"oda/bench/load"
	"oda/bench/measure"
	"oda/bench/report"
)

// lengths asks whether recording becomes dearer the more records a block has.
func lengths() scenario {
	return scenario{
		id: "lengths", title: "Recording into blocks of any length",
		takes: func(p plan) time.Duration {
			filling := time.Duration(2*p.lengths[len(p.lengths)-1]) * 40 * time.Microsecond
			return filling + estimate(2*len(p.lengths)+rewriteLengths(p), p.usual)
		},
		run: runLengths,
	}
}

// lengthBudget is the most that a record may cost at longLength, of what it
// costs at shortLength.
const (
	lengthBudget = 1.2
	shortLength  = 10
	longLength   = 100_000
)

// lengthConnections record into one block at a time.
const lengthConnections = 16

// pool is a number of blocks of about one length, so that recording does not
// make short blocks long: when a block has got as many records as it had, the
// next one takes its place.
type pool struct {
	length   int
	requests [][]byte // a record for each of the blocks
	taken    atomic.Int64
}

func newPool(length int, requests [][]byte) *pool { return &pool{length: length, requests: requests} }

// next is the request that records into the block whose turn it is.
func (p *pool) next() []byte {
	turn := p.taken.Add(1) / int64(p.length)
	return p.requests[turn%int64(len(p.requests))]
}

// pooled is a worker that records into the blocks of a pool.
type pooled struct {
	expected
	pool *pool
}

func (w *pooled) Next(buf []byte) []byte        { return append(buf, w.pool.next()...) }
func (w *pooled) Answered(a *load.Answer) error { return w.check(a) }

// pooledArm records into a pool.
func pooledArm(addr string, p *pool) measure.Arm {
	return closed(lengthName(p.length), addr, lengthConnections, func(int) load.Worker {
		return &pooled{expected: expected{status: http.StatusOK}, pool: p}
	})
}

func lengthName(length int) string { return thousands(length) + " records" }

// rewriteLengths is how many lengths are given to the rewriting peer.
func rewriteLengths(p plan) int {
	n := 0
	for _, length := range p.lengths {
		if length <= p.rewriteTo {
			n++
		}
	}
	return n
}

func runLengths(ctx context.Context, s *stage) error {
	sqlite, postgres, err := s.engines(ctx, s.name)
	if err != nil {
		return err
	}
	s.note("Over %d connections records are added to one block that has so many records already. When it has twice as many, the next "+
		"block of that length takes its place. The lengths of one engine are measured in turn, so each is compared with the others in "+
		"the same rounds. *Cost* is the inverse of the rate.", lengthConnections)
	var all lines
	for _, e := range []*engine{sqlite, postgres} {
		var arms []measure.Arm
		for _, length := range s.plan.lengths {
			blocks, err := s.blocks(ctx, e.addr(), fmt.Sprintf("length%d", length), max(1, s.plan.prepared/length))
			if err != nil {
				return err
			}
			if err := s.lengthen(ctx, e.addr(), blocks, length); err != nil {
				return err
			}
			var requests [][]byte
			for _, block := range blocks {
				requests = append(requests, records(block)[0])
			}
			arms = append(arms, pooledArm(e.addr(), newPool(length, requests)))
		}
		if e.arm == onPostgres {
			if err := settle(ctx, e.db); err != nil {
				return err
			}
		}
		if err := s.compareLengths(ctx, e.arm, e.label, s.plan.lengths, arms, &all); err != nil {
			return err
		}
	}
	if err := s.rewriteLengths(ctx, &all); err != nil {
		return err
	}
	s.section.Plots = append(s.section.Plots, report.Plot{
		ID: "lengths", Title: "What one more record costs", XLabel: "records in the block", YLabel: "cost of one record",
		Unit: "s", LogX: true, LogY: true, Headline: true, Lines: all.all,
	})
	return nil
}

// compareLengths measures all lengths of one arm in turn.
func (s *stage) compareLengths(ctx context.Context, arm, label string, lengths []int, arms []measure.Arm, all *lines) error {
	c, err := s.measure(ctx, arm, s.plan.usual, arms)
	if err != nil {
		return err
	}
	first := c.series[0]
	table := report.Table{Title: arm, Columns: []string{"in the block", "records/s", "cost", "÷ at " + thousands(lengths[0]), "p50", "p99"}}
	for i, series := range c.series {
		table.Rows = append(table.Rows, []string{
			series.Arm, report.Times(series.Rate()), report.SpreadValue(cost(series), "s"), report.Times(costRatio(series, first)),
			latency(series.Quantile(measure.P50)), latency(series.Quantile(measure.P99)),
		})
		all.add(arm, float64(lengths[i]), cost(series))
	}
	s.section.Tables = append(s.section.Tables, table)
	if ours(arm) {
		long, _ := c.of(lengthName(longLength))
		short, _ := c.of(lengthName(shortLength))
		value := unknown()
		if len(long.Samples) > 0 && len(short.Samples) > 0 {
			value = costRatio(long, short)
		}
		s.atMost("record at 100,000 records in the block", label, "of the cost at 10", lengthBudget, "", value)
	}
	return nil
}
