package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// compare measures one kind of work on oda and on its competitors.
type compare struct {
	connections int // 0 for the plan's number
	each        int // operations per request; 0 means 1
	work        work
	pocketBase  work
	pgbench     scripted
	raw         bool
	bareRow     bool     // also of a bare server that inserts what pgbench inserts
	token       bool     // also of an oda that demands a token
	odaOnly     bool     // there is no comparison with the bare server
	columns     []column // by default rates and latencies, the rates relative to all others
}

func (c compare) run(ctx context.Context, s *stage) error {
	c.connections, c.each = cmp.Or(c.connections, s.plan.busy), cmp.Or(c.each, 1)
	if c.columns == nil {
		c.columns = []column{over(rate), over(rate, bare), over(rate, pgbench), over(rate, pocketBase), over(p50), over(p99), over(p999)}
	}
	odas, err := s.startOdas(ctx)
	if err != nil {
		return err
	}
	var arms []arm
	add := func(wanted bool, start func() (arm, error)) {
		if wanted && err == nil {
			var one arm
			one, err = start()
			arms = append(arms, one)
		}
	}
	others := !s.alone()
	add(others && !c.odaOnly, func() (arm, error) { return c.served(ctx, c.work)(s.startBare(ctx, bare)) })
	for _, srv := range odas {
		add(true, func() (arm, error) { return c.served(ctx, c.work)(srv, nil) })
		add(others && c.token, func() (arm, error) { return c.guarded(ctx, s, srv.name) })
	}
	add(others && c.raw, func() (arm, error) { return s.rawArm(ctx, c.connections) })
	add(others && c.pgbench != nil, func() (arm, error) { return s.pgbenchArm(ctx, odas[1], c.pgbench, c.connections) })
	add(others && c.bareRow, func() (arm, error) { return c.served(ctx, c.work)(s.startBare(ctx, bareRow, odas[1].db)) })
	add(others && c.pocketBase != nil && s.plan.pocketBase, func() (arm, error) { return c.served(ctx, c.pocketBase)(s.startPocketBase(ctx)) })
	if err != nil {
		return err
	}
	return s.measure(ctx, table{Columns: c.columns}, arms)
}

// served returns what prepares a server that was just started, and makes an arm of it.
func (c compare) served(ctx context.Context, work work) func(*server, error) (arm, error) {
	return func(srv *server, err error) (arm, error) {
		if err != nil {
			return arm{}, err
		}
		all, err := work(ctx, srv, c.connections)
		if err != nil {
			return arm{}, fmt.Errorf("prepare %s: %w", srv.name, err)
		}
		return loadArm(srv, "", all, c.each), srv.tidy(ctx)
	}
}

// guarded returns the arm of another oda on an engine, which demands a token.
func (c compare) guarded(ctx context.Context, s *stage, engine string) (arm, error) {
	srv, err := s.startOda(ctx, s.odas[0], engine)
	if err != nil {
		return arm{}, err
	}
	all, err := c.work(ctx, srv, c.connections)
	if err != nil {
		return arm{}, err
	}
	token, err := srv.guard(ctx)
	for i := range all {
		all[i].token = token
	}
	return loadArm(srv, withToken, all, c.each), errors.Join(err, srv.tidy(ctx))
}

// loadArm keeps connections to a server busy. The detail distinguishes its
// arms.
func loadArm(srv *server, detail string, all []worker, each int) arm {
	name := srv.arm(detail)
	return arm{name: name, run: func(ctx context.Context, length time.Duration) (got sample, err error) {
		beside, ctx := errgroup.WithContext(ctx)
		if srv.stage.profiles != "" {
			beside.Go(func() error { return srv.profile(ctx, name, length) })
		}
		beside.Go(func() (err error) {
			got, err = send(ctx, srv.addr, all, length, 0)
			return err
		})
		if err := beside.Wait(); err != nil {
			return nil, err
		}
		got[rate] *= float64(each)
		return got, nil
	}}
}
