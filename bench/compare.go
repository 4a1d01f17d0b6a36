package main

import (
	"cmp"
	"context"
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
	pgbench     func(ctx context.Context, srv *server, connections int) (script, error)
	raw         bool
	bareRow     bool     // also of a bare server that inserts what pgbench inserts
	token       bool     // also of an oda that demands a token
	odaOnly     bool     // there is no comparison with the bare server
	columns     []column // by default rates and latencies, the rates relative to all others
}

func (c compare) run(ctx context.Context, s *stage) error {
	connections := cmp.Or(c.connections, s.plan.busy)
	columns := c.columns
	if columns == nil {
		columns = []column{over(rate), over(rate, bare), over(rate, pgbench), over(rate, pocketBase), over(p50), over(p99), over(p999)}
	}
	var arms []arm
	prepare := func(work work, srv *server) ([]worker, error) {
		all, err := work(ctx, srv, connections)
		if err != nil {
			return nil, fmt.Errorf("prepare %s: %w", srv.name, err)
		}
		return all, srv.settle(ctx)
	}
	add := func(work work, srv *server) error {
		all, err := prepare(work, srv)
		arms = append(arms, loadArm(srv, "", all, max(c.each, 1)))
		return err
	}
	if !c.odaOnly && !s.alone() {
		srv, err := s.startBare(ctx, bare)
		if err != nil {
			return err
		}
		if err := add(c.work, srv); err != nil {
			return err
		}
	}
	odas, err := s.startOdas(ctx)
	if err != nil {
		return err
	}
	for _, srv := range odas {
		if err := add(c.work, srv); err != nil {
			return err
		}
		if !c.token || s.alone() {
			continue
		}
		guarded, err := s.startOda(ctx, s.odas[0], srv.name)
		if err != nil {
			return err
		}
		all, err := prepare(c.work, guarded)
		if err != nil {
			return err
		}
		token, err := guarded.guard(ctx)
		if err != nil {
			return err
		}
		for i := range all {
			all[i].token = token
		}
		arms = append(arms, loadArm(guarded, withToken, all, max(c.each, 1)))
	}
	if c.raw && !s.alone() {
		raw, err := s.rawArm(ctx, connections)
		if err != nil {
			return err
		}
		arms = append(arms, raw)
	}
	if c.pgbench != nil && !s.alone() {
		postgres := odas[1]
		script, err := c.pgbench(ctx, postgres, connections)
		if err != nil {
			return err
		}
		arms = append(arms, s.pgbenchArm(postgres, script, connections))
		if c.bareRow {
			srv, err := s.startBare(ctx, bareRow, postgres.db)
			if err != nil {
				return err
			}
			if err := add(c.work, srv); err != nil {
				return err
			}
		}
	}
	if c.pocketBase != nil && s.plan.pocketBase && !s.alone() {
		srv, err := s.startPocketBase(ctx)
		if err != nil {
			return err
		}
		if err := add(c.pocketBase, srv); err != nil {
			return err
		}
	}
	_, err = s.measure(ctx, table{Columns: columns}, arms)
	return err
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
			got, err = load(ctx, srv.addr, all, length, 0)
			return err
		})
		if err := beside.Wait(); err != nil {
			return nil, err
		}
		got[rate] *= float64(each)
		return got, nil
	}}
}
