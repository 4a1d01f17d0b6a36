package httpapi_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"oda"
	"oda/api"
	"oda/archive"
	"oda/internal/app"
	"oda/internal/auth"
	"oda/internal/httpapi"
	"oda/internal/skuid"
	"oda/internal/test/embedded"
	"oda/internal/test/env"
	"oda/internal/web"
)

// With a base path, everything works as without, under the prefix.
func TestBasePath(t *testing.T) {
	for _, base := range []string{"", "ns", "/ns/", "/cluster-1/oda.test"} {
		t.Run(base, func(t *testing.T) {
			a := env.Start(t, func(cfg *app.Config) { cfg.BasePath = base })
			prefix := strings.TrimSuffix(a.URL(), "/api/v1")
			store(t, a, "/sbds/a", `{}`)
			store(t, a, "/sbds/b", `{}`)
			want(t, 200, a.Do("PUT", "", `{"sbds":[]}`))
			want(t, 200, a.Do("PUT", "/", `{"sbds":[]}`))
			if ids, pages := follow(t, a, "/sbds?"+everything+"&limit=1"); len(ids) != 2 || pages != 2 {
				t.Errorf("following links finds %v on %d pages", ids, pages)
			}
			for _, probe := range []string{"/livez", "/readyz"} {
				if r := want(t, 200, a.Do("GET", a.Origin()+probe, "")); !strings.HasPrefix(r.Header.Get("Content-Type"), "text/plain") {
					t.Errorf("%s is %s", probe, r.Header.Get("Content-Type"))
				}
				want(t, 200, a.Do("GET", prefix+probe, ""))
			}
			for from, to := range map[string]string{
				a.URL():          a.URL() + "/",
				a.URL() + "/ui/": a.URL() + "/ui",
			} {
				arrives(t, a, from, to)
			}
			if prefix != a.Origin() {
				arrives(t, a, prefix, prefix+"/")
				refused(t, a.Do("GET", a.Origin()+"/api/v1/sbds/a", ""), 404, oda.NoSuchPath)
				refused(t, a.Do("GET", a.Origin()+"/", ""), 404, oda.NoSuchPath)
			}
			refused(t, a.Do("GET", prefix+"/api", ""), 404, oda.NoSuchPath)
			links(t, a, prefix, prefix+"/")
			links(t, a, prefix, a.URL()+"/")
			links(t, a, prefix, a.URL()+"/ui")
			serversEntry(t, a)
		})
	}
}

// arrives checks where a redirect leads, resolved as a browser does.
func arrives(t *testing.T, a *env.Archive, from, to string) {
	t.Helper()
	r := want(t, 307, a.Do("GET", from, ""))
	at, err := url.Parse(from)
	if err != nil {
		t.Fatal(err)
	}
	if at.Path == "" {
		at.Path = "/"
	}
	got, err := at.Parse(r.Header.Get("Location"))
	if err != nil || got.String() != to {
		t.Errorf("%s leads to %v, want %s (%v)", from, got, to, err)
	}
	want(t, 200, a.Do("GET", to, ""))
}

var linked = regexp.MustCompile(`(?:href|src)="([^"#][^"]*)"`)

// links checks that every link of a page is relative and leads somewhere below
// the prefix.
func links(t *testing.T, a *env.Archive, prefix, address string) {
	t.Helper()
	page := want(t, 200, a.Do("GET", address, ""))
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	found := linked.FindAllStringSubmatch(page.Text(), -1)
	if len(found) == 0 {
		t.Errorf("%s has no links", address)
	}
	for _, match := range found {
		to, err := at.Parse(strings.ReplaceAll(match[1], "&amp;", "&"))
		if err != nil || strings.HasPrefix(match[1], "/") || !strings.HasPrefix(to.String(), prefix+"/") {
			t.Errorf("%s links to %s", address, match[1])
			continue
		}
		if r := a.Do("HEAD", to.String(), ""); r.Status >= 400 {
			t.Errorf("%s links to %s, which answers %d", address, match[1], r.Status)
		}
	}
}

