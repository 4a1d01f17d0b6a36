package work

import (
	"context"
	"sync/atomic"
	"time"

	"oda/bench/load"
	"oda/bench/measure"
)

// several stores many entities in one request, all or none.
func several() scenario {
	return scenario{
		id: "several", title: "Storing several entities at once",
		takes: func(p plan) time.Duration { return estimate(3, p.usual) },
		run:   runSeveral,
	}
}

func runSeveral(ctx context.Context, s *stage) error {
	plain, err := s.bare(ctx)
	if err != nil {
		return err
	}
	sqlite, postgres, err := s.engines(ctx, s.name)
	if err != nil {
		return err
	}
	var number atomic.Int64
	storing := func(int) load.Worker { return newStorer(s.plan.several, s.plan.documentSize, &number) }
	c, err := s.measure(ctx, "PUT of several", s.plan.usual, []measure.Arm{
		closed(bare, plain.Addr, s.plan.fillers, storing),
		closed(sqlite.arm, sqlite.addr(), s.plan.fillers, storing),
		closed(postgres.arm, postgres.addr(), s.plan.fillers, storing),
	})
	if err != nil {
		return err
	}
	s.note("`PUT /` of %d new SBDefinitions of %d bytes each in one request, over %d connections. A request is %d entities.",
		s.plan.several, s.plan.documentSize, s.plan.fillers, s.plan.several)
	s.section.Tables = append(s.section.Tables, c.table("requests", bare))
	s.section.Plots = append(s.section.Plots, c.bars("several", "Requests that store several entities", "requests", bare))
	return nil
}
