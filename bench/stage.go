package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// stage is where one scenario runs: on its own archives, which are removed at
// the end.
type stage struct {
	*lab
	section *section
	dir     string
	files   int            // number of files, to name them
	undo    []func() error // called at the end, last one first
}

// play runs a scenario, and stops what it started.
func (l *lab) play(ctx context.Context, sc scenario) (*section, error) {
	s := &stage{
		lab: l, dir: filepath.Join(l.dir, "archives", sc.name),
		section: &section{Name: sc.name, Title: sc.title, Text: sc.text, Budgets: sc.budgets, Measured: time.Now().UTC().Truncate(time.Second), Version: l.version},
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return nil, err
	}
	err := sc.run(ctx, s)
	for _, undo := range slices.Backward(s.undo) {
		err = errors.Join(err, undo())
	}
	if err = errors.Join(err, os.RemoveAll(s.dir)); err != nil {
		return nil, fmt.Errorf("%s: %w", sc.name, err)
	}
	if len(l.odas) > 1 {
		s.section.Budgets = s.section.against(l.odas[1].suffix)
	}
	return s.section, nil
}

// server is something that answers HTTP.
type server struct {
	*process        // nil if it is not running
	name     string // for an oda: onSQLite or onPostgres
	suffix   string // distinguishes an earlier oda
	db       string // for an oda: the value of --db
	database string // for an oda on PostgreSQL
	stage    *stage
	ready    string // path that answers 200 when ready
	command  []string
}

// Names of arms.
const (
	bare       = "bare"
	bareRow    = "bare, inserting the row alone"
	onSQLite   = "oda on SQLite"
	onPostgres = "oda on PostgreSQL"
	rawSQLite  = "raw SQLite"
	pgbench    = "pgbench"
	pocketBase = "PocketBase"
)

// against reports whether an earlier program is measured too.
func (s *stage) against() bool { return len(s.odas) > 1 }

// alone reports whether only oda is measured.
func (s *stage) alone() bool { return s.against() || s.profiles != "" }

// file returns the name of a new file.
func (s *stage) file(suffix string) string {
	s.files++
	return filepath.Join(s.dir, fmt.Sprint(s.files)+suffix)
}

// start starts a server that ends with the stage.
func (s *stage) start(ctx context.Context, srv *server) (*server, error) {
	srv.stage = s
	s.undo = append(s.undo, srv.drop, srv.end)
	_, err := srv.restart(ctx)
	return srv, err
}

// restart restarts a running server, and returns how long the start took.
func (srv *server) restart(ctx context.Context) (time.Duration, error) {
	if err := srv.end(); err != nil {
		return 0, err
	}
	begin := time.Now()
	p, err := startProcess(ctx, srv.stage.file(".log"), srv.ready, srv.command[0], srv.command[1:]...)
	srv.process = p
	return time.Since(begin), err
}

// withToken is the detail of an arm whose requests have a token.
const withToken = ", with a token"

// guard restarts an oda so that it demands a token for reading, and returns one.
func (srv *server) guard(ctx context.Context) (token string, err error) {
	file := srv.stage.file(".tokens")
	text, err := exec.CommandContext(ctx, srv.command[0], "token", "create", "--file", file, "--name", "bench", "--role", "reader").Output()
	if err != nil {
		return "", fmt.Errorf("make a token: %w", err)
	}
	srv.command = append(srv.command, "--tokens", file)
	_, err = srv.restart(ctx)
	return strings.TrimSpace(string(text)), err
}

// arm returns the name of what is measured on a server.
func (srv *server) arm(detail string) string { return srv.name + detail + srv.suffix }

func (srv *server) end() error {
	p := srv.process
	if srv.process = nil; p == nil {
		return nil
	}
	return p.stop()
}

// drop removes the database of a stopped server, if it has one.
func (srv *server) drop() error {
	if srv.database == "" {
		return nil
	}
	_, err := srv.stage.query(context.Background(), srv.stage.cluster.DSN("postgres"), "DROP DATABASE "+srv.database+" WITH (FORCE)")
	return err
}

// startBare starts a bare server: this program itself. It stores nothing, except
// that it inserts records into a database if one is named.
func (s *stage) startBare(ctx context.Context, name string, db ...string) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return s.start(ctx, &server{name: name, ready: "/", command: append([]string{self, serveBare, "{addr}"}, db...)})
}

// startOdas starts every oda on an empty archive of each engine.
func (s *stage) startOdas(ctx context.Context) (all []*server, err error) {
	for _, engine := range []string{onSQLite, onPostgres} {
		for _, program := range s.odas {
			srv, err := s.startOda(ctx, program, engine)
			if err != nil {
				return nil, err
			}
			all = append(all, srv)
		}
	}
	return all, nil
}

// arms starts every oda, and returns the arms that are prepared on each.
func (s *stage) arms(ctx context.Context, prepare func(context.Context, *server) ([]arm, error)) (all []arm, err error) {
	odas, err := s.startOdas(ctx)
	if err != nil {
		return nil, err
	}
	for _, srv := range odas {
		some, err := prepare(ctx, srv)
		if err == nil {
			err = srv.tidy(ctx)
		}
		if err != nil {
			return nil, fmt.Errorf("prepare %s: %w", srv.arm(""), err)
		}
		all = append(all, some...)
	}
	return all, nil
}

func (s *stage) startOda(ctx context.Context, program program, engine string) (*server, error) {
	srv := &server{name: engine, suffix: program.suffix, db: "sqlite:" + s.file(".db"), ready: "/readyz"}
	if engine == onPostgres {
		database := "bench_" + strings.TrimSuffix(filepath.Base(srv.db), ".db")
		if _, err := s.query(ctx, s.cluster.DSN("postgres"), "CREATE DATABASE "+database); err != nil {
			return nil, err
		}
		srv.db, srv.database = s.cluster.DSN(database), database
	}
	srv.command = []string{program.path, "serve", "--listen", "{addr}", "--db", srv.db}
	return s.start(ctx, srv)
}

// tidy lets PostgreSQL do now what its autovacuum would do within minutes,
// and a checkpoint, so that neither disturbs a measurement.
func (srv *server) tidy(ctx context.Context) error {
	if srv.database == "" {
		return nil
	}
	_, err := srv.stage.query(ctx, srv.db, "VACUUM ANALYZE", "CHECKPOINT")
	return err
}
