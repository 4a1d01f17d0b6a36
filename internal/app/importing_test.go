package app_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"oda"
	odaclient "oda/client"
	"oda/internal/app"
	"oda/internal/moving"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// The interface of an older archive lists identifiers, and has current versions only.
func TestAnOlderArchiveIsImportedThroughItsInterface(t *testing.T) {
	t.Parallel()
	older := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ska/oda/api/v5/sbds":
			fmt.Fprint(w, `["sbd-1"]`)
		case "/ska/oda/api/v5/sbds/sbd-1":
			fmt.Fprint(w, `{"sbd_id":"sbd-1","metadata":{"version":1,"created_by":"ada","created_on":"2022-10-01T10:00:00Z","last_modified_by":null,"last_modified_on":null}}`)
		case "/ska/oda/api/v5/prjs": // later releases list documents, one for each version
			fmt.Fprint(w, `[{"prj_id":"prj-1","n":2,"metadata":{"version":2,"created_by":"ada","created_on":"2022-10-01T10:00:00Z","last_modified_by":"eve","last_modified_on":"2022-10-02T10:00:00Z"}},
				{"prj_id":"prj-1","n":1,"metadata":{"version":1,"created_by":"ada","created_on":"2022-10-01T10:00:00Z","last_modified_by":"ada","last_modified_on":"2022-10-01T10:00:00Z"}}]`)
		case "/ska/oda/api/v5/sbis", "/ska/oda/api/v5/ebs":
			fmt.Fprint(w, `[]`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer older.Close()
	database := emptyDatabase(t, "sqlite")
	for range 2 {
		if aside := imported(t, database, older.URL+"/ska/oda/api/v5/"); len(aside) > 0 {
			t.Errorf("it sets aside:\n%s", strings.Join(aside, "\n"))
		}
	}
	a := env.Start(t, func(c *app.Config) { c.Database = database })
	if text := a.Do("GET", "/prjs/prj-1", "").Text(); !strings.Contains(text, `"n":2,"metadata":{"version":2,"created_by":"ada","created_on":"2022-10-01T10:00:00.000000Z","last_modified_by":"eve"`) {
		t.Errorf("the Project is %s", text)
	}
	if text := a.Do("GET", "/sbds/sbd-1", "").Text(); !strings.Contains(text, `"last_modified_by":"ada","last_modified_on":"2022-10-01T10:00:00.000000Z"`) {
		t.Errorf("the SBDefinition is %s", text)
	}
}

// After each write the time is later, and people send back what they have read. So a time
// is set aside that leaves no room for a later one, or that cannot be read again.
func TestATimeThatNothingCanFollowIsSetAside(t *testing.T) {
	t.Parallel()
	const lines = `{"sbd_id":"sbd-late","metadata":{"version":1,"created_on":"2022-10-01T10:00:00Z","last_modified_on":"9999-12-31T23:59:59.999999Z"}}
{"sbd_id":"sbd-early","metadata":{"version":1,"created_on":"0000-01-01T00:00:00+01:00"}}
{"sbd_id":"sbd-1","metadata":{"version":1,"created_by":"ada","created_on":"1970-01-01T00:00:00Z","last_modified_by":"ada","last_modified_on":"1970-01-01T00:00:00Z"}}
{"sbd_id":"sbd-2","metadata":{"version":1,"created_by":"ada","created_on":"2022-10-01T10:00:00Z","last_modified_by":"ada","last_modified_on":"9998-12-31T23:59:59.999999Z"}}`
	path := written(t, "documents.ndjson", lines)
	database := emptyDatabase(t, "sqlite")
	aside := imported(t, database, path)
	if len(aside) != 2 || !strings.Contains(aside[0], "sbd-late version 1: its times are not in the years from 0000 to 9998") || !strings.Contains(aside[1], "sbd-early version 1: ") {
		t.Errorf("it sets aside:\n%s", strings.Join(aside, "\n"))
	}
	a := env.Start(t, func(c *app.Config) { c.Database = database })
	for _, id := range []string{"sbd-1", "sbd-2"} {
		for range 3 {
			text := a.Do("GET", "/sbds/"+id, "").Text()
			a.Must("PUT", "/sbds/"+id, text)
		}
	}
}

// ska-db-oda, and whoever edits a file, adds records to a block without a new version. Such
// records are not in the archive, so the import must not say that everything is.
func TestRecordsThatAVersionHasGotSinceItWasImportedAreNoticed(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			database, path := emptyDatabase(t, engine), filepath.Join(t.TempDir(), "eb.ndjson")
			again := func(lists ...string) string {
				t.Helper()
				var lines string
				for i, list := range lists {
					lines += fmt.Sprintf(`{"eb_id":"eb-1","request_responses":[%s],"metadata":{"version":%d,"created_by":"ada","created_on":"2022-10-01T10:00:00Z","last_modified_by":"ada","last_modified_on":"2022-10-0%[2]dT10:00:00Z"}}`+"\n", list, i+1)
				}
				must.Do(t, os.WriteFile(path, []byte(lines), 0o600))
				return strings.Join(imported(t, database, path), "\n")
			}
			const a, b, c = `{"request":"a"}`, `{"request":"b"}`, `{"request":"c"}`
			for range 2 {
				if aside := again("", a+","+b, b+","+c+","+a); aside != "" {
					t.Errorf("it sets aside:\n%s", aside)
				}
			}
			for _, changed := range []string{a, a + "," + b + "," + c, a + "," + c, b + "," + a, ""} {
				want := path + ":2 eb-1 version 2: the archive has another version 2, with other records"
				if aside := again("", changed, b+","+c+","+a); aside != want {
					t.Errorf("with [%s] it sets aside %q, want %q", changed, aside, want)
				}
			}
		})
	}
}

