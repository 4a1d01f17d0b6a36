package fault_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"oda/internal/test/env"
	"oda/internal/test/fault"
)

func TestCommittedDataSurvivesEveryEndOfACluster(t *testing.T) {
	t.Parallel()
	c := start(t, fault.ClusterOptions{})
	env.Exec(t, env.Connect(t, c.DSN("postgres")), "CREATE TABLE notes (note text)")
	for _, end := range []struct {
		name string
		by   func() error
	}{
		{"stopped fast", func() error { return c.Stop("fast") }},
		{"stopped immediately", func() error { return c.Stop("immediate") }},
		{"killed", c.Kill},
		{"ended by itself", func() error {
			err := syscall.Kill(c.PID(), syscall.SIGINT)
			return errors.Join(err, fault.Poll(t.Context(), fault.Timeout, "its end", func() (bool, error) { return !c.Running(), nil }))
		}},
	} {
		t.Run(end.name, func(t *testing.T) {
			conn := env.Connect(t, c.DSN("postgres"))
			before := env.Query[int](t, conn, "SELECT count(*) FROM notes")
			env.Exec(t, conn, "INSERT INTO notes VALUES ('x')")
			processes := fault.Children(c.PID())
			must(t, end.by())
			if c.Running() {
				t.Error("the cluster claims to be running")
			}
			if len(processes) == 0 {
				t.Error("the cluster had no processes")
			}
			for _, pid := range processes {
				if fault.Alive(pid) {
					t.Errorf("process %d of the cluster is alive", pid)
				}
			}
			if conn, err := net.Dial("tcp", c.Addr()); err == nil {
				_ = conn.Close()
				t.Error("something listens on the port of the cluster")
			}
			must(t, c.Start(t.Context()))
			if got := env.Query[int](t, env.Connect(t, c.DSN("postgres")), "SELECT count(*) FROM notes"); got != before+1 {
				t.Errorf("there are %d notes, want %d", got, before+1)
			}
		})
	}
}

func TestAClusterHasTheRequestedSettingsAndDirectory(t *testing.T) {
	t.Parallel()
	above, err := os.MkdirTemp("", "oda-place-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(above) })
	if err := os.Chmod(above, 0o755); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(above, "data")
	var c *fault.Cluster
	t.Run("while the test runs", func(t *testing.T) {
		c = start(t, fault.ClusterOptions{
			DataDir:  dir,
			Settings: map[string]string{"fsync": "off", "statement_timeout": "1234ms", "application_name": "it's"},
		})
		conn := env.Connect(t, c.DSN("postgres"))
		for name, want := range map[string]string{
			"fsync": "off", "statement_timeout": "1234ms", "application_name": "it's",
			"max_connections": "200", "data_directory": dir,
		} {
			if got := env.Query[string](t, conn, "SELECT current_setting($1)", name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		must(t, c.Stop("fast"))
		must(t, c.Start(t.Context()))
	})
	if t.Failed() {
		return
	}
	awaitGone(t, c.Addr(), filepath.Dir(c.SocketDir), c.PID())
	if _, err := os.Stat(filepath.Join(dir, "PG_VERSION")); err != nil {
		t.Errorf("the content of a given directory: %v", err)
	}
}

func TestASynchronousStandbyHasEveryCommitAndCanTakeOver(t *testing.T) {
	t.Parallel()
	primary := start(t, fault.ClusterOptions{})
	standby, err := primary.Standby(t.Context())
	must(t, err)
	t.Cleanup(func() { must(t, standby.Close()) })
	must(t, primary.SetSynchronous(t.Context(), standby.Name))
	on := env.Connect(t, primary.DSN("postgres"))
	env.Exec(t, on, "CREATE TABLE notes (note text)")

	must(t, standby.Kill())
	if err := insertWithin(t, on, 300*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a commit without the standby: got %v, want it to wait", err)
	}
	must(t, primary.SetSynchronous(t.Context(), ""))
	on = env.Connect(t, primary.DSN("postgres"))
	if err := insertWithin(t, on, fault.Timeout); err != nil {
		t.Errorf("a commit that need not wait for the standby: %v", err)
	}
	must(t, standby.Start(t.Context()))
	must(t, primary.SetSynchronous(t.Context(), standby.Name))
	if err := insertWithin(t, on, fault.Timeout); err != nil {
		t.Errorf("a commit with the standby back: %v", err)
	}
	want := env.Query[int](t, on, "SELECT count(*) FROM notes")

	must(t, primary.Kill())
	must(t, standby.Promote(t.Context()))
	on = env.Connect(t, standby.DSN("postgres")+"&target_session_attrs=read-write")
	if got := env.Query[int](t, on, "SELECT count(*) FROM notes"); got != want {
		t.Errorf("after the failover there are %d notes, want %d", got, want)
	}
	if err := insertWithin(t, on, fault.Timeout); err != nil {
		t.Errorf("a commit on the new primary: %v", err)
	}
}

func insertWithin(t *testing.T, conn *pgx.Conn, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	_, err := conn.Exec(ctx, "INSERT INTO notes VALUES ('x')")
	return err
}

func TestWithoutPostgreSQLTheErrorSaysHowToInstallIt(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := fault.Find(filepath.Join(t.TempDir(), "*"))
	if !errors.Is(err, fault.ErrMissing) || !strings.Contains(err.Error(), "make setup") {
		t.Errorf("got %v, want a command to run", err)
	}
}
