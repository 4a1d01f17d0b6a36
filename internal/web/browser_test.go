package web_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"oda/internal/test/env"
	"oda/internal/web"
)

// A description with one operation, where the pages expect it.
const description = `{
  "openapi": "3.0.3",
  "info": {"title": "Test", "version": "1"},
  "servers": [{"url": "."}],
  "paths": {"/ebs/{eb_id}": {"get": {
    "operationId": "getExecutionBlock",
    "tags": ["ExecutionBlocks"],
    "parameters": [{"name": "eb_id", "in": "path", "required": true, "schema": {"type": "string"}, "example": "eb-0"}],
    "responses": {"200": {"description": "The block.", "content": {"application/json": {}}}}
  }}}
}`

// routes mounts a site as the server does, under a base path, with the
// description and one operation.
func routes(t *testing.T, base string) http.Handler {
	t.Helper()
	site := web.New(web.Config{Archive: web.EmptyArchive(t), BasePath: base, Version: "1.2.3", Engine: "sqlite"})
	mux := http.NewServeMux()
	handle := func(pattern string, f func(http.ResponseWriter, *http.Request) error) {
		mux.HandleFunc("GET "+base+"/api/v1"+pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := f(w, r); err != nil {
				http.Error(w, err.Error(), http.StatusNotFound)
			}
		})
	}
	answer := func(body func(r *http.Request) string) func(http.ResponseWriter, *http.Request) error {
		return func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("Content-Type", "application/json")
			_, err := io.WriteString(w, body(r))
			return err
		}
	}
	handle("/{$}", site.Home)
	handle("/ui", site.UI)
	handle("/ui/{file}", site.Asset)
	handle("/guide", site.Guide)
	handle("/problems", site.Problems)
	handle("/problems/{code}", site.Problem)
	handle("/openapi.json", answer(func(*http.Request) string { return description }))
	handle("/sbds", answer(func(r *http.Request) string { return `["sbd-1 ` + r.URL.Query().Get("created_after") + `"]` }))
	handle("/ebs/{eb_id}", answer(func(r *http.Request) string {
		return `{"eb_id":"` + r.PathValue("eb_id") + `","live":true}`
	}))
	return mux
}

