package work

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"oda/bench/load"
	"oda/bench/measure"
	"oda/bench/report"
)

// processes shows what more oda processes on one PostgreSQL bring.
func processes() scenario {
	return scenario{
		id: "processes", title: "Several processes on one PostgreSQL",
		takes: func(p plan) time.Duration { return estimate(3*len(p.processes), p.usual) },
		run:   runProcesses,
	}
}

func runProcesses(ctx context.Context, s *stage) error {
	first, err := s.postgres(ctx, s.name)
	if err != nil {
		return err
	}
	addrs := []string{first.addr()}
	for len(addrs) < s.plan.processes[len(s.plan.processes)-1] {
		more := &engine{arm: onPostgres, db: first.db}
		if err := s.start(ctx, more); err != nil {
			return err
		}
		addrs = append(addrs, more.addr())
	}
	if err := s.fill(ctx, addrs[0], "sbd-hot", 0, updated(s.plan.busy), s.plan.documentSize); err != nil {
		return err
	}
	blocks, err := s.blocks(ctx, addrs[0], "process", s.plan.busy)
	if err != nil {
		return err
	}
	s.note("The connections (%d in all) are spread over one and more `oda` processes, all on one PostgreSQL, all on this machine. "+
		"More processes help where a process is the limit; on a machine whose cores are busy with one process, the database and the load, "+
		"they can only share what there is. What this shows here is that they do not stand in each other's way.", s.plan.busy)

	reads := hotReads(s.plan.hot)
	works := []struct {
		name string
		load func(addrs []string) func(context.Context, time.Duration) (measure.Sample, error)
	}{
		{"GET one entity", spread(s.plan.busy, func(i int) load.Worker {
			return newFixed(i, reads, expected{status: http.StatusOK, first: "sbd-hot"})
		})},
		{"Record", spread(s.plan.busy, func(i int) load.Worker { return newRecorder(i, blocks[i]) })},
		{"PUT update", func(addrs []string) func(context.Context, time.Duration) (measure.Sample, error) {
			return updating(addrs, s.plan.busy, hotPaths(updated(s.plan.busy)))
		}},
	}
	var all lines
	for _, work := range works {
		var arms []measure.Arm
		for _, n := range s.plan.processes {
			arms = append(arms, measure.Arm{Name: processName(n), Run: work.load(addrs[:n])})
		}
		c, err := s.measure(ctx, work.name, s.plan.usual, arms)
		if err != nil {
			return err
		}
		s.section.Tables = append(s.section.Tables, c.table("requests", processName(s.plan.processes[0])))
		for _, n := range s.plan.processes {
			all.add(work.name, float64(n), c.ratio(processName(n), processName(s.plan.processes[0])))
		}
	}
	s.section.Plots = append(s.section.Plots, report.Plot{
		ID: "processes", Title: "Rate of all processes together", XLabel: "processes",
		YLabel: "of the rate of one process", Lines: all.all,
	})
	return nil
}

func processName(n int) string {
	if n == 1 {
		return "1 process"
	}
	return fmt.Sprintf("%d processes", n)
}

// spread is a closed load whose connections go to the servers in turn.
func spread(connections int, worker func(i int) load.Worker) func([]string) func(context.Context, time.Duration) (measure.Sample, error) {
	return func(addrs []string) func(context.Context, time.Duration) (measure.Sample, error) {
		return func(ctx context.Context, length time.Duration) (measure.Sample, error) {
			return load.Closed(ctx, load.Target{
				Addr: addrs[0], Also: addrs[1:], Connections: connections, New: worker,
			}, length)
		}
	}
}
