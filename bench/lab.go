package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/jackc/pgx/v5"

	"oda/internal/test/fault"
)

// lab is what all scenarios of a run share: the programs, and a PostgreSQL.
type lab struct {
	settings
	lock    *os.File  // excludes other runs in the same folder
	dir     string    // folder for everything that is built and stored
	odas    []program // the archive and, with -against, the earlier one
	cluster *fault.Cluster
	pocket  string // PocketBase, once it is built
}

// program is a build of the archive.
type program struct {
	path   string
	suffix string // suffix of the names of its arms
}

// postgresSettings are the differences from a cluster of Debian.
var postgresSettings = map[string]string{
	"shared_buffers":  "512MB",
	"max_wal_size":    "4GB",
	"min_wal_size":    "80MB", // the default, which throw-away clusters reduce
	"max_connections": "200",
}

// newLab builds the archive from the sources around this module and, unless
// against is empty, also from that revision, and starts a PostgreSQL.
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
	l := &lab{settings: o.settings, lock: lock, dir: dir}
	// A run that was killed leaves its archives behind.
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
		if path, err = l.buildRevision(ctx, o.against); err != nil {
			return nil, err
		}
		l.odas = append(l.odas, program{path, " at " + o.against})
	}
	l.say("starting PostgreSQL")
	l.cluster, err = fault.NewCluster(ctx, fault.ClusterOptions{DataDir: filepath.Join(dir, "postgres"), Settings: postgresSettings})
	return l, err
}

func (l *lab) close() error {
	return errors.Join(l.cluster.Close(), os.RemoveAll(l.cluster.DataDir), os.RemoveAll(filepath.Join(l.dir, "archives")), l.lock.Close())
}

func (l *lab) say(format string, args ...any) { fmt.Fprintf(l.progress, format+"\n", args...) }

// build builds a program like a release: static and stripped.
func build(ctx context.Context, source, program, out string, flags ...string) error {
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", out}
	_, err := run(ctx, source, "go", append(append(args, flags...), program)...)
	return err
}

// buildRevision builds the archive of an earlier revision, or reuses the
// program of an earlier run.
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

// query runs statements in a database of the cluster and returns the single
// value of the last one.
func (l *lab) query(ctx context.Context, dsn string, statements ...string) (value float64, err error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, statement := range statements {
		rows, err := conn.Query(ctx, statement)
		if err == nil {
			_, err = pgx.ForEachRow(rows, []any{&value}, func() error { return nil })
		}
		if err != nil {
			return 0, fmt.Errorf("%s: %w", statement, err)
		}
	}
	return value, nil
}
