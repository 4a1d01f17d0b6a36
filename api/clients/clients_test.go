// Package clients proves that clients can be generated from the API
// description: each folder has a pinned generator, and a program that uses the
// generated client as a user would, without flags or casts. All make the same
// round trip: read, change, store again; meet a conflict; record; list; store
// several.
package clients

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oda/internal/test/env"
)

// step is a command in the folder of a client.
type step []string

const (
	description = "../../openapi.yaml"

	// For one step, on a busy machine.
	patience      = 3 * time.Minute
	proofPatience = 30 * time.Minute
)

func TestGeneratedClientsMakeTheRoundTrip(t *testing.T) {
	for folder, steps := range map[string][]step{
		"typescript": {
			{"node_modules/.bin/openapi-typescript", description, "--output", "out/archive.d.ts"},
			{"node_modules/.bin/tsc"},
			{"node", "out/roundtrip.js"},
		},
		"python": {
			{".venv/bin/openapi-python-client", "generate", "--path", description, "--output-path", "out", "--overwrite"},
			{".venv/bin/python", "-m", "compileall", "-q", "out"},
			{".venv/bin/python", "roundtrip.py"},
		},
		"go": {
			{"go", "tool", "oapi-codegen", "--config", "oapi-codegen.yaml", description},
			{"go", "run", "."},
		},
	} {
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			watch(t, folder)
			a := env.Start(t)
			for _, s := range steps {
				run(t, folder, s, "ODA_URL="+a.URL())
			}
		})
	}
}

// watch opens the files of a client, so that "go test" repeats the test when
// one of them changes: it does not see what the steps read.
func watch(t *testing.T, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the client has no files: %v", err)
	}
	for _, file := range files {
		if _, err := os.Stat(file); err != nil {
			t.Fatal(err)
		}
	}
}

// run runs a step, which may need what "make setup" installs.
func run(t *testing.T, folder string, s step, env ...string) {
	t.Helper()
	program := s[0]
	if strings.Contains(program, "/") {
		var err error
		if program, err = filepath.Abs(filepath.Join(folder, program)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := exec.LookPath(program); err != nil {
		t.Fatalf("this test needs the packages of the generators: run \"make setup\" (%v)", err)
	}
	limit := patience
	if folder == "proof" {
		limit = proofPatience
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, s[1:]...)
	cmd.Dir = folder
	// The generator of the Python client formats it with a program in the same
	// folder.
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(program)+string(os.PathListSeparator)+os.Getenv("PATH"), "PYTHONPATH=out")
	cmd.Env = append(cmd.Env, env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(s, " "), err, out)
	}
}
