package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"oda"
	"oda/client"
	"oda/internal/test/env"
	"oda/internal/test/fault"
	"oda/internal/test/must"
)

// "make demo" serves an archive with a week in it, and goes on recording. The next
// time it goes on with the same archive.
func TestMakeDemoShowsALivingArchive(t *testing.T) {
	t.Parallel()
	planned := must.Get(exec.Command("make", "-n", "-C", "../..", "--no-print-directory", "demo", "LISTEN=127.0.0.1:0").Output())(t)
	lines := strings.Split(strings.TrimSpace(string(planned)), "\n")
	args, ok := strings.CutPrefix(lines[len(lines)-1], "bin/oda ")
	if !ok {
		t.Fatalf("make demo does not end with oda:\n%s", planned)
	}
	dir, known := t.TempDir(), oda.Position(0)
	for _, run := range []string{"the first time", "again"} {
		var said env.Journal
		cmd := exec.Command(env.Program(t), append(strings.Fields(args), "--longest=10")...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &said, &said
		p := must.Get(fault.Start(cmd))(t)
		t.Cleanup(p.Kill)
		env.Await(t, "it records", func() bool {
			if !p.Running() {
				t.Fatalf("%s it ends: %s", run, &said)
			}
			return strings.Contains(said.String(), "recording into the ExecutionBlock")
		})
		archive := must.Get(client.New(regexp.MustCompile(`http://\S+`).FindString(said.String())))(t)
		past, err := archive.Changes(t.Context(), client.ChangesQuery{After: known})
		if err != nil || len(past.Changes) == 0 {
			t.Fatalf("%s nothing was stored: %v", run, err)
		}
		for one, err := range archive.Follow(t.Context(), client.Now, oda.ChangeFilter{}) {
			must.Do(t, err)
			if !one.Stored() {
				known = one.Position
				break // a call was recorded
			}
		}
		must.Do(t, p.Signal(os.Interrupt))
		<-p.Ended()
		if code := p.State().ExitCode(); code != exitOK {
			t.Errorf("%s it exits with %d: %s", run, code, &said)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "oda-demo", "archive.db")); err != nil {
		t.Error(err)
	}
}
