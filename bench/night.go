package main

import (
	"context"
	"fmt"
	"math"
	"time"
)

// runNight sends a mix of requests as fast as possible, then at constant rates.
func runNight(ctx context.Context, s *stage) error {
	servers, err := s.startOdas(ctx)
	if err != nil {
		return err
	}
	if !s.alone() {
		srv, err := s.startBare(ctx, bare)
		if err != nil {
			return err
		}
		servers = append([]*server{srv}, servers...)
	}
	mixes := make([][]worker, len(servers))
	var arms []arm
	for i, srv := range servers {
		if mixes[i], err = observe(ctx, srv, s.plan.busy); err != nil {
			return err
		}
		arms = append(arms, loadArm(srv, "", mixes[i], 1))
	}
	columns := []column{over(rate), over(rate, bare), over(p50), over(p99), over(p999)}
	if err := s.measure(ctx, table{Title: "As fast as it goes", Columns: columns}, arms); err != nil {
		return err
	}
	slowest := math.Inf(1)
	for _, one := range s.section.Tables[0].Series {
		slowest = min(slowest, spreadOf(one.Rounds[rate]).median)
	}
	arms = nil
	for _, share := range s.plan.shares {
		perSecond := share * slowest
		for i, srv := range servers {
			arms = append(arms, arm{
				name: srv.arm(fmt.Sprintf(", %.0f %%", 100*share)), line: srv.arm(""), x: perSecond,
				run: func(ctx context.Context, length time.Duration) (sample, error) {
					return send(ctx, srv.addr, mixes[i], length, perSecond)
				},
			})
		}
	}
	return s.measure(ctx, table{
		Title: "At a constant rate", Columns: plain(p50, p99, p999, rate),
		Plot: &plotted{Title: "A mixed night at a constant rate", X: "requests per second", Y: p99},
	}, arms)
}
