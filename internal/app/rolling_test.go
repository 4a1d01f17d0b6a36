package app_test

import (
	"cmp"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"oda/internal/test/env"
	"oda/internal/test/load"
)

// A program that needs schema steps which exclude earlier ones names those that are
// connected, in one line, and ends. When they have gone, it starts.
func TestAnUpgradeNamesTheEarlierProgramsThatMustEnd(t *testing.T) {
	t.Parallel()
	database := env.Restore(t, env.Fixtures(t, "postgres")[0])
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("application_name", "oda") // as earlier programs call their sessions
	u.RawQuery = query.Encode()
	earlier := env.Connect(t, u.String())
	out, err := exec.Command(env.Program(t), "serve", "--listen", "127.0.0.1:0", "--log-level", "warn", "--db", database).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
		t.Fatalf("it ended with %v:\n%s", err, out)
	}
	if line, ok := strings.CutSuffix(string(out), "\n"); !ok || strings.Contains(line, "\n") || !strings.HasPrefix(line, "oda: cannot open the archive") ||
		!strings.Contains(line, "some are connected: an oda of an earlier release; stop them and start this one again") {
		t.Errorf("it said %q", out)
	}
	if err := earlier.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	watch := env.Connect(t, database)
	env.Await(t, "the session has ended", func() bool {
		return env.Query[int](t, watch, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'oda' AND datname = current_database()") == 0
	})
	if code := env.Oda(t, "serve", "--db", database).Stop(); code != 0 {
		t.Errorf("it ended with %d", code)
	}
	wantWhole(t, database)
}

// Two processes of an earlier program are replaced one after the other, under load.
func TestProofOfAnUpgradeFromAnEarlierProgram(t *testing.T) {
	env.ProofOnly(t)
	earlier := buildRevision(t, cmp.Or(os.Getenv("ODA_UPGRADE_FROM"), "HEAD~20"))
	dsn := env.Postgres(t)
	processes := []*env.Process{env.OdaOf(t, earlier, "serve", "--db", dsn), env.OdaOf(t, earlier, "serve", "--db", dsn)}
	l := env.NewLoad(t, load.Options{Patient: true}, processes[0].Host(), processes[1].Host())
	l.More()
	for i := range processes {
		leaving := processes[i]
		processes[i] = env.Oda(t, "serve", "--db", dsn)
		l.Use(processes[0].Host(), processes[1].Host())
		l.More()
		if code := leaving.Stop(); code != 0 {
			t.Errorf("the earlier program ended with %d:\n%s", code, leaving.Log())
		}
		l.More()
	}
	l.Whole(processes[0].Host())
	wantWhole(t, dsn)
}

// buildRevision builds the oda of a revision.
func buildRevision(t *testing.T, revision string) string {
	t.Helper()
	dir := t.TempDir()
	for _, command := range [][]string{
		{"git", "-C", "../..", "archive", "-o", filepath.Join(dir, "source.tar"), revision},
		{"tar", "-C", dir, "-xf", filepath.Join(dir, "source.tar")},
		{"go", "build", "-C", dir, "-o", filepath.Join(dir, "earlier"), "./cmd/oda"},
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
		}
	}
	return filepath.Join(dir, "earlier")
}
