package fault_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"oda/internal/test/env"
	"oda/internal/test/fault"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m)) }

// childVariable turns this test binary into the process that is killed.
const childVariable = "ODA_CLUSTER_CHILD"

func TestAKilledProcessLeavesNothing(t *testing.T) {
	if os.Getenv(childVariable) != "" {
		c := start(t, fault.ClusterOptions{})
		fmt.Println("cluster", c.Addr(), c.SocketDir, c.PID())
		time.Sleep(fault.Timeout)
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

// awaitGone waits until nothing is left of a cluster.
func awaitGone(t *testing.T, addr, dir string, pid int) {
	t.Helper()
	var left string
	err := fault.Poll(t.Context(), 10*time.Second, "the end of a cluster", func() (bool, error) {
		left = ""
		if conn, err := net.Dial("tcp", addr); err == nil {
			left = "something listens on " + addr
			_ = conn.Close()
		}
		if fault.Alive(pid) {
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
func start(t *testing.T, options fault.ClusterOptions) *fault.Cluster {
	t.Helper()
	return env.NewCluster(t, options).Cluster
}

// must ends the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
