package peers_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"oda/bench/peers"
)

// labVariable makes this test binary the one that is killed: it names the
// folder of a lab.
const labVariable = "ODA_BENCH_LAB"

func TestServersEndWithTheProcessThatStartedThem(t *testing.T) {
	if dir := os.Getenv(labVariable); dir != "" {
		lab, err := peers.NewLab(t.Context(), dir, os.Stderr)
		if err != nil {
			t.Fatal(err)
		}
		server, err := lab.Bare(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("server", server.PID)
		time.Sleep(time.Minute)
		return
	}
	parent := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	parent.Env = append(os.Environ(), labVariable+"="+t.TempDir())
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	pid := 0
	for lines := bufio.NewScanner(out); pid == 0 && lines.Scan(); {
		_, _ = fmt.Sscanf(lines.Text(), "server %d", &pid) // other lines do not match
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	if pid == 0 {
		t.Fatal("no server was started")
	}
	for range 100 {
		// One in the state Z has ended, though nobody may have noted it.
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil || strings.Contains(string(status), "\nState:\tZ") {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("the server %d is still there", pid)
}
