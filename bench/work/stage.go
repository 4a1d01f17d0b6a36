package work

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"oda/bench/load"
	"oda/bench/measure"
	"oda/bench/peers"
	"oda/bench/report"
)

// Names of the arms, as they stand in tables and plots.
const (
	bare       = "bare"
	onSQLite   = "oda on SQLite"
	onPostgres = "oda on PostgreSQL"
	rawSQLite  = "raw SQLite"
	pgbench    = "pgbench"
	pocketBase = "PocketBase"
	kinto      = "Kinto"
	rewriting  = "rewriting"
)

// endTimeout bounds what a stage takes to end everything it started, also
// after an interruption.
const endTimeout = 60 * time.Second

// stage is where one scenario plays. It has archives of its own, and what it
// starts ends with it, so that no scenario works on what another left.
type stage struct {
	plan     plan
	lab      *peers.Lab
	progress io.Writer
	name     string

	undo     []func(context.Context) error
	sections []report.Section
	section  *report.Section // the one being written
	failed   map[string]bool // arms of which operations failed
	budgets  []report.Budget
}

func newStage(p plan, lab *peers.Lab, progress io.Writer, name string) *stage {
	return &stage{plan: p, lab: lab, progress: progress, name: name, failed: map[string]bool{}}
}

// begin begins a section of the report.
func (s *stage) begin(id, title string) {
	s.sections = append(s.sections, report.Section{ID: id, Title: title})
	s.section = &s.sections[len(s.sections)-1]
}

// say writes a line of progress.
func (s *stage) say(format string, args ...any) {
	fmt.Fprintf(s.progress, format+"\n", args...)
}

// note adds a paragraph to the section.
func (s *stage) note(format string, args ...any) {
	s.section.Text = append(s.section.Text, fmt.Sprintf(format, args...))
}

// later does something when the stage ends, last things first.
func (s *stage) later(do func(context.Context) error) { s.undo = append(s.undo, do) }

// end undoes what the stage did. It has a time of its own, since the run may
// be over already.
func (s *stage) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	var errs []error
	for len(s.undo) > 0 {
		last := len(s.undo) - 1
		do := s.undo[last]
		s.undo = s.undo[:last]
		errs = append(errs, do(ctx))
	}
	return errors.Join(errs...)
}

// engine is oda on one of its databases.
type engine struct {
	arm    string // its name among the arms
	label  string // its name among the budgets
	db     string
	server *peers.Server
}

func (e *engine) addr() string { return e.server.Addr }

// engines starts oda on both engines, with empty archives.
func (s *stage) engines(ctx context.Context, name string) (sqlite, postgres *engine, err error) {
	if sqlite, err = s.sqlite(ctx, name); err != nil {
		return nil, nil, err
	}
	if postgres, err = s.postgres(ctx, name); err != nil {
		return nil, nil, err
	}
	return sqlite, postgres, nil
}

// sqlite starts oda on an empty embedded archive.
func (s *stage) sqlite(ctx context.Context, name string) (*engine, error) {
	e := &engine{arm: onSQLite, label: "SQLite", db: s.lab.SQLite(name)}
	s.later(func(context.Context) error { return removeSQLite(e.db) })
	return e, s.start(ctx, e)
}

// postgres starts oda on an empty database of the lab's cluster.
func (s *stage) postgres(ctx context.Context, name string) (*engine, error) {
	dsn, err := s.database(ctx, name)
	if err != nil {
		return nil, err
	}
	e := &engine{arm: onPostgres, label: "PostgreSQL", db: dsn}
	return e, s.start(ctx, e)
}

// database makes an empty database that goes with the stage.
func (s *stage) database(ctx context.Context, name string) (string, error) {
	cluster, err := s.lab.Postgres(ctx)
	if err != nil {
		return "", err
	}
	dsn, err := cluster.Database(ctx, strings.ReplaceAll(name, "-", "_"))
	if err != nil {
		return "", err
	}
	s.later(func(ctx context.Context) error { return dropDatabase(ctx, dsn) })
	return dsn, nil
}

// start starts one more oda on the database of an engine.
func (s *stage) start(ctx context.Context, e *engine) error {
	server, err := s.lab.Oda(ctx, e.db)
	if err != nil {
		return fmt.Errorf("starting %s: %w", e.arm, err)
	}
	e.server = server
	s.later(func(ctx context.Context) error { return e.stop(ctx) })
	return nil
}

// stop ends the oda of an engine, if it runs.
func (e *engine) stop(ctx context.Context) error {
	if e.server == nil {
		return nil
	}
	server := e.server
	e.server = nil
	if err := server.Stop(ctx); err != nil {
		return err
	}
	return os.Remove(server.Log) // a line for each of millions of requests
}

// bare starts the server that has no storage.
func (s *stage) bare(ctx context.Context) (*peers.Server, error) {
	server, err := s.lab.Bare(ctx)
	if err != nil {
		return nil, fmt.Errorf("starting the bare server: %w", err)
	}
	s.stopLater(server)
	return server, nil
}

// closed makes an arm that keeps connections to a server busy.
func closed(name, addr string, connections int, worker func(i int) load.Worker) measure.Arm {
	return measure.Arm{Name: name, Run: func(ctx context.Context, length time.Duration) (measure.Sample, error) {
		return load.Closed(ctx, load.Target{Addr: addr, Connections: connections, New: worker}, length)
	}}
}

// measure runs the arms in turn and keeps the raw series.
func (s *stage) measure(ctx context.Context, name string, p measure.Plan, arms []measure.Arm) (compared, error) {
	s.say("%s: %s", s.name, name)
	series, err := measure.Interleave(ctx, p, arms, s.progress)
	if err != nil {
		return compared{}, fmt.Errorf("%s: %w", name, err)
	}
	s.section.Series = append(s.section.Series, report.NamedSeries{Name: name, Series: series})
	s.warn(name, series)
	return compared{name: name, series: series}, nil
}

// warn says loudly that operations failed: their numbers are not to be
// trusted.
func (s *stage) warn(name string, all []measure.Series) {
	for _, series := range all {
		if failed := series.Failed(); failed > 0 {
			s.failed[series.Arm] = true
			s.note("**%d operations failed: %s, %s.** Its numbers below say little. The first failure: `%s`.",
				failed, series.Arm, name, strings.ReplaceAll(series.FirstFailure(), "`", "'"))
		}
	}
}
