package client_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oda"
	asking "oda/calls"
	"oda/client"
	"oda/internal/app"
	"oda/internal/test/env"
	"oda/internal/test/must"
	"oda/search"
)

// start returns a client for a real archive. Every request is checked against
// the API description.
func start(t *testing.T, options ...client.Option) *client.Client {
	t.Helper()
	return connect(t, env.Start(t), options...)
}

func connect(t *testing.T, archive *env.Archive, options ...client.Option) *client.Client {
	t.Helper()
	c := must.Get(client.New(archive.URL(), append([]client.Option{client.WithHTTPClient(archive.Client())}, options...)...))(t)
	return c
}

func TestAnAddressIsUnderstoodAsPeopleWriteIt(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"127.0.0.1:8080":                      "http://127.0.0.1:8080/api/v1",
		"localhost:8080/":                     "http://localhost:8080/api/v1",
		"archive":                             "http://archive/api/v1",
		" http://archive:80 ":                 "http://archive:80/api/v1",
		"http://archive/api/v1":               "http://archive/api/v1",
		"http://archive/api/v1/":              "http://archive/api/v1",
		"http://archive/oda/api/v5":           "http://archive/oda/api/v1",
		"http://archive/api/version":          "http://archive/api/version/api/v1",
		"archive/api/v1//":                    "http://archive/api/v1",
		"https://archive/namespace/oda":       "https://archive/namespace/oda/api/v1",
		"https://archive/namespace/oda/":      "https://archive/namespace/oda/api/v1",
		"https://archive/ns%2Fx/oda/api/v1/":  "https://archive/ns%2Fx/oda/api/v1",
		"http://[::1]:8080":                   "http://[::1]:8080/api/v1",
		"https://me:secret@archive/api/v1":    "https://me:xxxxx@archive/api/v1",
		"http://archive/api/v1/notes":         "http://archive/api/v1/notes/api/v1",
		"http://archive/notes/api/v1/api/v1/": "http://archive/notes/api/v1/api/v1",
	} {
		c, err := client.New(address)
		if err != nil {
			t.Errorf("%q: %v", address, err)
			continue
		}
		if got := c.Address(); got != want {
			t.Errorf("%q is %s, want %s", address, got, want)
		}
	}
	for address, words := range map[string]string{
		"":                           "has no host",
		"http://":                    "has no host",
		"http://:8080":               "has no host",
		"ftp://archive":              "begins with ftp",
		"http://me:secret@a host":    "is not valid",
		"http://archive/?user=x":     "has a query",
		"http://archive?":            "has a query", // all paths would become queries
		"http://archive/api/v1#here": "has a query or a fragment",
	} {
		_, err := client.New(address)
		if err == nil || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want an error with %q", address, err, words)
		}
	}
}

func TestTheUserOfTheClientIsTheActingUser(t *testing.T) {
	t.Parallel()
	archive := env.Start(t)
	ada := connect(t, archive, client.WithUser("Ada Žižek"))
	d := must.Get(ada.Store(t.Context(), oda.Project, "prj-1", []byte(`{}`)))(t)
	if d.Metadata.CreatedBy != "Ada Žižek" {
		t.Errorf("the project was created by %q", d.Metadata.CreatedBy)
	}
	d = must.Get(connect(t, archive).Store(t.Context(), oda.Project, "prj-2", []byte(`{}`)))(t)
	if d.Metadata.CreatedBy != oda.DefaultUser {
		t.Errorf("without a user the project was created by %q", d.Metadata.CreatedBy)
	}
	if _, err := client.New("archive", client.WithUser("a\nb")); oda.CodeOf(err) != oda.InvalidUser {
		t.Errorf("a user name with a line break: %v", err)
	}
}

func TestTheClientWorksBelowABasePath(t *testing.T) {
	t.Parallel()
	archive := env.Start(t, func(c *app.Config) { c.BasePath = "/namespace/oda" })
	c := connect(t, archive)
	must.Get(c.Store(t.Context(), oda.SBDefinition, "sbd-1", []byte(`{}`)))(t)
	must.Get(c.Store(t.Context(), oda.SBDefinition, "sbd-2", []byte(`{}`)))(t)
	query := everything(oda.SBDefinition)
	query.Limit = 1
	if got := collect(t, c.List(t.Context(), query)); len(got) != 2 {
		t.Errorf("the list is %v", got)
	}
	if err := c.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestReadyReportsTheCurrentState(t *testing.T) {
	t.Parallel()
	archive := env.Start(t)
	c := connect(t, archive)
	if err := c.Ready(t.Context()); err != nil {
		t.Errorf("a running archive: %v", err)
	}
	must.Do(t, archive.Stop())
	if err := c.Ready(t.Context()); err == nil {
		t.Error("an archive that has stopped is ready")
	}
}

// calls notes every request that is sent.
type calls struct {
	http.RoundTripper
	mu   sync.Mutex
	list []string
}

func (c *calls) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, r.Method+" "+r.URL.Path)
	return c.RoundTripper.RoundTrip(r)
}

