package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oda"
	"oda/internal/app"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// textReader is a request that reads a text which is damaged.
type textReader struct {
	name         string
	method, path string
	body         string
	names        []string // what the problem names
}

// textReaders are all requests that serve a stored text. Whatever else comes to serve
// one has a line here.
var textReaders = []textReader{
	{"an entity", "GET", "/sbds/sbd-damaged", "", []string{"SBDefinition sbd-damaged", "Version 2"}},
	{"a record of a block", "GET", "/ebs/eb-damaged", "", []string{"ExecutionBlock eb-damaged", "version 1", "Record 2"}},
	{"a page of records", "GET", "/ebs/eb-damaged/request_responses", "", []string{"ExecutionBlock eb-damaged", "version 1", "Record 2"}},
	{"a page behind it", "GET", "/ebs/eb-damaged/request_responses?after=1&limit=1", "", []string{"Record 2"}},
	{"a version by its number", "GET", "/sbds/sbd-damaged/versions/2", "", []string{"SBDefinition sbd-damaged", "Version 2"}},
	{"an entity as of an instant", "GET", "/sbds/sbd-damaged?at=2100-01-01", "", []string{"SBDefinition sbd-damaged", "Version 2"}},
	{"a block as of an instant", "GET", "/ebs/eb-damaged?at=2100-01-01", "", []string{"ExecutionBlock eb-damaged", "version 1", "Record 2"}},
	{"the difference of two versions", "GET", "/sbds/sbd-damaged/diff", "", []string{"SBDefinition sbd-damaged", "Version 2"}},
	{"documents that a search finds", "GET", "/sbds/search?fields=document&sort=created", "", []string{"SBDefinition sbd-damaged", "Version 2"}},
	{"documents on which a condition is judged", "GET", "/sbds/search?where=/name%20=%20%22x%22", "", []string{"SBDefinition sbd-damaged", "Version 2"}},
	{"a night", "GET", "/night?date=" + time.Now().UTC().Add(-12*time.Hour).Format(time.DateOnly), "", []string{"is damaged", "Record "}},
	{"what a key created", "POST", "/prjs", `{"name": "to be damaged in a project"}`, []string{"Project ", "Version 1"}},
	{"the records that a version keeps", "PUT", "/ebs/eb-damaged?records=keep", `{"eb_id": "eb-damaged", "metadata": %s}`, []string{"ExecutionBlock eb-damaged", "Record 2"}},
}

func TestWhatIsDamagedIsNeverServed(t *testing.T) {
	t.Parallel()
	for engine, open := range map[string]func(*testing.T) (string, func(from, to string)){"sqlite": damagedFile, "postgres": damagedDatabase} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			database, damage := open(t)
			use := func(c *app.Config) { c.Database = database }
			a := env.Start(t, use)
			first := a.Must("PUT", "/sbds/sbd-damaged", `{"name": "whole"}`).Text()
			a.Must("PUT", "/sbds/sbd-damaged", strings.Replace(first, "whole", "to be damaged in a version", 1))
			a.Must("POST", "/prjs", `{"name": "to be damaged in a project"}`, "Idempotency-Key", "k")
			a.Must("PUT", "/ebs/eb-damaged", `{"request_responses": [{"request": "whole"}]}`)
			a.Must("POST", "/ebs/eb-damaged/request_response", `{"request": "to be damaged in a record"}`)
			a.Must("POST", "/ebs/eb-damaged/request_response", `{"request": "whole again"}`)
			a.Must("PUT", "/ebs/eb-long", `{"request_responses": [`+strings.Repeat(`{"request": "long", "response": {"result": "`+strings.Repeat("x", 1000)+`"}},`, 1000)+`{"request": "whole"}]}`)
			a.Must("POST", "/ebs/eb-long/request_response", `{"request": "to be damaged at the end"}`)
			a.Must("PUT", "/sbds/sbd-whole", `{"name": "whole"}`)
			metadata := metadataOf(t, a.Must("GET", "/ebs/eb-damaged", "").Text())
			must.Do(t, a.Stop())
			damage("to be damaged", "to be demaged")

			if _, err := export(t, database, oda.Scope{}); oda.CodeOf(err) != oda.DamagedText {
				t.Errorf("an export ends with %v", err)
			}
			a = env.Start(t, use)
			for _, r := range textReaders {
				body := r.body
				if strings.Contains(body, "%s") {
					body = fmt.Sprintf(body, metadata)
				}
				var headers []string
				if r.method == "POST" {
					headers = []string{"Idempotency-Key", "k"}
				}
				reply := a.Do(r.method, r.path, body, headers...)
				var problem struct{ Type, Detail string }
				if err := json.Unmarshal(reply.Body, &problem); err != nil || reply.Status != 500 || problem.Type != "urn:oda:problem:damaged" {
					t.Errorf("%s, which is damaged, is answered %d: %.300s", r.name, reply.Status, reply.Text())
					continue
				}
				for _, name := range r.names {
					if !strings.Contains(problem.Detail, name) {
						t.Errorf("%s: the problem does not name %s: %s", r.name, name, problem.Detail)
					}
				}
				line := a.Logged(reply.Header.Get("X-Request-Id"))
				if text, _ := line["error"].(string); line["level"] != "ERROR" || line["problem"] != "damaged" || !strings.Contains(text, r.names[0]) {
					t.Errorf("%s: the log says %v", r.name, line)
				}
			}
			if reply, err := a.Try("GET", "/ebs/eb-long", ""); err == nil {
				t.Errorf("a long block whose last record is damaged is answered %d with %d bytes", reply.Status, len(reply.Body))
			}
			a.Must("GET", "/sbds/sbd-whole", "")
			wantPassable(t, a, "/sbds/search?where=/name%20!=%20%22x%22", "sbd-whole")
			wantPassable(t, a, "/sbds/search?fields=document", "sbd-whole")
			wantPassable(t, a, "/sbds/search?fields=document&limit=2", "sbd-whole")
			// A new version needs nothing of the damaged one.
			if reply := a.Do("GET", "/ebs/eb-damaged/request_responses?after=2", ""); reply.Status != 200 || !strings.Contains(reply.Text(), "whole again") {
				t.Errorf("records behind the damaged one are answered %d: %s", reply.Status, reply.Text())
			}
			cut := false
			for _, line := range a.Log() {
				cut = cut || line["path"] == "/api/v1/ebs/eb-long" && line["level"] == "ERROR" && line["problem"] == "damaged"
			}
			if !cut {
				t.Error("the log says nothing of the answer that was cut off")
			}
		})
	}
}