// An import reads both through the same interface, which lists entities by their times.
func TestEntitiesFromBefore1970AreReadFromAnExportAndFromARunningArchive(t *testing.T) {
	t.Parallel()
	const document = `{"sbd_id":"sbd-1","metadata":{"version":1,"created_by":"ada","created_on":"%s","last_modified_by":"ada","last_modified_on":"%[1]s"}}`
	for _, created := range []string{"1969-07-20T20:17:40Z", "0001-01-01T00:00:00Z"} {
		path := written(t, "sbd.json", fmt.Sprintf(document, created))
		database := emptyDatabase(t, "sqlite")
		if aside := imported(t, database, path); len(aside) > 0 {
			t.Errorf("it sets aside:\n%s", strings.Join(aside, "\n"))
		}
		export := exported(t, database, oda.Scope{})
		a := env.Start(t, func(c *app.Config) { c.Database = database })
		for _, source := range []string{export, a.URL()} {
			out, err := command(t, "import", source, "--db="+emptyDatabase(t, "sqlite")).CombinedOutput()
			if err != nil || !strings.Contains(string(out), "1 read, 1 imported") {
				t.Errorf("created %s, from %s: %v: %s", created, source, err, out)
			}
		}
	}
}

// In ska-db-oda, who created an entity and who modified it last are independent, also in
// its first version, and either may be missing.
func TestAnotherUserMayHaveCreatedAFirstVersion(t *testing.T) {
	t.Parallel()
	const lines = `{"sbd_id":"sbd-1","metadata":{"version":1,"created_by":"DefaultUser","created_on":"2022-10-01T10:00:00Z","last_modified_by":"eve","last_modified_on":"2022-10-01T10:00:00Z"}}
{"sbd_id":"sbd-1","metadata":{"version":2,"created_by":"DefaultUser","created_on":"2022-10-01T10:00:00Z","last_modified_by":"ada","last_modified_on":"2022-10-02T10:00:00Z"}}
{"sbd_id":"sbd-2","metadata":{"version":1,"created_by":null,"created_on":"2022-10-01T10:00:00Z","last_modified_by":"eve","last_modified_on":"2022-10-01T10:00:00Z"}}`
	path := written(t, "documents.ndjson", lines)
	database := emptyDatabase(t, "sqlite")
	for range 2 { // the second time, it is there already
		aside := imported(t, database, path)
		for _, reason := range aside {
			const want = `imported, but with the time 2022-10-01T10:00:00.000001Z, since "eve" modified it after "DefaultUser" had created it; it says 2022-10-01T10:00:00.000000Z`
			if !strings.HasSuffix(reason, want) {
				t.Errorf("it says %s, want %s", reason, want)
			}
		}
		if len(aside) != 2 {
			t.Errorf("%d were set aside, want 2: %q", len(aside), aside)
		}
	}
	if out, err := command(t, "verify", "--db="+database).CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "2 entities, 3 versions") {
		t.Errorf("verify: %v\n%s", err, out)
	}
}

