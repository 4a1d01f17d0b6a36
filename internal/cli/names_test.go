package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"oda/internal/test/env"
	"oda/internal/test/must"
)

// Two processes on one file would destroy it, whatever names they use for it.
func TestOnlyOneProcessOpensAnArchiveUnderAnyName(t *testing.T) {
	held := func(p *env.Process) string { return fmt.Sprintf("another oda has it open (process %d)", p.PID()) }
	for name, test := range map[string]struct {
		other func(t *testing.T, file string) string // returns another name of the file
		says  func(p *env.Process) string
	}{
		"the same path": {func(_ *testing.T, file string) string { return file }, held},
		"a relative path": {func(t *testing.T, file string) string {
			wd := must.Get(os.Getwd())(t)
			path := must.Get(filepath.Rel(wd, file))(t)
			return path
		}, held},
		"a symbolic link to the file": {func(t *testing.T, file string) string {
			link := filepath.Join(t.TempDir(), "other.db")
			must.Do(t, os.Symlink(file, link))
			return link
		}, held},
		"a symbolic link to its folder": {func(t *testing.T, file string) string {
			link := filepath.Join(t.TempDir(), "folder")
			must.Do(t, os.Symlink(filepath.Dir(file), link))
			return filepath.Join(link, filepath.Base(file))
		}, held},
		"a hard link": {func(t *testing.T, file string) string {
			link := filepath.Join(filepath.Dir(file), "other.db")
			must.Do(t, os.Link(file, link))
			return link
		}, func(*env.Process) string { return "the file has 2 names (hard links)" }},
		"its folder mounted elsewhere": {func(t *testing.T, file string) string {
			folder := t.TempDir()
			mount(t, filepath.Dir(file), folder)
			return filepath.Join(folder, filepath.Base(file))
		}, held},
		"the file mounted elsewhere": {func(t *testing.T, file string) string {
			place := filepath.Join(t.TempDir(), "other.db")
			must.Do(t, os.WriteFile(place, nil, 0o600))
			mount(t, file, place)
			return place
		}, func(*env.Process) string {
			return "another oda has it open through another mount"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "archive.db")
			p := env.Oda(t, "serve", "--db=sqlite:"+file)
			other := test.other(t, file)
			if says := startFails(t, other); !strings.Contains(says, test.says(p)) {
				t.Errorf("the second process says %q, want %q", says, test.says(p))
			}
			for _, suffix := range []string{".lock", "-wal", "-shm"} {
				if _, err := os.Lstat(other + suffix); err == nil && filepath.Base(other) != filepath.Base(file) {
					t.Errorf("%s%s was left behind", filepath.Base(other), suffix)
				}
			}
			if status, body := env.Send(t, "PUT", p.URL+"/sbds/a", `{}`); status != 200 {
				t.Errorf("the first process answers %d: %s", status, body)
			}
		})
	}
}

// startFails starts an oda that cannot serve, and returns its output.
func startFails(t *testing.T, file string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, env.Program(t), "serve", "--listen=127.0.0.1:0", "--db=sqlite:"+file).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
		t.Fatalf("oda serve on %s ended with %v, want exit code 1:\n%s", file, err, out)
	}
	return string(out)
}

// mount makes a folder or file also appear in another place.
func mount(t *testing.T, from, to string) {
	t.Helper()
	if err := syscall.Mount(from, to, "", syscall.MS_BIND, ""); err != nil {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(to, 0); err != nil {
			t.Error(err)
		}
	})
}
