// Package clients proves that clients can be generated from the API
// description: each folder has a pinned generator, and a program that uses the
// generated client as a user would, without flags or casts. All make the same
// round trip: read, change, store again; meet a conflict; record; list; store
// several. They also read a real document and store it again, and nothing of it is
// lost.
package clients

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oda/internal/test/env"
	"oda/internal/test/proof"
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
			last := len(steps) - 1
			for _, s := range steps[:last] {
				run(t, folder, s)
			}
			copies(t, folder, steps[last])
		})
	}
}

// copies stores a real document, has a client read it and store it again as it is, and
// checks that nothing of it is lost, added or changed. The client finds the archive at
// ODA_URL, and the document under ODA_SBD.
func copies(t *testing.T, folder string, s step) {
	t.Helper()
	text, err := os.ReadFile("../../testdata/sbds/2024-mid-targets-and-scans.json")
	if err != nil {
		t.Fatal(err)
	}
	a := env.Start(t)
	id := document(t, text)["sbd_id"].(string)
	if r := a.Do("PUT", "/sbds/"+id, string(text)); r.Status != 200 {
		t.Fatalf("the document is answered %d %s", r.Status, r.Body)
	}
	before := a.Do("GET", "/sbds/"+id, "").Body
	run(t, folder, s, "ODA_URL="+a.URL(), "ODA_SBD="+id)
	after := a.Do("GET", "/sbds/"+id, "").Body
	if version := document(t, after)["metadata"].(map[string]any)["version"]; version != 2.0 {
		t.Fatalf("the document has the version %v after the client stored it", version)
	}
	if diff := cmp.Diff(withoutVersion(t, before), withoutVersion(t, after)); diff != "" {
		t.Errorf("the client changes what it stores (-read +stored):\n%s", diff)
	}
}

// withoutVersion returns a document without what every store of it changes, and
// without references that are null: openapi-generator's client for Python adds them,
// and they mean the same as none.
func withoutVersion(t *testing.T, text []byte) map[string]any {
	t.Helper()
	d := document(t, text)
	for _, name := range []string{"version", "last_modified_by", "last_modified_on"} {
		delete(d["metadata"].(map[string]any), name)
	}
	maps.DeleteFunc(d, func(name string, value any) bool { return strings.HasSuffix(name, "_ref") && value == nil })
	return d
}

func document(t *testing.T, text []byte) (members map[string]any) {
	t.Helper()
	if err := json.Unmarshal(text, &members); err != nil {
		t.Fatal(err)
	}
	return members
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
	if proof.Running() {
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