// serversEntry checks that the server in the description resolves to this one.
func serversEntry(t *testing.T, a *env.Archive) {
	t.Helper()
	var doc struct{ Servers []struct{ URL string } }
	if err := json.Unmarshal(a.Do("GET", "/openapi.json", "").Body, &doc); err != nil || len(doc.Servers) != 1 {
		t.Fatalf("%+v, %v", doc, err)
	}
	at, err := url.Parse(a.URL() + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := at.Parse(doc.Servers[0].URL); err != nil || got.String() != a.URL() {
		t.Errorf("the server is %v, want %s (%v)", got, a.URL(), err)
	}
}

// newAPI returns an interface whose engine the test can close.
func newAPI(t *testing.T) (*httpapi.API, oda.Engine, error) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	engine := embedded.Engine(t)
	generator, err := skuid.NewGenerator(1)
	if err != nil {
		t.Fatal(err)
	}
	archive := archive.New(engine, generator)
	handler, err := httpapi.New(httpapi.Config{
		Archive: archive, Gate: auth.NewGate(), Pages: web.New(web.Config{Archive: archive}),
		Bounds: httpapi.Bounds{Body: 1 << 20, InFlight: 1 << 20, Depth: 100}, Log: log,
	})
	return handler, engine, err
}

// Without its engine, the server is alive but not ready, and says so.
func TestEngineAway(t *testing.T) {
	t.Parallel()
	handler, engine, err := newAPI(t)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method, path, body string) *env.Reply {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
		r, err := env.Read(w.Result())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	want(t, 200, ask("PUT", "/api/v1/sbds/a", `{}`))
	want(t, 200, ask("GET", "/readyz", ""))
	if err := engine.Close(); err != nil {
		t.Fatal(err)
	}
	want(t, 200, ask("GET", "/livez", ""))
	for _, request := range [][3]string{
		{"GET", "/readyz", ""},
		{"PUT", "/api/v1/sbds/a", `{}`},
		{"PUT", "/api/v1/", `{"sbds":[{"sbd_id":"n"}]}`},
		{"POST", "/api/v1/sbds", `{}`},
		{"POST", "/api/v1/ebs/create", ``},
		{"POST", "/api/v1/ebs/a/request_response", `{"request":"a"}`},
	} {
		r := ask(request[0], request[1], request[2])
		if r.Status != 503 {
			t.Errorf("%s %s is answered %d %s", request[0], request[1], r.Status, r.Body)
			continue
		}
		refused(t, r, 503, oda.Unavailable)
		if r.Header.Get("Retry-After") == "" || r.Header.Get("X-Request-Id") == "" {
			t.Errorf("%s %s has %v", request[0], request[1], r.Header)
		}
	}
}

// late is an engine that always runs out of time.
type late struct{ oda.Engine }

func (late) Get(context.Context, oda.Ref) (*oda.Entity, error) { return nil, context.DeadlineExceeded }

func (late) Put(context.Context, []oda.Put) ([]*oda.Entity, error) {
	return nil, context.DeadlineExceeded
}

// A write that ran out of time may have been stored. Its answer says so.
func TestARequestWhoseTimeRanOut(t *testing.T) {
	handler, err := httpapi.New(httpapi.Config{
		Archive: archive.New(late{}, nil), Gate: auth.NewGate(), Log: slog.New(slog.DiscardHandler),
		Bounds: httpapi.Bounds{Body: 1 << 20, InFlight: 1 << 20, Depth: 100},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		method, path, body string
		code               oda.Code
		says               string
	}{
		{"GET", "/api/v1/sbds/a", "", oda.Overloaded, "took too long"},
		{"PUT", "/api/v1/sbds/a", `{}`, oda.Unavailable, "may or may not be stored"},
		{"PUT", "/api/v1/", `{"sbds":[{"sbd_id":"a"}]}`, oda.Unavailable, "may or may not be stored"},
	} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(test.method, test.path, strings.NewReader(test.body)))
		r, err := env.Read(w.Result())
		if err != nil {
			t.Fatal(err)
		}
		refused(t, r, 503, test.code, test.says)
	}
}

// The interface does not start if it differs from the description.
func TestRoutesAndDescriptionMustAgree(t *testing.T) {
	described := api.JSON
	t.Cleanup(func() { api.JSON = described })
	for name, change := range map[string]func(string) string{
		"an operation that nothing serves": func(text string) string {
			return strings.Replace(text, `"paths": {`, `"paths": {"/extra": {"get": {"operationId": "extra", "responses": {"200": {"description": "x"}}}},`, 1)
		},
		"a route that is not described": func(text string) string {
			return strings.Replace(text, `"operationId": "getSBD"`, `"operationId": "fetchSBD"`, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			changed := change(string(described()))
			if changed == string(described()) {
				t.Fatal("the description was not changed")
			}
			api.JSON = func() []byte { return []byte(changed) }
			if _, _, err := newAPI(t); err == nil || !strings.Contains(err.Error(), "operation") {
				t.Errorf("New returns %v", err)
			}
		})
	}
}