func TestTheHomePageLeadsToALiveAnswer(t *testing.T) {
	tests := map[string]struct {
		handler http.Handler
		prefix  string
	}{
		"without a base path":                      {routes(t, ""), ""},
		"under a base path":                        {routes(t, "/ns/oda"), "/ns/oda"},
		"behind a proxy that strips a path prefix": {http.StripPrefix("/ns/oda", routes(t, "")), "/ns/oda"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(test.handler)
			defer server.Close()
			ctx := env.Browser(t)
			api := server.URL + test.prefix + "/api/v1"
			watch := env.NewWatch(ctx)
			examples, err := env.HomeExamples(ctx, api+"/")
			if err != nil {
				t.Fatal(err)
			}
			if len(examples) != 3 {
				t.Fatalf("the home page has %d examples, want 3", len(examples))
			}
			for _, example := range examples {
				if !strings.Contains(example, `"`+api+`/ebs`) {
					t.Errorf("the example does not contain the address %s:\n%s", api, example)
				}
			}

			follow(t, ctx, `main a[href$="api/v1/ui"]`)
			got, err := env.TryItOutHere(ctx, "getExecutionBlock", env.Param{Name: "eb_id", Value: "eb-42"})
			if err != nil {
				t.Fatal(err)
			}
			want := env.Answer{Status: 200, Body: "{\n  \"eb_id\": \"eb-42\",\n  \"live\": true\n}"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the live answer differs from the server's (-want +got):\n%s", diff)
			}

			complaints, err := watch.Complaints(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if len(complaints) > 0 {
				t.Errorf("the browser complains:\n%s", strings.Join(complaints, "\n"))
			}
			if diff := cmp.Diff([]string{strings.TrimPrefix(server.URL, "http://")}, watch.Hosts()); diff != "" {
				t.Errorf("the pages asked other hosts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestACardLeadsToTheDocumentsOfItsKind(t *testing.T) {
	for _, home := range []string{"/", "/api/v1/"} {
		s := newSite(t, "/ns/oda")
		ctx := env.Browser(t)
		do(t, ctx, chromedp.Navigate(s.base+home))
		follow(t, ctx, `a.card`)
		if got, want := text(t, ctx, `h1`), "SBDefinitions"; got != want {
			t.Errorf("the first card leads to %q, want %q", got, want)
		}
	}
}

// The newest block is two clicks away.
func TestTheHomePageLeadsToTheNewestBlock(t *testing.T) {
	s := newSite(t, "/ns/x")
	newest := s.ids(t, "/ebs/search?fields=id&limit=1")[0]
	ctx := env.Browser(t)
	do(t, ctx, chromedp.Navigate(s.base))
	follow(t, ctx, `.entities .what a`)
	if got := text(t, ctx, `.identifier code`); got != newest {
		t.Errorf("the first row leads to %s, want %s", got, newest)
	}
}

// Where the browser lets no page use the clipboard, the text is copied as by hand.
func TestTheExamplesAreCopiedByTheirButtons(t *testing.T) {
	server := httptest.NewServer(routes(t, ""))
	defer server.Close()
	ctx := env.Browser(t)
	hurried(t, ctx)
	for name, clipboard := range map[string]string{
		"given":   `navigator.clipboard.writeText = async (text) => { copied = text; }`,
		"refused": `navigator.clipboard.writeText = async () => { throw new Error("refused"); }`,
		"missing": `Object.defineProperty(navigator, "clipboard", {})`,
	} {
		do(t, ctx, chromedp.Navigate(server.URL+"/api/v1/"))
		evaluate[bool](t, ctx, `var copied; document.addEventListener("copy", () => { copied = String(getSelection()); }); `+clipboard+`; true`)
		do(t, ctx, chromedp.Click(chromedp.CSS(`.examples li:nth-child(2) .copy`)), chromedp.WaitVisible(`//button[text()="Copied"]`))
		if got := evaluate[string](t, ctx, `copied`); !strings.Contains(got, "/request_response") || got != evaluate[string](t, ctx, `document.querySelector(".examples li:nth-child(2) code").textContent`) {
			t.Errorf("with the clipboard %s, copied is %q", name, got)
		}
		until(t, ctx, "the button is itself again", `document.querySelector(".examples li:nth-child(2) .copy").textContent === "Copy"`)
	}
	evaluate[bool](t, ctx, `Object.defineProperty(navigator, "clipboard", {}); document.execCommand = () => false; true`)
	do(t, ctx, chromedp.Click(chromedp.CSS(`.examples li:nth-child(2) .copy`)))
	until(t, ctx, "the button says that it failed", `document.querySelector(".examples li:nth-child(2) .copy").textContent === "It could not be copied"`)
}

// An address may end in anything.
func TestABrokenFragmentIsHarmless(t *testing.T) {
	s := newSite(t, "")
	ctx := env.Browser(t)
	watch := env.NewWatch(ctx)
	do(t, ctx, chromedp.Navigate(s.base+"/sbds#100%"))
	noComplaints(t, ctx, watch)
}

// A test that finds no complaints is worthless if it cannot notice any.
func TestTheWatchNoticesViolations(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "script-src 'self'")
		_, _ = io.WriteString(w, `<!DOCTYPE html><link rel="icon" href="data:,"><script>inline()</script><img src="http://elsewhere.invalid/x.png">`)
	}))
	defer server.Close()
	ctx := env.Browser(t)
	watch := env.NewWatch(ctx)
	do(t, ctx, chromedp.Navigate(server.URL))
	complaints, err := watch.Complaints(ctx)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(complaints, "\n")
	for _, want := range []string{"Content Security Policy", "ERR_NAME_NOT_RESOLVED"} {
		if !strings.Contains(all, want) {
			t.Errorf("the watch missed %q; it noticed:\n%s", want, all)
		}
	}
	if !strings.Contains(strings.Join(watch.Hosts(), " "), "elsewhere.invalid") {
		t.Errorf("the watch missed the foreign host; it noticed %q", watch.Hosts())
	}
}

// again tries what needs an element again if the element was replaced before it was
// used, by the next page or by a page that renews itself, or if nothing came of it.
func again(try func() error) error {
	err := try()
	for range 3 {
		if err == nil || !strings.Contains(err.Error(), "Could not find node") && !strings.Contains(err.Error(), "No node with given id") &&
			!errors.Is(err, context.DeadlineExceeded) {
			break
		}
		err = try()
	}
	return err
}

func do(t *testing.T, ctx context.Context, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	for _, step := range steps {
		if err := again(func() error { return chromedp.Do(ctx, step) }); err != nil {
			t.Fatal(err)
		}
	}
}

// follow clicks a link and waits for its page.
func follow(t *testing.T, ctx context.Context, link string) {
	t.Helper()
	err := again(func() error {
		// A page that still moves its parts may move the link away under the click.
		try, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		_, err := chromedp.RunResponse(try, chromedp.Click(chromedp.CSS(link)))
		return err
	})
	if err != nil {
		t.Fatalf("follow the link %s: %v", link, err)
	}
}

func text(t *testing.T, ctx context.Context, selector string) (got string) {
	t.Helper()
	err := again(func() (err error) {
		got, err = chromedp.Run(ctx, chromedp.Text(chromedp.CSS(selector)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}
