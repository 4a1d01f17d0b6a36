// Package peers starts everything that is measured, each as a process of its
// own on 127.0.0.1: the archive itself, a bare server that stores nothing, the
// products that people would pick instead, a re-creation of the way of
// recording that the archive replaced, and a PostgreSQL for those that need
// one. What is not a server is here too: pgbench, and the product's SQLite
// statements driven straight from Go.
//
// A Lab owns a folder and all that was started in it. Whatever the measuring
// process dies of, its servers die with it. How a peer is asked for the same
// thing as the archive stands beside the peer: the methods of PocketBase, Kinto
// and Rewriting render requests.
package peers

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// ErrUnavailable says that a peer cannot be had on this machine, such as one
// that must be downloaded where there is no network. The others can be
// measured all the same.
var ErrUnavailable = errors.New("this peer cannot be had here")

// buildTimeout bounds the building or installing of one program, with the
// download of what it needs.
const buildTimeout = 10 * time.Minute

// Lab owns a folder, the programs that are built in it, and all processes that
// it started. Its methods may be called from several goroutines.
type Lab struct {
	// Dir holds the programs, the data and a log per process.
	Dir string

	progress io.Writer
	oda      string // the program
	profiles string // folder; empty: nothing is profiled

	mu         sync.Mutex // held also while something is built
	servers    []*Server
	started    map[string]int // by name, to number the logs
	postgres   *Postgres
	pocketBase string // the program, once it is built
	kinto      string // the environment, once it is installed
	versions   map[string]string
}

// NewLab makes a lab in a folder and builds the archive from the sources that
// this module stands in. The folder is made if it is missing.
func NewLab(ctx context.Context, dir string, progress io.Writer) (*Lab, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find the folder of the lab: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder of the lab: %w", err)
	}
	l := &Lab{
		Dir: dir, progress: progress, oda: filepath.Join(dir, "bin", "oda"),
		started: make(map[string]int), versions: make(map[string]string),
	}
	l.say("building oda")
	source, err := moduleDir(ctx, "oda")
	if err != nil {
		return nil, err
	}
	l.versions["oda"] = describe(ctx, source)
	if err := l.build(ctx, source, "./cmd/oda", l.oda, "-X main.version="+l.versions["oda"]); err != nil {
		return nil, fmt.Errorf("build oda: %w", err)
	}
	if info, err := buildinfo.ReadFile(l.oda); err == nil {
		l.versions["SQLite"] = dependency(info, "modernc.org/sqlite")
	}
	return l, nil
}

// Close ends everything that was started and removes the data of the
// PostgreSQL. Programs and logs stay in the folder, which is the caller's to
// remove.
func (l *Lab) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var errs []error
	for _, s := range slices.Backward(l.servers) {
		errs = append(errs, s.Stop(ctx))
	}
	l.servers = nil
	if l.postgres != nil {
		errs = append(errs, l.postgres.close())
		l.postgres = nil
	}
	return errors.Join(errs...)
}

// Versions names what was measured so far.
func (l *Lab) Versions() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.versions)
}

func (l *Lab) say(format string, args ...any) { fmt.Fprintf(l.progress, format+"\n", args...) }

// build builds a program of the module in a folder, as a release is: static and
// stripped.
func (l *Lab) build(ctx context.Context, source, program, out string, flags ...string) error {
	return l.run(ctx, source, []string{"CGO_ENABLED=0"}, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", strings.Join(append(flags, "-s -w"), " "), "-o", out, program)
}

// moduleDir finds the sources of a module of this repository.
func moduleDir(ctx context.Context, module string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("find the sources of %s (run this in the folder bench of the repository): %w", module, explained(err))
	}
	return strings.TrimSpace(string(out)), nil
}

// describe names the state of the sources, as the Makefile does.
func describe(ctx context.Context, source string) string {
	out, err := exec.CommandContext(ctx, "git", "-C", source, "describe", "--tags", "--always", "--dirty").Output()
	if err != nil {
		return "dev"
	}
	return strings.TrimSpace(string(out))
}

// explained adds what a program said before it failed.
func explained(err error) error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	return err
}

// run runs a program to its end. What it says is in the error if it fails.
func (l *Lab) run(ctx context.Context, dir string, env []string, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, buildTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.SysProcAttr = attributes()
	cmd.Cancel = func() error { return endGroup(cmd.Process.Pid) }
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), args[0], err, last(out))
	}
	return nil
}

// dependency is the version of a module in a program.
func dependency(info *buildinfo.BuildInfo, path string) string {
	for _, module := range info.Deps {
		if module.Path == path {
			return path + " " + module.Version
		}
	}
	return ""
}