func metadataOf(t *testing.T, document string) string {
	t.Helper()
	var d struct{ Metadata json.RawMessage }
	must.Do(t, json.Unmarshal([]byte(document), &d))
	return string(d.Metadata)
}

// damagedFile names an archive on the embedded engine, and changes bytes in its
// file.
func damagedFile(t *testing.T) (string, func(from, to string)) {
	path := filepath.Join(t.TempDir(), "archive.db")
	return "sqlite:" + path, func(from, to string) {
		t.Helper()
		content := must.Get(os.ReadFile(path))(t)
		if !bytes.Contains(content, []byte(from)) {
			t.Fatalf("%q is not in the file", from)
		}
		must.Do(t, os.WriteFile(path, bytes.ReplaceAll(content, []byte(from), []byte(to)), 0o640))
	}
}

// damagedDatabase does so on PostgreSQL.
func damagedDatabase(t *testing.T) (string, func(from, to string)) {
	dsn := env.Postgres(t)
	return dsn, func(from, to string) {
		t.Helper()
		conn := env.Connect(t, dsn)
		for _, table := range []string{"versions", "records"} {
			env.Exec(t, conn, fmt.Sprintf(`UPDATE %s SET text = convert_to(replace(convert_from(text, 'UTF8'), '%s', '%s'), 'UTF8')
				WHERE convert_from(text, 'UTF8') LIKE '%%%s%%'`, table, from, to, from))
		}
	}
}

// wantPassable demands that a search finds an entity, says once that another is
// damaged, and leads on behind it, wherever that one stands in the order.
func wantPassable(t *testing.T, a *env.Archive, search, want string) {
	t.Helper()
	for _, order := range []string{"id", "-id"} {
		found, damaged := false, 0
		for path, n := search+"&sort="+order, 0; path != ""; n++ {
			reply := a.Do("GET", path, "")
			if found = found || strings.Contains(reply.Text(), want); isDamaged(reply) {
				damaged++
			} else if reply.Status != 200 || n > 9 {
				t.Fatalf("GET %s is answered %d: %s", path, reply.Status, reply.Text())
			}
			next, _, _ := strings.Cut(strings.TrimPrefix(reply.Header.Get("Link"), "<"), ">")
			if path = next; path != "" {
				path = "/sbds/" + path
			}
		}
		if !found || damaged != 1 {
			t.Errorf("%s, by %s: %s is found: %t; %d answers say that an entity is damaged", search, order, want, found, damaged)
		}
	}
}
