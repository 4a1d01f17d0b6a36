package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"oda/internal/pgcluster"
)

// lab holds what all scenarios of a run share: the programs, and a PostgreSQL.
type lab struct {
	plan     plan
	lock     *os.File // no other run works in the folder
	version  string   // of the sources
	dir      string   // takes everything that is built and stored
	profiles string   // folder for them; empty: there are none
	progress io.Writer
	odas     []program // the archive; with -against also the earlier one
	cluster  *pgcluster.Cluster
	pocket   string // the program of PocketBase, once it is built
}

// program is a build of the archive.
type program struct {
	path   string
	suffix string // of the names of its arms
}

// postgresSettings are what differs from a cluster that Debian made.
var postgresSettings = map[string]string{
	"shared_buffers":  "512MB",
	"max_wal_size":    "4GB",
	"min_wal_size":    "80MB", // the default, which throw-away clusters lower
	"max_connections": "200",
}

// newLab builds the archive from the sources around this module and, if against
// is not empty, from that revision too, and starts a PostgreSQL.
func newLab(ctx context.Context, o options) (*lab, error) {
	dir, err := filepath.Abs(o.work)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o755); err != nil {
		return nil, err
	}
	lock, err := os.Create(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, fmt.Errorf("another run uses %s", dir)
	}
	l := &lab{lock: lock, plan: o.plan, version: o.version, dir: dir, profiles: o.profiles, progress: o.progress}
	// A run that was killed leaves its archives.
	for _, left := range []string{"postgres", "archives"} {
		if err := os.RemoveAll(filepath.Join(dir, left)); err != nil {
			return nil, err
		}
	}
	l.say("building oda")
	var flags []string
	if l.profiles != "" {
		if err := os.MkdirAll(l.profiles, 0o755); err != nil {
			return nil, err
		}
		overlay, err := l.overlay()
		if err != nil {
			return nil, err
		}
		flags = append(flags, overlay)
	}
	path := filepath.Join(dir, "bin", "oda")
	if err := build(ctx, "..", "./cmd/oda", path, flags...); err != nil {
		return nil, err
	}
	l.odas = []program{{path: path}}
	if o.against != "" {
		path = o.against
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			if path, err = l.buildRevision(ctx, o.against); err != nil {
				return nil, err
			}
		}
		l.odas = append(l.odas, program{path, " at " + filepath.Base(o.against)})
	}
	l.say("starting PostgreSQL")
	l.cluster, err = pgcluster.New(ctx, pgcluster.Options{DataDir: filepath.Join(dir, "postgres"), Settings: postgresSettings})
	return l, err
}

func (l *lab) close() error {
	return errors.Join(l.cluster.Close(), os.RemoveAll(l.cluster.DataDir), os.RemoveAll(filepath.Join(l.dir, "archives")), l.lock.Close())
}

func (l *lab) say(format string, args ...any) { fmt.Fprintf(l.progress, format+"\n", args...) }

// build builds a program as a release is: static and stripped.
func build(ctx context.Context, source, program, out string, flags ...string) error {
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", out}
	_, err := run(ctx, source, "go", append(append(args, flags...), program)...)
	return err
}

// buildRevision builds the archive of an earlier revision, or takes the program
// that a run before has built.
func (l *lab) buildRevision(ctx context.Context, revision string) (string, error) {
	commit, err := run(ctx, "..", "git", "rev-parse", "--verify", "--end-of-options", revision+"^{commit}")
	if err != nil {
		return "", err
	}
	path := filepath.Join(l.dir, "bin", "oda-"+commit)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	l.say("building oda at %s", revision)
	source := filepath.Join(l.dir, "archives", "source")
	if err := os.MkdirAll(source, 0o755); err != nil {
		return "", err
	}
	if _, err := run(ctx, "..", "git", "archive", "-o", source+".tar", commit); err != nil {
		return "", err
	}
	if _, err := run(ctx, source, "tar", "-xf", source+".tar"); err != nil {
		return "", err
	}
	return path, build(ctx, source, "./cmd/oda", path)
}

// query runs statements in a database of the cluster and returns the only value
// of the last one.
func (l *lab) query(ctx context.Context, dsn string, statements ...string) (value float64, err error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, statement := range statements {
		rows, err := conn.Query(ctx, statement)
		if err != nil {
			return 0, err
		}
		for rows.Next() {
			if err := rows.Scan(&value); err != nil {
				return 0, err
			}
		}
		if err := rows.Err(); err != nil {
			return 0, fmt.Errorf("%s: %w", statement, err)
		}
	}
	return value, nil
}

// stage is where one scenario plays: on archives of its own, which end with it.
type stage struct {
	*lab
	section *section
	dir     string
	files   int            // to number them
	undo    []func() error // when the stage ends, the last first
}

// play runs a scenario, and ends what it started.
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
	*process        // nil: it does not run
	name     string // of an oda: onSQLite or onPostgres
	suffix   string // tells an earlier oda from the one of these sources
	db       string // of an oda, as in --db
	database string // of an oda on PostgreSQL
	stage    *stage
	ready    string // path that answers 200
	command  []string
}

// Names of arms.
const (
	bare       = "bare"
	onSQLite   = "oda on SQLite"
	onPostgres = "oda on PostgreSQL"
	rawSQLite  = "raw SQLite"
	pgbench    = "pgbench"
	pocketBase = "PocketBase"
)

// against says that an earlier program is measured too.
func (s *stage) against() bool { return len(s.odas) > 1 }

// alone says that nothing but oda is measured.
func (s *stage) alone() bool { return s.against() || s.profiles != "" }

// file names a file that no other server of the stage has.
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

// restart stops a server that runs and starts it again. It says how long the
// start took.
func (srv *server) restart(ctx context.Context) (time.Duration, error) {
	if err := srv.end(); err != nil {
		return 0, err
	}
	begin := time.Now()
	p, err := startProcess(ctx, srv.stage.file(".log"), srv.ready, srv.command[0], srv.command[1:]...)
	srv.process = p
	return time.Since(begin), err
}

// arm is the name of what is measured on a server.
func (srv *server) arm(detail string) string { return srv.name + detail + srv.suffix }

func (srv *server) end() error {
	p := srv.process
	if srv.process = nil; p == nil {
		return nil
	}
	return p.stop()
}

// drop removes the database of a server that has ended, if it has one.
func (srv *server) drop() error {
	if srv.database == "" {
		return nil
	}
	_, err := srv.stage.query(context.Background(), srv.stage.cluster.DSN("postgres"), "DROP DATABASE "+srv.database+" WITH (FORCE)")
	return err
}

// startBare starts a server that stores nothing: this program itself.
func (s *stage) startBare(ctx context.Context) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return s.start(ctx, &server{name: bare, ready: "/", command: []string{self, serveBare, "{addr}"}})
}

// startOdas starts every program of the archive on an empty archive of each
// engine.
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

// settle gives PostgreSQL what its autovacuum does within minutes anyway, and a
// checkpoint, so that neither falls into a measurement.
func (srv *server) settle(ctx context.Context) error {
	if srv.database == "" {
		return nil
	}
	_, err := srv.stage.query(ctx, srv.db, "VACUUM ANALYZE", "CHECKPOINT")
	return err
}
