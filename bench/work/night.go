package work

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"oda/bench/load"
	"oda/bench/measure"
	"oda/bench/report"
)

// night is what an archive does while a telescope observes: almost only
// recording, now and then a read or an update.
func night() scenario {
	return scenario{
		id: "night", title: "A mixed night",
		takes: func(p plan) time.Duration {
			open := time.Duration(3*len(p.shares)*p.openRounds) * p.openLength
			return estimate(3, p.usual) + open
		},
		run: runNight,
	}
}

// Of a hundred requests, so many record and so many read; the rest updates.
const nightRecords, nightReads = 95, 3

// shift is the worker of a night.
type shift struct {
	random       *rand.Rand
	record, read *fixed
	update       *updater
	last         load.Worker
}

func (w *shift) Next(buf []byte) []byte {
	switch n := w.random.IntN(100); {
	case n < nightRecords:
		w.last = w.record
	case n < nightRecords+nightReads:
		w.last = w.read
	default:
		w.last = w.update
	}
	return w.last.Next(buf)
}

func (w *shift) Answered(a *load.Answer) error { return w.last.Answered(a) }

// nightly makes the target of a night on one server.
func (s *stage) nightly(ctx context.Context, addr string, blocks []string) (load.Target, error) {
	entities, err := read(ctx, addr, hotPaths(updated(s.plan.busy)))
	if err != nil {
		return load.Target{}, err
	}
	reads := hotReads(s.plan.hot)
	return load.Target{
		Addr: addr, Connections: s.plan.busy,
		New: func(i int) load.Worker {
			return &shift{
				random: rand.New(rand.NewPCG(7, uint64(i))),
				record: newRecorder(i, blocks[i]),
				read:   newFixed(i, reads, expected{status: http.StatusOK}),
				update: newUpdater(entities[i*perUpdater : (i+1)*perUpdater]),
			}
		},
	}, nil
}

// nightPlace is a server with what a night needs on it.
type nightPlace struct {
	arm, addr string
	blocks    []string
}

func (s *stage) nightPlaces(ctx context.Context) ([]nightPlace, error) {
	plain, err := s.bare(ctx)
	if err != nil {
		return nil, err
	}
	sqlite, postgres, err := s.engines(ctx, s.name)
	if err != nil {
		return nil, err
	}
	places := []nightPlace{{arm: bare, addr: plain.Addr}}
	for _, e := range []*engine{sqlite, postgres} {
		if err := s.fill(ctx, e.addr(), "sbd-hot", 0, updated(s.plan.busy), s.plan.documentSize); err != nil {
			return nil, err
		}
		blocks, err := s.blocks(ctx, e.addr(), "night", s.plan.busy)
		if err != nil {
			return nil, err
		}
		places = append(places, nightPlace{arm: e.arm, addr: e.addr(), blocks: blocks})
	}
	places[0].blocks = places[1].blocks
	return places, nil
}

func runNight(ctx context.Context, s *stage) error {
	places, err := s.nightPlaces(ctx)
	if err != nil {
		return err
	}
	s.note("%d %% record (a block for each connection), %d %% read and %d %% update an entity of %d bytes, over %d connections.",
		nightRecords, nightReads, 100-nightRecords-nightReads, s.plan.documentSize, s.plan.busy)
	var arms []measure.Arm
	for _, place := range places {
		arms = append(arms, s.nightArm(place, func(ctx context.Context, t load.Target, length time.Duration) (measure.Sample, error) {
			return load.Closed(ctx, t, length)
		}))
	}
	busy, err := s.measure(ctx, "As fast as it can (closed loop)", s.plan.usual, arms)
	if err != nil {
		return err
	}
	s.section.Tables = append(s.section.Tables, busy.table("requests", bare))
	s.section.Plots = append(s.section.Plots, busy.bars("night", "A mixed night, as fast as it can", "requests", bare))
	return s.openNight(ctx, places, busy)
}

func (s *stage) nightArm(place nightPlace, run func(context.Context, load.Target, time.Duration) (measure.Sample, error)) measure.Arm {
	return measure.Arm{Name: place.arm, Run: func(ctx context.Context, length time.Duration) (measure.Sample, error) {
		target, err := s.nightly(ctx, place.addr, place.blocks)
		if err != nil {
			return measure.Sample{}, err
		}
		return run(ctx, target, length)
	}}
}

// openNight sends at constant rates, which are shares of what each engine did
// at most. The bare server has the rates of oda on SQLite.
func (s *stage) openNight(ctx context.Context, places []nightPlace, busy compared) error {
	s.note("A telescope does not wait for the archive before it does the next thing. So requests are also sent at a constant rate, " +
		"whatever the answers do (open loop), and latency counts from the moment at which a request was due. The rates are shares of what " +
		"the same engine did at most in the closed loop; the bare server has those of oda on SQLite.")
	table := report.Table{
		Title:   "At a constant rate (open loop)",
		Columns: []string{"", "share", "requests/s", "p50", "p99", "p99.9", "longest", "p99 ÷ bare"},
	}
	plots := make([]lines, 3)
	for _, share := range s.plan.shares {
		var arms []measure.Arm
		rates := make([]float64, len(places))
		for i, place := range places {
			from := place.arm
			if from == bare {
				from = onSQLite
			}
			series, _ := busy.of(from)
			rates[i] = share * series.Rate().Median
			arms = append(arms, s.nightArm(place, func(ctx context.Context, t load.Target, length time.Duration) (measure.Sample, error) {
				return load.Open(ctx, t, rates[i], length)
			}))
		}
		p := measure.Plan{Length: s.plan.openLength, Rounds: s.plan.openRounds}
		c, err := s.measure(ctx, fmt.Sprintf("At %.0f %% of the closed loop", 100*share), p, arms)
		if err != nil {
			return err
		}
		reference, _ := c.of(bare)
		for i, series := range c.series {
			quantiles := []measure.Spread{series.Quantile(measure.P50), series.Quantile(measure.P99), series.Quantile(measure.P999)}
			for n, q := range quantiles {
				plots[n].add(series.Arm, rates[i], q)
			}
			longest := series.Quantile(func(sample measure.Sample) time.Duration { return sample.Max })
			table.Rows = append(table.Rows, []string{
				series.Arm, fmt.Sprintf("%.0f %%", 100*share), report.Times(series.Rate()),
				report.SpreadValue(quantiles[0], "s"), report.SpreadValue(quantiles[1], "s"), report.SpreadValue(quantiles[2], "s"),
				latency(longest), report.Times(measure.QuantileRatio(series, reference, measure.P99)),
			})
		}
	}
	s.section.Tables = append(s.section.Tables, table)
	for n, name := range []string{"p50", "p99", "p99.9"} {
		s.section.Plots = append(s.section.Plots, report.Plot{
			ID: "night-" + []string{"p50", "p99", "p999"}[n], Title: "A mixed night at a constant rate: " + name,
			XLabel: "requests in a second", YLabel: "latency, " + name, Unit: "s", LogY: true, Lines: plots[n].all,
		})
	}
	return nil
}
