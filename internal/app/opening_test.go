package app_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"oda/internal/test/env"
)

// While the schema is upgraded, the server is alive but not ready, and says how
// far the upgrade is. All other requests are told to try again later.
func TestProbesAreAnsweredDuringASchemaUpgrade(t *testing.T) {
	t.Parallel()
	old := env.Fixtures(t, "postgres")[0]
	dsn := env.Restore(t, old)
	conn := env.Connect(t, dsn)
	// The next step is under way in another process.
	env.Exec(t, conn, "SELECT pg_advisory_lock(1868849409)",
		fmt.Sprintf("INSERT INTO migration_progress VALUES (%d, '', 3, 7)", old.Schema+1))
	p := env.OdaOpening(t, "serve", "--db", dsn, "--base-path", "/observatory")
	origin := strings.TrimSuffix(p.URL, "/observatory/readyz")
	ask := func(method, path string) (int, string, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, origin+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, response.Header.Get("Retry-After"), string(text)
	}
	for _, prefix := range []string{"", "/observatory"} {
		if status, _, text := ask("GET", prefix+"/livez"); status != 200 {
			t.Errorf("livez answers %d %s", status, text)
		}
		status, after, text := ask("GET", prefix+"/readyz")
		var problem struct{ Type, Detail string }
		if err := json.Unmarshal([]byte(text), &problem); err != nil || status != 503 || after == "" ||
			!strings.Contains(problem.Detail, fmt.Sprintf("schema step %d of ", old.Schema+1)) || !strings.Contains(problem.Detail, ", 3 of 7") {
			t.Errorf("readyz answers %d, Retry-After %q: %s", status, after, text)
		}
	}
	for _, request := range []string{"GET /observatory/api/v1/sbds/a", "PUT /observatory/api/v1/sbds/a", "GET /observatory/api/v1/", "GET /"} {
		method, path, _ := strings.Cut(request, " ")
		if status, after, text := ask(method, path); status != 503 || after == "" {
			t.Errorf("%s answers %d, Retry-After %q: %s", request, status, after, text)
		}
	}
	if _, err := conn.Exec(t.Context(), "SELECT pg_advisory_unlock(1868849409)"); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		status, _, text := ask("GET", "/readyz")
		if status == 200 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the archive never became ready: %d %s\n%s", status, text, p.Log())
		}
	}
	if status, _, text := ask("GET", "/observatory/api/v1/sbds/a"); status != 404 {
		t.Errorf("the archive answers %d %s", status, text)
	}
	if code := p.Stop(); code != 0 {
		t.Errorf("the process exited with %d", code)
	}
}

// A server that is stopped while it waits exits at once, without an error.
func TestAServerCanBeStoppedBeforeItsArchiveIsOpen(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "SELECT pg_advisory_lock(1868849409)"); err != nil {
		t.Fatal(err)
	}
	p := env.OdaOpening(t, "serve", "--db", dsn)
	if code := p.Stop(); code != 0 {
		t.Errorf("the process exited with %d:\n%s", code, p.Log())
	}
}
