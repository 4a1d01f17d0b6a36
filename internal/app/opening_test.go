package app_test

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/jackc/pgx/v5"

	"oda/internal/test/env"
	"oda/internal/test/fault"
	"oda/internal/test/must"
)

// While the schema is upgraded, the server is alive but not ready, and says how
// far the upgrade is. All other requests are told to try again later.
func TestProbesAreAnsweredDuringASchemaUpgrade(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	conn := env.Connect(t, dsn)
	// Another process has begun to make the schema.
	env.Exec(t, conn, "SELECT pg_advisory_lock(1868849409)",
		"CREATE TABLE migrations (number integer PRIMARY KEY, name text, checksum text, beside boolean)",
		"CREATE TABLE migration_progress (number integer, place text, done bigint, total bigint, beside boolean)",
		"INSERT INTO migration_progress VALUES (1, '', 3, 7, false)")
	p := env.OdaOpening(t, "serve", "--db", dsn, "--base-path", "/observatory", "--admin-listen", "127.0.0.1:0")
	origin := strings.TrimSuffix(p.URL, "/observatory/readyz")
	ask := func(method, path string, accept ...string) (int, string, string) {
		t.Helper()
		request := must.Get(http.NewRequestWithContext(t.Context(), method, origin+path, nil))(t)
		request.Header["Accept"] = accept
		response := must.Get(http.DefaultClient.Do(request))(t)
		defer response.Body.Close()
		text := must.Get(io.ReadAll(response.Body))(t)
		return response.StatusCode, response.Header.Get("Retry-After"), string(text)
	}
	// The process listens before it has looked into the database.
	becomes := func(what string, done func(status int, text string) bool) {
		t.Helper()
		var status int
		var text string
		err := fault.Poll(t.Context(), 20*time.Second, what, func() (bool, error) {
			status, _, text = ask("GET", "/readyz")
			return done(status, text), nil
		})
		if err != nil {
			t.Fatalf("%v: readyz answers %d %s\n%s", err, status, text, p.Log())
		}
	}
	becomes("the schema step", func(_ int, text string) bool { return strings.Contains(text, "schema step") })
	for _, prefix := range []string{"", "/observatory"} {
		if status, _, text := ask("GET", prefix+"/livez"); status != 200 {
			t.Errorf("livez answers %d %s", status, text)
		}
		status, after, text := ask("GET", prefix+"/readyz")
		var problem struct{ Type, Detail string }
		if err := json.Unmarshal([]byte(text), &problem); err != nil || status != 503 || after == "" ||
			!strings.Contains(problem.Detail, "schema step 1 of ") || !strings.Contains(problem.Detail, ", 3 of 7") {
			t.Errorf("readyz answers %d, Retry-After %q: %s", status, after, text)
		}
	}
	admin := regexp.MustCompile(`http://\S+/metrics`).FindString(p.Log())
	if metrics := answered(t, "GET", admin, ""); !strings.Contains(metrics, "\noda_ready 0\n") {
		t.Errorf("the metrics are %s", metrics)
	}
	for _, request := range []string{"GET /metrics", "GET /observatory/api/v1/sbds/a", "PUT /observatory/api/v1/sbds/a", "GET /observatory/api/v1/", "GET /"} {
		method, path, _ := strings.Cut(request, " ")
		if status, after, text := ask(method, path); status != 503 || after == "" {
			t.Errorf("%s answers %d, Retry-After %q: %s", request, status, after, text)
		}
	}
	// A browser gets a page that says so, with the files that it loads.
	for _, path := range []string{"/", "/observatory", "/observatory/", "/observatory/ebs/eb-1", "/observatory/api/v1/"} {
		status, after, text := ask("GET", path, "text/html,*/*;q=0.8")
		if status != 503 || after == "" || !strings.Contains(text, "schema step 1 of ") || !strings.Contains(text, "<progress") || !strings.Contains(text, `http-equiv="refresh"`) {
			t.Errorf("%s answers a browser %d, Retry-After %q: %s", path, status, after, text)
		}
	}
	if _, _, text := ask("GET", "/observatory/api/v1/sbds/a", "text/html,*/*;q=0.8"); !strings.HasPrefix(text, `{"type"`) {
		t.Errorf("the interface answers %s", text)
	}
	if status, _, text := ask("GET", "/observatory/api/v1/ui/site.css"); status != 200 || !strings.Contains(text, ":root") {
		t.Errorf("the stylesheet is %d %s", status, text)
	}
	if status, _, _ := ask("GET", "/observatory/api/v1/ui/nothing"); status != 404 {
		t.Errorf("a file that does not exist is %d", status)
	}
	browser := env.Browser(t)
	watch := env.NewWatch(browser)
	must.Do(t, chromedp.Do(browser, chromedp.Navigate(origin+"/observatory/"), chromedp.WaitVisible(chromedp.CSS("progress"))))
	must.Get(conn.Exec(t.Context(), "SELECT pg_advisory_unlock(1868849409)"))(t)
	// It looks again by itself until the archive is open.
	if err := chromedp.Do(browser, chromedp.WaitVisible(chromedp.CSS(".cards"))); err != nil {
		t.Errorf("the page does not become the home page: %v", err)
	}
	complaints := must.Get(watch.Complaints(browser))(t)
	for _, c := range complaints {
		if !strings.Contains(c, "status of 503") {
			t.Errorf("the browser complains: %s", c)
		}
	}
	becomes("the archive", func(status int, _ string) bool { return status == 200 })
	if status, _, text := ask("GET", "/observatory/api/v1/sbds/a"); status != 404 {
		t.Errorf("the archive answers %d %s", status, text)
	}
	p.MustStop()
}

// A server that is stopped while it waits exits at once, without an error.
func TestAServerCanBeStoppedBeforeItsArchiveIsOpen(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	conn := must.Get(pgx.Connect(t.Context(), dsn))(t)
	defer conn.Close(t.Context())
	must.Get(conn.Exec(t.Context(), "SELECT pg_advisory_lock(1868849409)"))(t)
	p := env.OdaOpening(t, "serve", "--db", dsn)
	p.MustStop()
}
