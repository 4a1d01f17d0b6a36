package fault

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// childVariable makes this test binary the one that is killed.
const childVariable = "ODA_PGCLUSTER_CHILD"

func TestAKilledProcessLeavesNothing(t *testing.T) {
	if os.Getenv(childVariable) != "" {
		c := start(t, ClusterOptions{})
		fmt.Println("cluster", c.Addr(), c.SocketDir, c.PID())
		time.Sleep(Timeout)
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

// start makes a cluster that ends with the test.
func start(t *testing.T, options ClusterOptions) *Cluster {
	t.Helper()
	c, err := NewCluster(t.Context(), options)
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

// must ends the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// connect gives a connection that ends with the test.
func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Timeout)
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
	ctx, cancel := context.WithTimeout(t.Context(), Timeout)
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
	ctx, cancel := context.WithTimeout(t.Context(), Timeout)
	defer cancel()
	if _, err := conn.Exec(ctx, statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}