// The report says everything that was not kept as it was: of a version another creator or
// time; a user whose name could pass for another; and what follows a version that is set aside.
func TestTheReportSaysWhatWasNotKept(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lines string
		aside int
		want  []string // in this order
	}{
		"a creator and a time": {
			`{"sbd_id":"sbd-1","metadata":{"version":1,"created_by":"ada","created_on":"2022-10-01T10:00:00Z","last_modified_by":"ada","last_modified_on":"2022-10-01T10:00:00Z"}}
{"sbd_id":"sbd-1","metadata":{"version":2,"created_by":"eve","created_on":"2021-10-01T10:00:00Z","last_modified_by":"ada","last_modified_on":"2022-09-01T10:00:00Z"}}`,
			1,
			[]string{`imported, but as created by "ada"`, `it says "eve"`, "imported, but with the time 2022-10-01T10:00:00.000001Z", "it says 2022-09-01"},
		},
		"misleading names": {
			`{"sbd_id":"sbd-1","metadata":{"version":1,"created_by":"\u202enimda","created_on":"2022-10-01T10:00:00Z","last_modified_by":"\u202enimda","last_modified_on":"2022-10-01T10:00:00Z"}}
{"sbd_id":"sbd-2","metadata":{"version":1,"created_by":"ada","created_on":"2022-10-01T10:00:00Z","last_modified_by":"a\u2028b","last_modified_on":"2022-10-02T10:00:00Z"}}
{"sbd_id":"sbd-3","metadata":{"version":1,"created_by":"ada","created_on":"2022-10-01T10:00:00Z","last_modified_by":"ada","last_modified_on":"2022-10-01T10:00:00Z"}}`,
			2,
			[]string{"sbd-1", "sbd-2"},
		},
		"a block without its first version": {
			`{"eb_id":"eb-1","request_responses":[{"request":"one"}],"metadata":{"version":1,"created_by":"ada","created_on":"1922-10-01T10:00:00Z","last_modified_by":"ada","last_modified_on":"2022-10-01T10:00:00Z"}}
{"eb_id":"eb-1","request_responses":[{"request":"one"},{"request":"two"}],"metadata":{"version":2,"created_by":"ada","created_on":"1922-10-01T10:00:00Z","last_modified_by":"ada","last_modified_on":"2022-10-02T10:00:00Z"}}`,
			2,
			[]string{"which does not go with its first version", "version 1 is not stored, so version 2 cannot follow"},
		},
	} {
		path := written(t, "documents.ndjson", test.lines)
		for _, engine := range []string{"sqlite", "postgres"} {
			aside := imported(t, emptyDatabase(t, engine), path)
			rest := strings.Join(aside, "\n")
			for _, want := range test.want {
				var found bool
				if _, rest, found = strings.Cut(rest, want); !found || len(aside) != test.aside {
					t.Errorf("%s, %s: %d are set aside, and it does not say %q: %q", name, engine, len(aside), want, aside)
				}
			}
		}
	}
}

// Whoever keeps the report beside the documents imports them again with it there.
func TestTheReportOfAnEarlierImportIsNotImported(t *testing.T) {
	t.Parallel()
	folder, database := t.TempDir(), emptyDatabase(t, "sqlite")
	must.Do(t, os.WriteFile(filepath.Join(folder, "a.json"), []byte(`{"no":"identifier"}`), 0o600))
	report := filepath.Join(folder, "report.ndjson")
	for range 2 {
		out, _ := command(t, "import", folder, "--db="+database, "--report="+report).CombinedOutput() // it exits with 5
		if !strings.Contains(string(out), "Documents, records and statuses: 1 read, 0 imported, 0 already there, 1 set aside.") {
			t.Errorf("it says %s", out)
		}
		if text, err := os.ReadFile(report); err != nil || strings.Count(string(text), "\n") != 1 {
			t.Errorf("the report is %s (%v)", text, err)
		}
	}
}

