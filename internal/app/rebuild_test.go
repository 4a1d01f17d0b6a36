package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"oda"
	"oda/internal/app"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// Whoever has nothing but an export and its description must be able to read and check it.
func TestTheDescribedProgramRebuildsVersions(t *testing.T) {
	t.Parallel()
	page := must.Get(os.ReadFile("../../docs/moving.md"))(t)
	match := regexp.MustCompile("(?s)```python\n(.*?)```").FindSubmatch(page)
	if match == nil {
		t.Fatal("docs/moving.md has no program")
	}
	database := emptyDatabase(t, "sqlite")
	a := env.Start(t, func(c *app.Config) { c.Database = database })
	stored := func(path, body string) { a.Must(http.MethodPut, path, body) }
	recorded := func(name, user string) {
		a.Must(http.MethodPatch, "/ebs/eb-1/request_response", fmt.Sprintf(`{"request":%q}`, name), "X-Forwarded-User", user)
	}
	metadata := func() string { return metadataOf(t, a.Must(http.MethodGet, "/ebs/eb-1", "").Text()) }
	stored("/ebs/eb-1", "{\n\"telescope\": \"ska_mid\"}")
	recorded("a", "ada")
	recorded("b", "eve")
	stored("/ebs/eb-1", `{"request_responses":[{"request":"b"},{"request":"c",`+"\n"+`"n":1},{"request":"a"}],"metadata":`+metadata()+`}`)
	recorded("d", "ada")
	stored("/ebs/eb-1", `{"request_responses":[],"metadata":`+metadata()+`}`)
	a.Must(http.MethodPost, "/ebs/eb-1/status", `{"status":"Observed","version":2}`)
	stored("/sbds/sbd-1", `{"name":"other"}`)
	want := make(map[string]any)
	paths := []string{"ebs eb-1 1", "ebs eb-1 2", "ebs eb-1 3", "sbds sbd-1 1"}
	for _, path := range paths {
		var kind, id, version string
		fmt.Sscan(path, &kind, &id, &version)
		want[path] = decoded(t, a.Do(http.MethodGet, "/"+kind+"/"+id+"/versions/"+version, "").Body)
	}
	must.Do(t, a.Stop())
	content := must.Get(export(t, database, oda.Scope{}))(t)
	decoder := must.Get(zstd.NewReader(nil))(t)
	defer decoder.Close()
	lines := must.Get(decoder.DecodeAll(content, nil))(t)
	for _, path := range paths {
		var kind, id, version string
		fmt.Sscan(path, &kind, &id, &version)
		cmd := exec.Command("python3", "-c", string(match[1]), kind, id, version)
		cmd.Stdin = bytes.NewReader(lines)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if diff := cmp.Diff(want[path], decoded(t, out)); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
	pipe := regexp.MustCompile(`(?m)^zstd -dc FILE \| (head .*sha256sum)$`).FindSubmatch(page)
	if pipe == nil {
		t.Fatal("docs/moving.md does not say how lines are summed up")
	}
	cmd := exec.Command("sh", "-c", string(pipe[1]))
	cmd.Stdin = bytes.NewReader(lines)
	sum := must.Get(cmd.Output())(t)
	if !bytes.Contains(lines, []byte(`"statuses":1,"sha256":"`+string(sum[:64])+`"`)) {
		t.Errorf("the lines sum up to %.64s, and the export ends with %s", sum, lines[bytes.LastIndex(lines, []byte(`{"manifest"`)):])
	}
}

func decoded(t *testing.T, text []byte) (value any) {
	t.Helper()
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return value
}
