package recorder_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"oda/internal/test/env"
	"oda/internal/test/must"
)

// The program in docs/client.md can be built in another module, in each of the
// ways described there, and prints the output shown there.
func TestTheDocumentedProgramRunsInAnotherModule(t *testing.T) {
	t.Parallel()
	source := must.Get(filepath.Abs("../.."))(t)
	page := must.Get(os.ReadFile(filepath.Join(source, "docs", "client.md")))(t)
	_, section, _ := strings.Cut(string(page), "\n## From another module\n")
	parts := strings.Split(section, "```")
	if len(parts) != 11 {
		t.Fatalf("the section has %d pieces of code, want 5", len(parts)/2)
	}
	replace, workspace, program, run, want := parts[1], parts[3], parts[5], parts[7], strings.TrimSpace(parts[9])
	run = strings.ReplaceAll(run, "http://127.0.0.1:8080", env.Start(t).Origin())
	for name, setup := range map[string]string{"replace": replace, "workspace": workspace} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			must.Do(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(strings.TrimPrefix(program, "go\n")), 0o600))
			cmd := exec.CommandContext(patient(t), "sh", "-ec", strings.TrimPrefix(setup, "sh\n")+strings.TrimPrefix(run, "sh\n"))
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "ODA_SOURCE="+source)
			var complaints strings.Builder
			cmd.Stderr = &complaints
			out, err := cmd.Output()
			if got := strings.TrimSpace(string(out)); err != nil || got != want {
				t.Errorf("%v; it printed\n%s\nwant\n%s\n%s", err, got, want, complaints.String())
			}
		})
	}
}
