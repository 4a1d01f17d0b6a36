package app_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"oda/internal/test/env"
)

// The archive and the identifier service run in separate processes.

func TestIdentifiersComeFromTheConfiguredService(t *testing.T) {
	service := env.Oda(t, "skuid", "--generator=77")
	for about, address := range map[string]string{
		"with its scheme":    service.URL,
		"without its scheme": service.Host(),
	} {
		archive := env.Oda(t, "serve", "--skuid-url="+address, "--generator=5")
		for collection, prefix := range map[string]string{"sbds": "sbd", "sbis": "sbi", "ebs": "eb", "prjs": "prj"} {
			got := identifierIn(t, answered(t, "POST", archive.URL+"/"+collection, "{}"))
			if got.prefix != prefix || got.generator != 77 {
				t.Errorf("%s: POST /%s gave %+v, want %s- of generator 77", about, collection, got, prefix)
			}
		}
	}
}

func TestTheServiceIsAskedForTheConfiguredType(t *testing.T) {
	service := env.Oda(t, "skuid", "--twice")
	archive := env.Oda(t, "serve", "--skuid-url="+service.URL, "--skuid-types=prj=opj")
	if got := identifierIn(t, answered(t, "POST", archive.URL+"/prjs", "{}")); got.prefix != "opj" {
		t.Errorf("a project got %+v, want opj-", got)
	}
	if got := identifierIn(t, answered(t, "POST", archive.URL+"/sbds", "{}")); got.prefix != "sbd" {
		t.Errorf("a definition got %+v, want sbd-", got)
	}
}

func TestNothingIsCreatedWhileTheServiceIsUnavailable(t *testing.T) {
	service := env.Oda(t, "skuid")
	archive := env.Oda(t, "serve", "--skuid-url="+service.URL)
	first := answered(t, "POST", archive.URL+"/ebs/create", "")
	service.Kill()
	for _, path := range []string{"/sbds", "/sbis", "/ebs", "/prjs", "/ebs/create"} {
		status, body := env.Send(t, "POST", archive.URL+path, "{}")
		var problem struct{ Type, Detail string }
		if err := json.Unmarshal([]byte(body), &problem); err != nil {
			t.Fatalf("POST %s: %v: %s", path, err, body)
		}
		if status != 500 || problem.Type != "urn:oda:problem:identifier-service" ||
			!strings.Contains(problem.Detail, "identifier service at "+service.Host()) || !strings.Contains(problem.Detail, "nothing was stored") {
			t.Errorf("POST %s: status %d: %s", path, status, body)
		}
	}
	for _, collection := range []string{"sbds", "sbis", "prjs"} {
		if got := answered(t, "GET", archive.URL+"/"+collection+"?created_after=2026-01-01", ""); got != "[]" {
			t.Errorf("/%s has %s", collection, got)
		}
	}
	if got, want := answered(t, "GET", archive.URL+"/ebs?created_after=2026-01-01", ""), `["`+identifierIn(t, first).text+`"]`; got != want {
		t.Errorf("/ebs has %s, want %s", got, want)
	}
	// Writes that need no new identifier still work.
	answered(t, "PUT", archive.URL+"/sbds/of-my-own", "{}")

	env.Oda(t, "skuid", "--listen="+service.Host())
	answered(t, "POST", archive.URL+"/ebs/create", "")
}

// The state of a service says that it has already been in 2040, as after a clock that was set
// back, and it is killed: its time must still go forward. That none repeats an identifier is
// tested with the service.
func TestTheServiceGoesOnWhereItsStateSays(t *testing.T) {
	reached := time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC)
	state := written(t, "state", "identifiers reserved until "+reached.Format("2006-01-02T15:04:05.000Z")+"\n")
	for range 2 {
		service := env.Oda(t, "skuid", "--generator=1", "--state="+state)
		archive := env.Oda(t, "serve", "--skuid-url="+service.URL)
		got := identifierIn(t, answered(t, "POST", archive.URL+"/ebs/create", ""))
		if got.generator != 1 || !got.at.After(reached) {
			t.Errorf("%s of generator %d has the time %v, want one after %v", got.text, got.generator, got.at, reached)
		}
		reached = got.at
		service.Kill()
	}
}

// identifier is a parsed identifier.
type identifier struct {
	text, prefix string
	at           time.Time
	generator    uint64
}

// identifierIn parses the identifier at the beginning of a document by the
// rules of SKA's ADR-129.
func identifierIn(t *testing.T, document string) identifier {
	t.Helper()
	_, rest, _ := strings.Cut(document, `_id":"`)
	text, _, _ := strings.Cut(rest, `"`)
	prefix, digits, ok := strings.Cut(text, "-")
	if !ok || digits == "" {
		t.Fatalf("%s does not begin with a generated identifier", document)
	}
	var n uint64
	for _, digit := range digits {
		value := strings.IndexRune("0123456789abcdefghjkmnpqrstvwxyz", digit)
		if value < 0 {
			t.Fatalf("%s is not in Crockford's base 32", text)
		}
		n = n<<5 | uint64(value)
	}
	epoch := time.Date(2026, 1, 7, 0, 0, 0, 0, time.UTC)
	return identifier{text, prefix, epoch.Add(time.Duration(n>>21) * time.Millisecond), n >> 11 & 1023}
}
