package testenv

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

func TestEachTestHasAnEmptyDatabaseOfItsOwn(t *testing.T) {
	var first string
	t.Run("one test", func(t *testing.T) {
		first = Postgres(t)
		do(t, connect(t, first), "CREATE TABLE notes (note text)")
	})
	t.Run("another test", func(t *testing.T) {
		conn := connect(t, Postgres(t))
		if n := query[int](t, conn, "SELECT count(*) FROM pg_stat_user_tables"); n != 0 {
			t.Errorf("the database has %d tables, want none", n)
		}
		for _, name := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
			if got := query[string](t, conn, "SELECT current_setting($1)", name); got != "on" {
				t.Errorf("%s is %s, want on: durability is tested", name, got)
			}
		}
		if got := query[string](t, conn, "SHOW server_encoding"); got != "UTF8" {
			t.Errorf("the encoding is %s, want UTF8", got)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), clusterTimeout)
	defer cancel()
	if conn, err := pgx.Connect(ctx, first); err == nil {
		_ = conn.Close(ctx)
		t.Error("the database of the first test is still there")
	}
}

func TestANamedServerIsUsedInsteadOfAnOwnCluster(t *testing.T) {
	server := NewCluster(t, ClusterOptions{})
	for form, dsn := range map[string]string{
		"a URL":               server.DSN("postgres"),
		"keywords and values": fmt.Sprintf("host=127.0.0.1 port=%d user=postgres dbname=postgres", server.Port),
	} {
		t.Run(form, func(t *testing.T) {
			t.Setenv(serverVariable, dsn)
			conn := connect(t, Postgres(t))
			if port := query[int](t, conn, "SELECT inet_server_port()"); port != server.Port {
				t.Errorf("the database is on port %d, want %d", port, server.Port)
			}
			if name := query[string](t, conn, "SELECT current_database()"); !strings.HasPrefix(name, "oda_test_") {
				t.Errorf("the database is %q, want one of the test's own", name)
			}
		})
	}
	if n := query[int](t, connect(t, server.DSN("postgres")), "SELECT count(*) FROM pg_database WHERE datname LIKE 'oda%'"); n != 0 {
		t.Errorf("%d databases of tests remain", n)
	}
}

func TestWithoutPostgreSQLOneIsToldHowToInstallIt(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := findPostgres(filepath.Join(t.TempDir(), "*"))
	if err == nil || !strings.Contains(err.Error(), "make setup") || !strings.Contains(err.Error(), serverVariable) {
		t.Errorf("got %v, want what to run and what to set", err)
	}
}

// childVariable makes this test binary the one that is killed.
const childVariable = "ODA_TESTENV_CHILD"

func TestAKilledTestBinaryLeavesNothing(t *testing.T) {
	if os.Getenv(childVariable) != "" {
		c := NewCluster(t, ClusterOptions{})
		fmt.Println("cluster", c.Addr(), c.SocketDir, c.process.Process.Pid)
		time.Sleep(clusterTimeout)
		return
	}
	t.Parallel()
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), childVariable+"=1")
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var addr, dir string
	var pid int
	for lines := bufio.NewScanner(out); pid == 0 && lines.Scan(); {
		_, _ = fmt.Sscanf(lines.Text(), "cluster %s %s %d", &addr, &dir, &pid) // other lines do not match
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	if pid == 0 {
		t.Fatal("the test binary did not start a cluster")
	}
	awaitGone(t, addr, filepath.Dir(dir), pid)
}

// awaitGone waits until nothing of a cluster is left.
func awaitGone(t *testing.T, addr, dir string, pid int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var left string
	err := poll(ctx, func() (bool, error) {
		left = ""
		if conn, err := net.Dial("tcp", addr); err == nil {
			left = "something listens on " + addr
			_ = conn.Close()
		}
		if alive(pid) {
			left = fmt.Sprint("the process ", pid)
		}
		if _, err := os.Stat(dir); err == nil {
			left = "the directory " + dir
		}
		return left == "", nil
	})
	if err != nil {
		t.Errorf("%s is left", left)
	}
}

// connect gives a connection that ends with the test.
func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), clusterTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(ctx) // a test may have cut it
	})
	return conn
}

// query gives the one value of a statement's answer.
func query[T any](t *testing.T, conn *pgx.Conn, statement string, args ...any) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), clusterTimeout)
	defer cancel()
	var value T
	if err := conn.QueryRow(ctx, statement, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return value
}

// do runs a statement that answers nothing.
func do(t *testing.T, conn *pgx.Conn, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), clusterTimeout)
	defer cancel()
	if _, err := conn.Exec(ctx, statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}