// The archive that is read is far away, old and busy.
func TestAnArchiveThatAnswersBadlyIsNotTakenForAnEmptyOne(t *testing.T) {
	t.Parallel()
	const version = `{"sbd_id":"sbd-1","metadata":{"version":%d,"created_by":"ada","created_on":"2022-10-01T10:00:00Z","last_modified_by":"ada","last_modified_on":"2022-10-0%[1]dT10:00:00Z"}}`
	healthy := func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/v1/sbds":
			fmt.Fprint(w, `["sbd-1"]`)
		case "/api/v1/sbis", "/api/v1/ebs", "/api/v1/prjs":
			fmt.Fprint(w, `[]`)
		case "/api/v1/sbds/sbd-1/versions":
			fmt.Fprint(w, `{"versions":[{"version":2}]}`)
		case "/api/v1/sbds/sbd-1/versions/1":
			fmt.Fprintf(w, version, 1)
		case "/api/v1/sbds/sbd-1/versions/2", "/api/v1/sbds/sbd-1":
			fmt.Fprintf(w, version, 2)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}
	for name, test := range map[string]struct {
		at     string // matches the paths that are answered otherwise
		often  int    // how often each of them is; 0: always
		answer http.HandlerFunc
		want   string // in the error; empty if all is imported
	}{
		"it is not there":      {"", 0, env.Answering(404, "no such page"), "has none of"},
		"a page answers":       {"", 0, env.Answering(200, "<html>Sign in</html>"), "is this the address of an archive?"},
		"it is busy":           {"/versions$", 2, env.Answering(429, ""), ""},
		"it is always busy":    {"/versions$", 0, env.Answering(429, ""), "429"},
		"an answer is cut off": {"/versions/", 1, env.Answering(200, `{"sbd_id":"sb`, "Content-Length", "1000"), ""},
		"an answer is spoiled": {"/versions", 1, env.Answering(200, `{"versions":[{"ver`), ""},
		"a list is cut off":    {"/sbds$", 1, env.Answering(200, `["sbd-`), ""},
		"versions of one entity are missing": {"/sbds$|/sbd-2$", 0, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/api/v1/sbds" {
				fmt.Fprint(w, `["sbd-1","sbd-2"]`)
			} else {
				fmt.Fprint(w, strings.ReplaceAll(fmt.Sprintf(version, 7), "sbd-1", "sbd-2"))
			}
		}, "answered 404"},
		"it answers with another entity": {
			"/versions/2$", 0, env.Answering(200, strings.ReplaceAll(fmt.Sprintf(version, 2), "sbd-1", "sbd-2")),
			"its sbd_id is sbd-2",
		},
		"it answers with another version": {"/versions/2$", 0, env.Answering(200, fmt.Sprintf(version, 1)), "asked for version 2, and sent version 1"},
		"its statuses cannot be read":     {"/status/history$", 0, env.Answering(500, ""), "answered 500"},
		"its statuses are not a list":     {"/status/history$", 0, env.Answering(200, `{}`), "no list of statuses"},
		"its statuses are none":           {"/status/history$", 0, env.Answering(200, `{"statuses":[{}],"next":null}`), "something that is not a status"},
		"something follows a list":        {"/sbds$", 0, env.Answering(200, `["sbd-1"]["sbd-2"]`), "something follows the list"},
		"a list names an entity twice":    {"/sbds$", 0, env.Answering(200, `["sbd-1","sbd-1"]`), "names an entity twice"},
		"it is elsewhere": {"", 0, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Has("there") {
				healthy(w, r)
			} else {
				http.Redirect(w, r, r.URL.Path+"?there", http.StatusMovedPermanently)
			}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := regexp.MustCompile(test.at)
			var mu sync.Mutex
			asked := make(map[string]int)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				asked[r.URL.Path]++
				n := asked[r.URL.Path]
				mu.Unlock()
				if at.MatchString(r.URL.Path) && (test.often == 0 || n <= test.often) {
					test.answer(w, r)
				} else {
					healthy(w, r)
				}
			}))
			defer server.Close()
			database := emptyDatabase(t, "sqlite")
			var aside []string
			report := moving.NewReport(nil, func(s moving.SetAside) { aside = append(aside, s.Reason) })
			err := app.Preserve(t.Context(), database, []string{server.URL}, maxBody, report, quiet)
			said := strings.Join(aside, "\n")
			if err != nil {
				said += err.Error()
			}
			if (test.want == "") != (said == "") || !strings.Contains(said, test.want) {
				t.Errorf("it says %q, want %q", said, test.want)
			}
			if n := report.Read.Load(); test.want == "" && n != 2 {
				t.Errorf("%d versions were read, want 2", n)
			}
		})
	}
}

