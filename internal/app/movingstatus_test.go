package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oda"
	"oda/internal/app"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// toldArchive is an archive whose entities have statuses: one that came late, one twice, one
// of a version that is not the current one, and one with a class that its words do not have.
func toldArchive(t *testing.T) (database string, a *env.Archive) {
	t.Helper()
	database = emptyDatabase(t, "sqlite")
	a = env.Start(t, func(c *app.Config) { c.Database = database })
	said := func(path, body string, headers ...string) { a.Must("POST", path+"/status", body, headers...) }
	a.Must("PUT", "/sbds/sbd-1", `{"status":"Draft"}`)
	said("/sbds/sbd-1", `{"status":"Ready"}`, "X-Forwarded-User", "ada")
	a.Must("PUT", "/ebs/eb-1", `{"telescope":"ska_mid"}`)
	said("/ebs/eb-1", `{"status":"Executing","at":"2026-03-01T20:00:00Z"}`, "X-Forwarded-User", "ada", "Idempotency-Key", "begin")
	a.Must("PATCH", "/ebs/eb-1/request_response", `{"request":"scan"}`)
	a.Must("PUT", "/ebs/eb-1", `{"telescope":"ska_low","metadata":`+metadataOf(t, a.Must("GET", "/ebs/eb-1", "").Text())+`}`)
	said("/ebs/eb-1", `{"status":"Failed","reason":"it \"rained\"\nall night","at":"2026-03-01T21:00:00.5Z","version":1}`)
	said("/ebs/eb-1", `{"status":"Executing","at":"2026-03-01T20:00:00Z","version":1}`, "X-Forwarded-User", "eve", "Idempotency-Key", "again")
	said("/ebs/eb-1", `{"status":"Wolken","class":"stopped","at":"2026-03-01T21:00:00.5Z"}`)
	a.Must("PUT", "/prjs/prj-1", `{}`)
	return database, a
}

// toldOf are the entities of toldArchive.
var toldOf = []string{"/sbds/sbd-1", "/ebs/eb-1", "/prjs/prj-1"}

// statusesOf returns the statuses of these entities, newest first, without some members.
func statusesOf(t *testing.T, database string, without ...string) (all map[string]any) {
	t.Helper()
	a := env.Start(t, func(c *app.Config) { c.Database = database })
	all = make(map[string]any)
	for _, path := range toldOf {
		var page struct{ Statuses []map[string]any }
		must.Do(t, json.Unmarshal(a.Must("GET", path+"/status/history", "").Body, &page))
		for _, entry := range page.Statuses {
			for _, member := range without {
				delete(entry, member)
			}
		}
		all[path] = page.Statuses
	}
	must.Do(t, a.Stop())
	return all
}

func TestStatusesMoveWithAnExport(t *testing.T) {
	t.Parallel()
	source, a := toldArchive(t)
	must.Do(t, a.Stop())
	want := statusesOf(t, source)
	file := exported(t, source, oda.Scope{})
	for _, engine := range []string{"postgres", "sqlite"} {
		database := emptyDatabase(t, engine)
		for range 2 { // the same again changes nothing
			if aside := imported(t, database, file); len(aside) > 0 {
				t.Errorf("%s: it sets aside %s", engine, aside)
			}
		}
		if diff := cmp.Diff(want, statusesOf(t, database)); diff != "" {
			t.Errorf("%s: %s", engine, diff)
		}
		wantWhole(t, database)
		wantSame(t, file, exported(t, database, oda.Scope{}))
		// The keys have come along.
		a := env.Start(t, func(c *app.Config) { c.Database = database })
		again := a.Must("POST", "/ebs/eb-1/status", `{"status":"Executing","at":"2026-03-01T20:00:00Z"}`, "Idempotency-Key", "begin")
		if !strings.Contains(again.Text(), `"sequence":1,`) {
			t.Errorf("%s: said once more with its key, it is %s", engine, again.Text())
		}
		must.Do(t, a.Stop())
	}
}

