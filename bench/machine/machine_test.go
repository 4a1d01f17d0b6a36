package machine

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestDescribeNamesTheMachine(t *testing.T) {
	d, err := Describe(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", d)
	for name, text := range map[string]string{
		"CPU": d.CPU, "Kernel": d.Kernel, "OS": d.OS, "Disk": d.Disk, "Go": d.Go,
	} {
		if text == "" {
			t.Errorf("%s is empty", name)
		}
	}
	if d.Cores != runtime.NumCPU() {
		t.Errorf("%d cores, the runtime sees %d", d.Cores, runtime.NumCPU())
	}
	if d.MemoryBytes < 64<<20 || d.MemoryBytes > 1<<46 {
		t.Errorf("memory of %d bytes is not likely", d.MemoryBytes)
	}
	if d.FsyncP50 <= 0 || d.FsyncP99 < d.FsyncP50 {
		t.Errorf("fsync p50 %v and p99 %v", d.FsyncP50, d.FsyncP99)
	}
}

func TestDescribeTellsNothingOfItsOwner(t *testing.T) {
	dir := t.TempDir()
	d, err := Describe(dir)
	if err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Join([]string{d.CPU, d.Kernel, d.OS, d.Disk, d.Go, d.Postgres}, "\n")
	for _, secret := range []string{host, dir, "/dev/", "/sys/"} {
		if len(secret) > 3 && strings.Contains(said, secret) {
			t.Errorf("the description says %q", secret)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("%s is left in the folder", left[0].Name())
	}
}

func TestDescribeRefusesAFolderThatIsNotThere(t *testing.T) {
	if _, err := Describe(t.TempDir() + "/missing"); err == nil {
		t.Error("no error")
	}
}

func TestMountIsTheInnermostAndLatest(t *testing.T) {
	const table = `27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 27 0:27 / /data rw shared:1 - tmpfs tmpfs rw
31 27 8:1 / /data rw - xfs /dev/sda1 rw
32 27 8:2 / /with\040space rw - btrfs /dev/sda2 rw
`
	for dir, want := range map[string]mount{
		"/":               {"ext4", "254:0"},
		"/home":           {"ext4", "254:0"},
		"/database":       {"ext4", "254:0"},
		"/data":           {"xfs", "8:1"},
		"/data/archive":   {"xfs", "8:1"},
		"/with space/dir": {"btrfs", "8:2"},
	} {
		if got, found := mountOf(table, dir); !found || got != want {
			t.Errorf("%s: %v, want %v", dir, got, want)
		}
	}
}

func TestTheNewestPostgresIsByNumber(t *testing.T) {
	for _, pair := range [][2]string{{"15.8", "9.6"}, {"16.1", "15.8"}, {"15.8", ""}} {
		if !newer(pair[0], pair[1]) || newer(pair[1], pair[0]) {
			t.Errorf("%q is not newer than %q", pair[0], pair[1])
		}
	}
}

func TestProcessCountsMemoryAndTime(t *testing.T) {
	before, err := Process(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	const size = 64 << 20
	held := make([]byte, size)
	for i := 0; i < size; i += page {
		held[i] = 1
	}
	for start := time.Now(); time.Since(start) < 100*time.Millisecond; {
		held[0]++
	}
	after, err := Process(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	runtime.KeepAlive(held)
	if grown := after.RSS - before.RSS; grown < size/2 {
		t.Errorf("memory grew by %d bytes while %d were taken", grown, size)
	}
	if after.PeakRSS < after.RSS {
		t.Errorf("the peak of %d is below the %d now", after.PeakRSS, after.RSS)
	}
	// Less than was worked: others may have had the processor meanwhile.
	if worked := after.CPU - before.CPU; worked < 2*clockTick {
		t.Errorf("100 ms of work count as %v", worked)
	}
}

func TestResetPeakCountsFromNow(t *testing.T) {
	child := exec.Command("sh", "-c", "x=$(head -c 20000000 /dev/zero | tr '\\0' x); x=; echo; read line")
	input, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	defer input.Close()
	if _, err := output.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	before, err := Process(child.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if before.PeakRSS < before.RSS+10<<20 {
		t.Skipf("this shell keeps its memory: %d now, peak %d", before.RSS, before.PeakRSS)
	}
	if err := ResetPeak(child.Process.Pid); err != nil {
		t.Fatal(err)
	}
	after, err := Process(child.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if after.PeakRSS >= before.PeakRSS {
		t.Errorf("the peak was %d and is %d", before.PeakRSS, after.PeakRSS)
	}
}

func TestProcessThatEndedIsAnError(t *testing.T) {
	child := exec.Command("true")
	if err := child.Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := Process(child.Process.Pid); err == nil {
		t.Error("no error from Process")
	}
	if err := ResetPeak(child.Process.Pid); err == nil {
		t.Error("no error from ResetPeak")
	}
}

func TestProgramNamesDoNotConfuseTheTime(t *testing.T) {
	stat := []byte("7 (a) b (c) S 1 7 7 0 -1 4194560 1 0 0 0 25 17 0 0 20 0 1 0 1 1 1\n")
	got, err := cpuTime(stat)
	if err != nil || got != 420*time.Millisecond {
		t.Errorf("%v, %v, want 420ms", got, err)
	}
}