func TestEveryDescribedOperationHasAMethod(t *testing.T) {
	t.Parallel()
	archive := env.Start(t)
	noted := &calls{RoundTripper: archive.Client().Transport}
	c := connect(t, archive, client.WithHTTPClient(&http.Client{Transport: noted}))
	ctx := t.Context()
	for _, kind := range oda.Kinds {
		must.Get(c.Create(ctx, kind, []byte(`{"text":"a note"}`), ""))(t)
		must.Get(c.Store(ctx, kind, "x-1", []byte(`{"text":"a note"}`)))(t)
		must.Get(c.Get(ctx, kind, "x-1"))(t)
		must.Get(c.Version(ctx, kind, "x-1", 1))(t)
		must.Get(c.Diff(ctx, kind, "x-1", 1, 1))(t)
		collect(t, c.Versions(ctx, kind, "x-1"))
		must.Get(c.Provenance(ctx, kind, "x-1"))(t)
		ref := oda.Ref{Kind: kind, ID: "x-1"}
		must.Get(c.Say(ctx, ref, client.NewStatus{Status: "Observed"}))(t)
		must.Get(c.Status(ctx, ref))(t)
		collect(t, c.Statuses(ctx, ref))
		collect(t, c.List(ctx, everything(kind)))
		collect(t, c.SearchIDs(ctx, search.Search{Kind: kind}))
	}
	must.Get(c.StoreSeveral(ctx, []byte(`{"prjs":[{"prj_id":"prj-1"}]}`)))(t)
	block := must.Get(c.CreateBlock(ctx, nil, ""))(t).ID
	must.Get(c.Record(ctx, block, []byte(`{"request":"a"}`), ""))(t)
	must.Get(c.RecordPatch(ctx, block, []byte(`{"request":"b"}`), ""))(t)
	must.Get(c.RecordBatch(ctx, block, []oda.NewRecord{{Text: []byte(`{"request":"c"}`)}}))(t)
	collect(t, c.Records(ctx, block, 0))
	must.Get(c.Night(ctx, client.Night{Date: "2026-03-01"}))(t)
	collect(t, c.Calls(ctx, asking.Query{Block: block}))
	must.Get(c.TallyCalls(ctx, asking.Query{Block: block}, asking.ByRequest))(t)
	must.Do(t, c.Begin(ctx, block, "k", client.NewRunning{Request: "scan"}))
	must.Get(c.Running(ctx, ""))(t)
	must.Get(c.RunningIn(ctx, block))(t)
	must.Do(t, c.Withdraw(ctx, block, "k"))
	must.Get(c.Progress(ctx, "x-1"))(t)
	must.Get(c.Whoami(ctx))(t)
	must.Get(c.Changes(ctx, client.ChangesQuery{}))(t)
	must.Get(c.DescriptionYAML(ctx))(t)
	if err := c.Export(ctx, oda.Scope{}, io.Discard); err != nil {
		t.Error(err)
	}
	backup := must.Get(c.Backup(ctx))(t)
	if content, err := io.ReadAll(backup); err != nil || !strings.HasPrefix(string(content), "oda backup 2\n") || backup.Close() != nil {
		t.Errorf("the backup is %.20q, %v", content, err)
	}
	if metrics, _, err := c.Metrics(ctx); err != nil || !strings.Contains(string(metrics), "oda_ready 1") {
		t.Errorf("the metrics are %.50q, %v", metrics, err)
	}

	forPeople := []string{"GET /", "GET /guide", "GET /problems", "GET /problems/{code}", "GET /ui", "GET /ui/{file}"}
	for _, operation := range operations(t, ctx, c) {
		pattern := regexp.MustCompile("^" + regexp.MustCompile(`\\\{[a-z_]+\\\}`).ReplaceAllString(
			regexp.QuoteMeta(strings.Replace(operation, " ", " /api/v1", 1)), "[^/]+") + "$")
		called := slices.ContainsFunc(noted.list, pattern.MatchString)
		if called == slices.Contains(forPeople, operation) {
			t.Errorf("%s was called: %v", operation, called)
		}
	}
}

// operations reads methods and paths from the description of the archive.
func operations(t *testing.T, ctx context.Context, c *client.Client) []string {
	t.Helper()
	var description struct {
		Paths map[string]map[string]json.RawMessage
	}
	must.Do(t, json.Unmarshal(must.Get(c.Description(ctx))(t), &description))
	var list []string
	for path, methods := range description.Paths {
		for method := range methods {
			if method == "get" || method == "put" || method == "post" || method == "patch" {
				list = append(list, strings.ToUpper(method)+" "+path)
			}
		}
	}
	if len(list) < 20 {
		t.Fatalf("the description has %d operations", len(list))
	}
	return list
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