func TestStatusesComeFromARunningArchiveAsTheyWere(t *testing.T) {
	t.Parallel()
	source, a := toldArchive(t)
	database := emptyDatabase(t, "sqlite")
	for range 2 {
		if aside := imported(t, database, a.URL()); len(aside) > 0 {
			t.Errorf("it sets aside %s", aside)
		}
	}
	// What came after an import comes with the next one.
	a.Must("POST", "/prjs/prj-1/status", `{"status":"Submitted"}`)
	imported(t, database, a.URL())
	must.Do(t, a.Stop())
	if diff := cmp.Diff(statusesOf(t, source), statusesOf(t, database)); diff != "" {
		t.Error(diff)
	}
	wantWhole(t, database)
}

// Without --preserve, whoever imports says them again, for the times for which they were said.
func TestStatusesAreSaidAgain(t *testing.T) {
	t.Parallel()
	source, a := toldArchive(t)
	file := filepath.Join(t.TempDir(), "export.oda.zst")
	succeeds(t, run(t, "export", "--url="+a.Origin(), "-o", file))
	sources := map[string]string{"an export": file, "a running archive": a.URL()}
	copied := make(map[string]map[string]any) // without users and times
	for name, from := range sources {
		database := emptyDatabase(t, "sqlite")
		args := []string{"import", from, "--db=" + database, "--quiet", "--user=eve"}
		for _, want := range []string{"9 read, 9 imported, 0 already there, 0 set aside", "9 read, 0 imported, 9 already there, 0 set aside"} {
			if o := run(t, args...); !strings.Contains(o.out, want) {
				t.Errorf("%s: it says %s%s, want %q", name, o.out, o.err, want)
			}
		}
		copied[name] = statusesOf(t, database, "by", "on")
		if text := fmt.Sprint(statusesOf(t, database)); strings.Count(text, "by:eve") != 5 {
			t.Errorf("%s: not all are by the one who imported them: %s", name, text)
		}
		wantWhole(t, database)
	}
	must.Do(t, a.Stop())
	want := statusesOf(t, source, "by", "on")
	for name, got := range copied {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// Two imports of the same at once say each status once.
func TestAStatusThatAnotherImportHasSaidMeanwhile(t *testing.T) {
	t.Parallel()
	_, source := toldArchive(t)
	a := env.Start(t)
	forward := a.Forward()
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost { // the other one is faster
			body := must.Get(io.ReadAll(r.Body))(t)
			a.Must("POST", strings.TrimPrefix(r.URL.Path, "/api/v1"), string(body), "Idempotency-Key", r.Header.Get("Idempotency-Key"))
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		forward.ServeHTTP(w, r)
	}))
	defer between.Close()
	if o := run(t, "import", source.URL(), "--url="+between.URL, "--quiet"); o.code != 0 {
		t.Errorf("it exits with %d, and says %s%s", o.code, o.out, o.err)
	}
	if text := a.Must("GET", "/ebs/eb-1/status/history", "").Text(); strings.Count(text, `"sequence":`) != 4 {
		t.Errorf("the block has %s", text)
	}
}

// A status is about something that was stored, so it does not come without that.
func TestAStatusOfWhatIsNotImportedIsSetAside(t *testing.T) {
	t.Parallel()
	source, a := toldArchive(t)
	must.Do(t, a.Stop())
	file := exported(t, source, oda.Scope{})
	database := emptyDatabase(t, "sqlite")
	b := env.Start(t, func(c *app.Config) { c.Database = database })
	b.Must("PUT", "/sbds/sbd-1", `{"name":"another one"}`)
	must.Do(t, b.Stop())
	o := run(t, "import", file, "--db="+database, "--quiet")
	for _, want := range []string{
		`export.oda.zst:2: sbd-1 version 1: the archive has another document under this identifier`,
		`export.oda.zst:3: sbd-1 status "Ready": version 1, which it is about, was not imported`,
	} {
		if !strings.Contains(o.err, want) {
			t.Errorf("it does not say %q: %s", want, o.err)
		}
	}
	if o.code != 5 || !strings.Contains(o.out, "9 read, 7 imported, 0 already there, 2 set aside") {
		t.Errorf("it exits with %d, and says %s", o.code, o.out)
	}
}
