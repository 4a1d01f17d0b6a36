package app_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"oda/internal/test/env"
	"oda/internal/test/must"
)

// Budgets of the program itself.
const (
	binaryBudget = 40 << 20
	memoryBudget = 48 << 20
	startBudget  = time.Second
)

func TestTheProgramIsSmallStartsFastAndUsesLittleMemory(t *testing.T) {
	info := must.Get(os.Stat(env.Program(t)))(t)
	if info.Size() > binaryBudget {
		t.Errorf("the program has %d bytes, more than %d", info.Size(), binaryBudget)
	}
	begin := time.Now()
	p := env.Oda(t, "serve")
	if got := answered(t, "GET", "http://"+p.Host()+"/readyz", ""); got != "ready\n" {
		t.Errorf("readyz says %q", got)
	}
	took := time.Since(begin)
	if took > env.AtMost(startBudget) {
		t.Errorf("the archive was ready after %v, want at most %v", took, env.AtMost(startBudget))
	}
	memory := resident(t, p.PID())
	for end := time.Now().Add(10 * time.Second); memory > memoryBudget; memory = resident(t, p.PID()) { // it is idle once it has tidied up
		if time.Now().After(end) {
			t.Fatalf("the idle archive uses %d bytes of memory, want at most %d", memory, memoryBudget)
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Logf("program %.1f MiB, ready after %v, memory %.1f MiB", mebibytes(info.Size()), took, mebibytes(memory))
}

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }

// resident returns the resident memory of a process in bytes.
func resident(t *testing.T, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if os.IsNotExist(err) {
		t.Skip("this system does not show the memory of a process in /proc")
	}
	must.Do(t, err)
	line := regexp.MustCompile(`VmRSS:\s*(\d+) kB`).FindSubmatch(status)
	if line == nil {
		t.Fatalf("no VmRSS in:\n%s", status)
	}
	n := must.Get(strconv.ParseInt(string(line[1]), 10, 64))(t)
	return n << 10
}