// An old archive may be too slow for its largest blocks: a worker is killed while it answers.
func TestAnEntityThatAlwaysArrivesCutOffIsSetAside(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/v1/ebs":
			fmt.Fprint(w, `["eb-1","eb-2"]`)
		case "/api/v1/sbds", "/api/v1/sbis", "/api/v1/prjs":
			fmt.Fprint(w, `[]`)
		case "/api/v1/ebs/eb-1":
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"eb_id":"eb-1","request_resp`)
		case "/api/v1/ebs/eb-2":
			fmt.Fprint(w, `{"eb_id":"eb-2","metadata":{"version":1,"created_by":"ada","created_on":"2022-10-01T10:00:00Z"}}`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	aside := imported(t, emptyDatabase(t, "sqlite"), server.URL)
	if len(aside) != 1 || !strings.HasSuffix(aside[0], "/ebs/eb-1 eb-1 version 0: the archive answered 200: something that was cut off: unexpected EOF") {
		t.Errorf("it sets aside %q", aside)
	}
}

// What another archive sent instead of a document is nowhere else, if that changes.
func TestTheReportHasWhatAnotherArchiveSent(t *testing.T) {
	t.Parallel()
	for _, sent := range []string{"{\"sbd_id\":\"sbd-1\",\"name\":\"\xff\"}", `{"sbd_id":"sbd-2"}`} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/api/v1/sbds":
				fmt.Fprint(w, `["sbd-1"]`)
			case "/api/v1/sbds/sbd-1":
				fmt.Fprint(w, sent)
			default:
				w.WriteHeader(http.StatusNotFound)
			}
		}))
		defer server.Close()
		var aside []moving.SetAside
		report := moving.NewReport(nil, func(s moving.SetAside) { aside = append(aside, s) })
		must.Do(t, app.Preserve(t.Context(), emptyDatabase(t, "sqlite"), []string{server.URL}, maxBody, report, quiet))
		if len(aside) != 1 || string(aside[0].Document) != sent {
			t.Errorf("%q was set aside as %q", sent, aside)
		}
	}
}

// Two imports of the same documents at once store them once, and both are content.
func TestAnImportIsContentWithWhatAnotherOneHasStoredMeanwhile(t *testing.T) {
	t.Parallel()
	const lines = `{"sbd_id":"sbd-1","metadata":{"version":1,"created_on":"2022-10-01T10:00:00Z"}}` + "\n" +
		`{"sbd_id":"sbd-1","name":"second","metadata":{"version":2,"created_on":"2022-10-01T10:00:00Z"}}`
	a := env.Start(t)
	archive := must.Get(url.Parse(a.URL()))(t)
	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: archive.Scheme, Host: archive.Host})
	first := make(chan string, 1)
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			select {
			case first <- r.URL.Path: // somebody else is faster
				answered(t, "PUT", a.URL()+"/sbds/sbd-1", strings.Split(lines, "\n")[0])
			default:
			}
		}
		forward.ServeHTTP(w, r)
	}))
	defer between.Close()
	path := written(t, "lines.ndjson", lines)
	into := func() (*odaclient.Client, error) { return odaclient.New(between.URL) }
	report := moving.NewReport(nil, func(s moving.SetAside) { t.Errorf("set aside: %s", s.Reason) })
	must.Do(t, moving.Store(t.Context(), []string{path}, maxBody, into, report, nil, nil))
	if text := a.Do("GET", "/sbds/sbd-1", "").Text(); !strings.Contains(text, `"name":"second"`) || !strings.Contains(text, `"version":2`) {
		t.Errorf("the archive has %s", text)
	}
}

// The token for the archive that is imported into is not shown to the one that is read.
func TestAnImportKeepsItsTokenToItself(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ variable, into, want string }{
		{"ODA_TOKEN=secret", "--url=http://127.0.0.1:1", ""},
		{"ODA_TOKEN=secret", "--db=sqlite:" + filepath.Join(t.TempDir(), "archive.db"), "Bearer secret"},
		{"ODA_TOKEN_FILE=" + written(t, "token", "secret\n"), "--db=sqlite:" + filepath.Join(t.TempDir(), "archive.db"), "Bearer secret"},
	} {
		var seen atomic.Value
		source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen.Store(r.Header.Get("Authorization"))
			fmt.Fprint(w, `[]`)
		}))
		defer source.Close()
		importing := command(t, "import", source.URL, test.into)
		importing.Env = append(os.Environ(), test.variable)
		if out, err := importing.CombinedOutput(); err != nil {
			t.Errorf("%s %s: %v: %s", test.variable, test.into, err, out)
		} else if got := seen.Load(); got != test.want {
			t.Errorf("%s %s: the source was sent %q, want %q", test.variable, test.into, got, test.want)
		}
	}
}

// A redirect may lead to another service of the same host, or out of TLS.
func TestTheTokenOfAnImportStaysWithTheArchiveThatItIsFor(t *testing.T) {
	t.Parallel()
	var sent atomic.Value
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent.Store(r.Header.Get("Authorization"))
		fmt.Fprint(w, `[]`)
	}))
	defer other.Close()
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.RequestURI(), http.StatusFound)
	}))
	defer source.Close()
	importing := command(t, "import", source.URL, "--db=sqlite:"+filepath.Join(t.TempDir(), "archive.db"))
	importing.Env = append(os.Environ(), "ODA_TOKEN=secret")
	if out, err := importing.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if got := sent.Load(); got != "" {
		t.Errorf("the other one was sent %q", got)
	}
}

// written returns the path of a file of that name with a text.
func written(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}
