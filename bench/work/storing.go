package work

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"oda/bench/load"
	"oda/bench/measure"
	"oda/bench/peers"
)

// storing stores new entities, updates stored ones, and tries to update from
// an old reading.
func storing() scenario {
	return scenario{
		id: "storing", title: "Storing an entity",
		takes: func(p plan) time.Duration { return estimate(5+3, p.usual) + estimate(7, p.budgeted) },
		run:   runStoring,
	}
}

// Budgets of updating.
const (
	updateBare    = 0.15
	updatePgbench = 0.7
)

// store has the servers that entities are stored in. PocketBase and Kinto may
// be nil.
type store struct {
	*stage
	bare, pocket, kinto *peers.Server
	sqlite, postgres    *engine
	raw                 *peers.RawSQLite
}

func runStoring(ctx context.Context, s *stage) error {
	s.note("Entities of %d bytes over %d connections. All writes are durable before they are answered, except in PocketBase as it comes.",
		s.plan.documentSize, s.plan.busy)
	st := &store{stage: s}
	var err error
	if st.bare, err = s.bare(ctx); err != nil {
		return err
	}
	if st.sqlite, st.postgres, err = s.engines(ctx, s.name); err != nil {
		return err
	}
	if st.raw, err = s.rawSQLite(ctx); err != nil {
		return err
	}
	if st.pocket, err = s.pocketBase(ctx); err != nil {
		return err
	}
	if st.kinto, err = s.kinto(ctx); err != nil {
		return err
	}
	for _, e := range []*engine{st.sqlite, st.postgres} {
		if err := s.fill(ctx, e.addr(), "sbd-hot", 0, updated(s.plan.busy), s.plan.documentSize); err != nil {
			return err
		}
	}
	// pgbench writes one text over all of them, so it has entities of its own.
	if err := s.fill(ctx, st.postgres.addr(), "sbd-pgb", 0, updated(s.plan.busy), s.plan.documentSize); err != nil {
		return err
	}
	for _, do := range []func(context.Context) error{st.create, st.update, st.conflict} {
		if err := do(ctx); err != nil {
			return err
		}
	}
	return nil
}

// create stores entities whose identifiers are new.
func (st *store) create(ctx context.Context) error {
	size := st.plan.documentSize
	creating := func(arm, addr string, request []byte, status int) measure.Arm {
		number := new(atomic.Int64)
		return closed(arm, addr, st.plan.busy, func(int) load.Worker {
			return newCreator(append([]byte(nil), request...), "sbd-new", number, status)
		})
	}
	arms := []measure.Arm{
		creating(bare, st.bare.Addr, createRequest(size), http.StatusOK),
		creating(onSQLite, st.sqlite.addr(), createRequest(size), http.StatusOK),
		creating(onPostgres, st.postgres.addr(), createRequest(size), http.StatusOK),
	}
	document := peers.Document(size, blank(0))
	if st.pocket != nil {
		arms = append(arms, creating(pocketBase, st.pocket.Addr, peers.PocketBase{}.Create(blank(0), document), http.StatusOK))
	}
	if st.kinto != nil {
		arms = append(arms, creating(kinto, st.kinto.Addr, peers.Kinto{}.Create(blank(0), document), http.StatusCreated))
	}
	c, err := st.measure(ctx, "PUT a new entity", st.plan.usual, arms)
	if err != nil {
		return err
	}
	st.section.Tables = append(st.section.Tables, c.table("requests", bare, pocketBase))
	st.section.Plots = append(st.section.Plots, c.bars("storing-new", "Storing a new entity", "requests", bare))
	return nil
}

// update stores entities again, each from its last reading.
func (st *store) update(ctx context.Context) error {
	paths := hotPaths(updated(st.plan.busy))
	script, err := peers.UpdateScript(ctx, st.postgres.db, "sbd-pgb", st.plan.busy*perUpdater)
	if err != nil {
		return err
	}
	statements, err := st.pgbenchArm(ctx, st.postgres.db, script, st.plan.busy)
	if err != nil {
		return err
	}
	arms := []measure.Arm{
		{Name: bare, Run: updating([]string{st.bare.Addr}, st.plan.busy, paths)},
		{Name: onSQLite, Run: updating([]string{st.sqlite.addr()}, st.plan.busy, paths)},
		{Name: onPostgres, Run: updating([]string{st.postgres.addr()}, st.plan.busy, paths)},
		{Name: rawSQLite, Run: func(ctx context.Context, length time.Duration) (measure.Sample, error) {
			return st.raw.Update(ctx, st.plan.busy, length)
		}},
		statements,
	}
	arms = append(arms, st.hotArm(pocketBase, st.pocket, peers.PocketBase{}.Update, "sbd-hot")...)
	arms = append(arms, st.hotArm(kinto, st.kinto, peers.Kinto{}.Update, "sbd-hot")...)
	c, err := st.measure(ctx, "PUT an update", st.plan.budgeted, arms)
	if err != nil {
		return err
	}
	st.note("*Raw SQLite* commits %d updates together, as oda does when so many come at once.", st.plan.busy)
	st.note("An update compares the metadata with what is stored and keeps the older version. PocketBase and Kinto do neither: they write over.")
	st.section.Tables = append(st.section.Tables, c.table("requests", bare, pgbench, pocketBase))
	st.section.Plots = append(st.section.Plots, c.bars("storing-update", "Updating an entity", "requests", bare))
	const work = "update one entity, 5 KB"
	st.atLeast(work, st.sqlite.label, "of bare", updateBare, c.ratio(onSQLite, bare))
	st.atLeast(work, st.postgres.label, "of pgbench", updatePgbench, c.ratio(onPostgres, pgbench))
	return nil
}

// conflict sends updates that were made from an older version.
func (st *store) conflict(ctx context.Context) error {
	paths := hotPaths(updated(st.plan.busy))[:st.plan.hot]
	refused := func(arm, addr string, status int) (measure.Arm, error) {
		entities, err := read(ctx, addr, paths)
		if err != nil {
			return measure.Arm{}, err
		}
		requests := make([][]byte, len(entities))
		for i, e := range entities {
			requests[i] = load.Request(nil, "PUT", e.path, jsonBody(), e.body)
			// Once it is taken; from then on it is too old.
			if _, err := send(ctx, addr, requests[i]); err != nil {
				return measure.Arm{}, fmt.Errorf("updating %s: %w", e.path, err)
			}
		}
		return closed(arm, addr, st.plan.busy, func(i int) load.Worker {
			return newFixed(i, requests, expected{status: status})
		}), nil
	}
	var arms []measure.Arm
	for _, place := range []struct {
		arm, addr string
		status    int
	}{
		{bare, st.bare.Addr, http.StatusOK},
		{onSQLite, st.sqlite.addr(), http.StatusUnprocessableEntity},
		{onPostgres, st.postgres.addr(), http.StatusUnprocessableEntity},
	} {
		arm, err := refused(place.arm, place.addr, place.status)
		if err != nil {
			return err
		}
		arms = append(arms, arm)
	}
	c, err := st.measure(ctx, "PUT from an older version (422)", st.plan.usual, arms)
	if err != nil {
		return err
	}
	st.note("A conflict is a `PUT` of what was read before somebody else stored a newer version. oda refuses it with 422; the bare server takes it.")
	st.section.Tables = append(st.section.Tables, c.table("requests", bare))
	return nil
}
