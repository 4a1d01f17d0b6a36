package httpapi_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oda"
	"oda/api"
	"oda/internal/app"
	"oda/internal/auth"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// exampleProblems returns the example problems of the API description, by code.
func exampleProblems(t *testing.T) map[oda.Code]problem {
	t.Helper()
	var doc struct {
		Components struct {
			Examples map[string]struct{ Value json.RawMessage }
		}
	}
	must.Do(t, json.Unmarshal(api.JSON(), &doc))
	examples := map[oda.Code]problem{}
	for _, example := range doc.Components.Examples {
		var p problem
		if json.Unmarshal(example.Value, &p) == nil && p.code() != "" {
			examples[p.code()] = p
		}
	}
	return examples
}

// The examples of the description are what the server says, word for word, except
// for numbers and the request ID.
func TestExampleProblemsAreTheServers(t *testing.T) {
	a := env.Start(t, small)
	silent := env.Start(t, func(cfg *app.Config) { cfg.SkuidURL = "http://127.0.0.1:1" })
	full := env.Start(t, func(cfg *app.Config) { cfg.Bounds.InFlight = 1 })
	file := filepath.Join(t.TempDir(), "tokens")
	script := newToken(t, file, auth.Token{Name: "script", Role: auth.Recorder})
	known := env.Start(t, tokensOf(file))
	busy := env.Start(t, func(cfg *app.Config) { cfg.Limits.Rate = 1 })
	limited := busy.Do("GET", "/", "")
	for limited.Status == 200 {
		limited = busy.Do("GET", "/", "")
	}
	const id, path = "sbd-1k5v3r8m0q", "/sbds/sbd-1k5v3r8m0q"
	missing := a.Do("GET", path, "")
	first := want(t, 200, a.Do("PUT", path, `{"name":"Calibrator scan"}`, user, "mary"))
	want(t, 200, a.Do("PUT", path, first.Text(), user, "john"))
	want(t, 200, a.Do("POST", "/sbds", `{}`, key, "k"))
	block := "/ebs/eb-1k5v3r8p4c"
	store(t, a, block, `{}`)
	want(t, 200, a.Do("POST", block+"/status", `{"status":"Aborted"}`))
	got := map[oda.Code]*env.Reply{
		oda.InvalidJSON:        a.Do("PUT", path, `{"priority": 2, "name": "a", "name": "b"}`),
		oda.InvalidRequest:     a.Do("PUT", path, `{"metadata": {"version": 0}}`),
		oda.InvalidIdentifier:  a.Do("PUT", "/sbds/-1", `{}`),
		oda.InvalidQuery:       a.Do("GET", "/sbds", ``),
		oda.InvalidUser:        a.Do("PUT", path, `{}`, user, ""),
		oda.Unauthenticated:    known.Do("GET", path, ""),
		oda.Forbidden:          known.Do("PUT", path, `{}`, script...),
		oda.CrossOrigin:        a.Do("PUT", path, `{}`, "Sec-Fetch-Site", "cross-site"),
		oda.NotFound:           missing,
		oda.NoSuchPath:         a.Do("GET", "/sbd", ``),
		oda.WrongMethod:        a.Do("DELETE", path, ``),
		oda.Precondition:       a.Do("PUT", path, `{}`, "If-Match", `"1-1772398798000000"`),
		oda.BodyTooLarge:       a.Do("PUT", path, filled(smallBody+1)),
		oda.WrongMedia:         a.Do("PUT", path, `{}`, "Content-Type", "text/plain"),
		oda.IdentifierMismatch: a.Do("PUT", path, `{"sbd_id": "sbd-1k5v3r8mzz"}`),
		oda.MetadataMismatch:   a.Do("PUT", path, first.Text()),
		oda.DuplicateEntity:    a.Do("PUT", "/", `{"sbds":[{"sbd_id":"`+id+`"},{"sbd_id":"`+id+`"}]}`),
		oda.KeyReused:          a.Do("POST", "/sbds", `{"other":1}`, key, "k"),
		oda.StatusMismatch:     a.Do("POST", block+"/status", `{"status":"Observed","previous":"Executing"}`),
		oda.UnknownVersion:     a.Do("POST", block+"/status", `{"status":"Observed","version":7}`),
		oda.RateLimited:        limited,
		oda.IdentifierService:  silent.Do("POST", "/sbds", `{}`),
		oda.Overloaded:         full.Do("PUT", path, `{}`),
	}
	numbers := regexp.MustCompile(`\d+`)
	plain := func(p problem) problem {
		p.Instance, p.Detail = "", numbers.ReplaceAllString(p.Detail, "0")
		for i := range p.Errors {
			p.Errors[i].Detail = numbers.ReplaceAllString(p.Errors[i].Detail, "0")
		}
		return p
	}
	examples := exampleProblems(t)
	for code, r := range got {
		var p problem
		if err := json.Unmarshal(r.Body, &p); err != nil || p.code() != code {
			t.Errorf("%s: got %s", code, r.Body)
			continue
		}
		if diff := cmp.Diff(plain(examples[code]), plain(p)); diff != "" {
			t.Errorf("%s: the example (-) and the server (+):\n%s%s", code, diff, r.Body)
		}
	}
}

// docs/problems.md has a section for every problem, with the description's
// example of it.
func TestEveryProblemIsDocumented(t *testing.T) {
	text := must.Get(os.ReadFile("../../docs/problems.md"))(t)
	_, rest, _ := strings.Cut(string(text), "\n## ")
	documented := map[oda.Code]problem{}
	for section := range strings.SplitSeq(rest, "\n## ") {
		code, _, _ := strings.Cut(section, "\n")
		_, block, _ := strings.Cut(section, "```json\n")
		block, _, _ = strings.Cut(block, "```")
		var p problem
		if err := json.Unmarshal([]byte(block), &p); err != nil {
			t.Errorf("%s has no example: %v", code, err)
		}
		documented[oda.Code(code)] = p
	}
	examples := exampleProblems(t)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(examples)), slices.Sorted(maps.Keys(documented))); diff != "" {
		t.Fatalf("problems of the description (-) and of docs/problems.md (+):\n%s", diff)
	}
	for code, example := range examples {
		if diff := cmp.Diff(example, documented[code]); diff != "" {
			t.Errorf("%s in the description (-) and in docs/problems.md (+):\n%s", code, diff)
		}
	}
}
