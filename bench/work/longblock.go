package work

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"oda/bench/load"
	"oda/bench/machine"
	"oda/bench/measure"
	"oda/bench/report"
)

// longBlock reads a block with all its records in one answer.
func longBlock() scenario {
	return scenario{
		id: "long-block", title: "Reading a long block",
		takes: func(p plan) time.Duration { return estimate(3, p.usual) },
		run:   runLongBlock,
	}
}

// wholeReader reads one thing and notes when the first byte came.
type wholeReader struct {
	request []byte
	least   int64 // bytes that a whole answer has at least
	first   *[]float64
}

func (w *wholeReader) Next(buf []byte) []byte { return append(buf, w.request...) }

func (w *wholeReader) Answered(a *load.Answer) error {
	if a.Status != http.StatusOK || a.Size < w.least {
		return fmt.Errorf("answered %d with %d bytes, expected at least %d", a.Status, a.Size, w.least)
	}
	*w.first = append(*w.first, a.FirstByte.Seconds())
	return nil
}

// whole is a server from which a long block is read.
type whole struct {
	arm, addr string
	pid       int
	request   []byte
	first     []float64
	growth    float64
}

// measured reads over one connection, since a person waits for the answer.
func (w *whole) measured(least int64) measure.Arm {
	return measure.Arm{Name: w.arm, Run: func(ctx context.Context, length time.Duration) (measure.Sample, error) {
		before, err := machine.Process(w.pid)
		if err != nil {
			return measure.Sample{}, err
		}
		if err := machine.ResetPeak(w.pid); err != nil {
			return measure.Sample{}, err
		}
		sample, err := load.Closed(ctx, load.Target{
			Addr: w.addr, Connections: 1, Discard: true,
			New: func(int) load.Worker { return &wholeReader{request: w.request, least: least, first: &w.first} },
		}, length)
		if err != nil {
			return sample, err
		}
		after, err := machine.Process(w.pid)
		w.growth = max(w.growth, grown(before, after))
		return sample, err
	}}
}

func runLongBlock(ctx context.Context, s *stage) error {
	sqlite, postgres, err := s.engines(ctx, s.name)
	if err != nil {
		return err
	}
	var servers []*whole
	for _, e := range []*engine{sqlite, postgres} {
		blocks, err := s.blocks(ctx, e.addr(), "long", 1)
		if err != nil {
			return err
		}
		if err := s.lengthen(ctx, e.addr(), blocks, s.plan.longBlock); err != nil {
			return err
		}
		// One that has worked holds memory that reading could use unseen.
		if _, err := s.restart(ctx, e); err != nil {
			return err
		}
		servers = append(servers, &whole{
			arm: e.arm, addr: e.addr(), pid: e.server.PID, request: get(api + "/ebs/" + blocks[0]),
		})
	}
	rewriter, err := s.rewritingWhole(ctx)
	if err != nil {
		return err
	}
	servers = append([]*whole{rewriter}, servers...)
	var arms []measure.Arm
	for _, w := range servers {
		arms = append(arms, w.measured(int64(s.plan.longBlock)*200))
	}
	c, err := s.measure(ctx, fmt.Sprintf("GET of a block with %s records", thousands(s.plan.longBlock)), s.plan.usual, arms)
	if err != nil {
		return err
	}
	s.note("An ExecutionBlock with %s records is read whole, over one connection. *Rewriting* keeps a block as one document and has it "+
		"ready; oda puts it together from its records. *Memory* is how far the memory of the server rose above what it had before.",
		thousands(s.plan.longBlock))
	table := report.Table{Columns: []string{"", "answers/s", "÷ rewriting", "MB/s", "first byte", "whole answer", "p99", "memory"}}
	for i, series := range c.series {
		var speed []float64
		for _, sample := range series.Samples {
			speed = append(speed, float64(sample.Bytes)/1e6/sample.Elapsed.Seconds())
		}
		table.Rows = append(table.Rows, []string{
			series.Arm, report.Times(series.Rate()), ratioText(c, series.Arm, rewriting), report.Times(measure.SpreadOf(speed)),
			report.Value(measure.SpreadOf(servers[i].first).Median, "s"), report.SpreadValue(series.Quantile(measure.P50), "s"),
			latency(series.Quantile(measure.P99)), report.Bytes(servers[i].growth),
		})
	}
	s.section.Tables = append(s.section.Tables, table)
	return nil
}
