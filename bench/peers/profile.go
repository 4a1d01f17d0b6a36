package peers

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"strings"

	"oda/internal/cli"
)

// serveOda is the command by which the measuring program runs the archive
// within itself, with a profile of its CPU time. The program of the archive has
// no such thing.
const serveOda = "serve-oda"

// Profile lets every oda that is started from now on write where its CPU time
// went into a folder.
func (l *Lab) Profile(dir string) error {
	dir, err := filepath.Abs(dir)
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return fmt.Errorf("make the folder of the profiles: %w", err)
	}
	l.profiles = dir
	return nil
}

// profiled is the command that starts oda with a profile. It is named after the
// database, which is named after the scenario.
func (l *Lab) profiled(db string, args []string) command {
	name := "sqlite-" + strings.TrimPrefix(strings.TrimSuffix(filepath.Base(sqlitePath(db)), ".db"), "archive-")
	if u, err := url.Parse(db); err == nil && strings.HasPrefix(u.Scheme, "postgres") {
		name = "postgres-" + strings.Trim(u.Path, "/")
	}
	path, err := os.Executable()
	if err != nil {
		path = os.Args[0]
	}
	return command{
		name: "oda", path: path, ready: "/readyz",
		args: append([]string{serveOda, filepath.Join(l.profiles, l.numbered(name)+".pprof")}, args...),
		env:  []string{"GOGC=400", "GOMEMLIMIT=512MiB"}, // as the program of the archive sets them
	}
}

// runOda runs the archive's own command and profiles it.
func runOda(file string, args []string) error {
	out, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("write a profile: %w", err)
	}
	if err := pprof.StartCPUProfile(out); err != nil {
		return fmt.Errorf("write a profile: %w", err)
	}
	code := cli.Run(args, os.Stdout, os.Stderr, "profiled")
	pprof.StopCPUProfile()
	if err := out.Close(); err != nil {
		return fmt.Errorf("write a profile: %w", err)
	}
	if code != 0 {
		return fmt.Errorf("oda ended with %d", code)
	}
	return nil
}

// ReadProfiles writes a text beside each profile of the folder: the functions
// in which most time went, with what they called.
func (l *Lab) ReadProfiles(ctx context.Context) error {
	files, err := filepath.Glob(filepath.Join(l.profiles, "*.pprof"))
	if err != nil {
		return fmt.Errorf("find the profiles: %w", err)
	}
	var errs []error
	for _, file := range files {
		text, err := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", "-cum", "-nodecount=60", file).Output()
		if err == nil {
			err = os.WriteFile(strings.TrimSuffix(file, ".pprof")+".txt", text, 0o644)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("read %s: %w", filepath.Base(file), explained(err)))
		}
	}
	return errors.Join(errs...)
}
