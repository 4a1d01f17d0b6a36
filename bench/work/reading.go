package work

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"oda/bench/load"
	"oda/bench/measure"
	"oda/bench/peers"
)

// reading reads a few entities again and again.
func reading() scenario {
	return scenario{
		id: "reading", title: "Reading an entity",
		takes: func(p plan) time.Duration { return estimate(7, p.budgeted) },
		run:   runReading,
	}
}

// Budgets of reading.
const (
	readBare       = 0.60
	readPocketBase = 7
	readPgbench    = 0.35
)

func runReading(ctx context.Context, s *stage) error {
	s.note("`GET` by identifier of %d entities of %d bytes, any of them, over %d connections.", s.plan.hot, s.plan.documentSize, s.plan.busy)
	s.peersNote()
	plain, err := s.bare(ctx)
	if err != nil {
		return err
	}
	sqlite, postgres, err := s.engines(ctx, s.name)
	if err != nil {
		return err
	}
	for _, e := range []*engine{sqlite, postgres} {
		if err := s.fill(ctx, e.addr(), "sbd-hot", 0, s.plan.hot, s.plan.documentSize); err != nil {
			return err
		}
	}
	requests := hotReads(s.plan.hot)
	readers := func(first string) func(i int) load.Worker {
		return func(i int) load.Worker {
			return newFixed(i, requests, expected{status: http.StatusOK, first: first})
		}
	}
	arms := []measure.Arm{
		closed(bare, plain.Addr, s.plan.busy, readers("sbd_id")),
		closed(sqlite.arm, sqlite.addr(), s.plan.busy, readers("sbd-hot")),
		closed(postgres.arm, postgres.addr(), s.plan.busy, readers("sbd-hot")),
	}
	raw, err := s.rawSQLite(ctx)
	if err != nil {
		return err
	}
	arms = append(arms, measure.Arm{Name: rawSQLite, Run: raw.Get})
	reads, err := s.pgbenchArm(ctx, postgres.db, peers.GetScript("sbd-hot", s.plan.hot), s.plan.busy)
	if err != nil {
		return err
	}
	arms = append(arms, reads)
	pocket, err := s.pocketBase(ctx)
	if err != nil {
		return err
	}
	arms = append(arms, s.hotArm(pocketBase, pocket, alone(peers.PocketBase{}.Get), "sbd-hot")...)
	python, err := s.kinto(ctx)
	if err != nil {
		return err
	}
	arms = append(arms, s.hotArm(kinto, python, alone(peers.Kinto{}.Get), "sbd-hot")...)

	c, err := s.measure(ctx, fmt.Sprintf("GET one entity, %d bytes", s.plan.documentSize), s.plan.budgeted, arms)
	if err != nil {
		return err
	}
	s.section.Tables = append(s.section.Tables, c.table("requests", bare, pgbench, pocketBase))
	plot := c.bars("reading", "Reading an entity", "requests", bare)
	plot.Headline = true
	s.section.Plots = append(s.section.Plots, plot)
	const work = "GET one entity, 5 KB"
	s.atLeast(work, sqlite.label, "of bare", readBare, c.ratio(onSQLite, bare))
	s.atLeast(work, sqlite.label, "× PocketBase", readPocketBase, c.ratio(onSQLite, pocketBase))
	s.atLeast(work, postgres.label, "of pgbench", readPgbench, c.ratio(onPostgres, pgbench))
	return nil
}

// peersNote says what the arms are and how they are set.
func (s *stage) peersNote() {
	s.note("*Bare* is net/http without storage. *Raw SQLite* runs oda's own statements straight from Go, without HTTP. *pgbench* runs oda's statements " +
		"(for recording, the insertion of the row alone) from one C program over as many connections. PostgreSQL: " + peers.PostgresSettings + ".")
	if s.plan.others {
		s.note("PocketBase: " + peers.PocketBaseSettings + ". Kinto: " + peers.KintoSettings + ".")
	}
}

// uniform reads any entity of the large archives.
func (s *stage) uniform(ctx context.Context, plain *peers.Server, archives []*large) error {
	entities := archives[0].entities
	readers := func(first string) func(i int) load.Worker {
		return func(i int) load.Worker { return newReader(i, "sbd-big", entities, first) }
	}
	arms := []measure.Arm{closed(bare, plain.Addr, s.plan.busy, readers("sbd_id"))}
	for _, a := range archives {
		arms = append(arms, closed(a.arm, a.addr(), s.plan.busy, readers("sbd-big")))
	}
	reads, err := s.pgbenchArm(ctx, archives[1].db, peers.GetScript("sbd-big", entities), s.plan.busy)
	if err != nil {
		return err
	}
	c, err := s.measure(ctx, fmt.Sprintf("GET of any of %s entities", thousands(entities)), s.plan.usual, append(arms, reads))
	if err != nil {
		return err
	}
	s.section.Tables = append(s.section.Tables, c.table("requests", bare, pgbench))
	return nil
}
