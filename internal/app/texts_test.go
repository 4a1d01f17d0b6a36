package app_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"oda/internal/app"
	"oda/internal/test/env"
)

// onBothEngines runs a test with an archive on each engine.
func onBothEngines(t *testing.T, test func(*testing.T, *env.Archive)) {
	t.Helper()
	for name, configure := range map[string]func(*app.Config){
		"SQLite":     func(*app.Config) {},
		"PostgreSQL": func(c *app.Config) { c.Database = env.Postgres(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, env.Start(t, configure))
		})
	}
}

// Not every database can hold every text. A text that cannot be stored matches
// nothing or is refused; it never causes a server error.
func TestTextsThatCannotBeStoredCauseNoServerError(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, a *env.Archive) {
		a.Do("PUT", "/sbds/s", `{}`, "X-Forwarded-User", "école")
		a.Do("PUT", "/ebs/b", `{}`)
		cursor := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
		const stored = `{"metadata":{"version":1,"created_by":"CREATOR","created_on":"2026-01-01","last_modified_by":"MODIFIER","last_modified_on":"2026-01-01"}}`
		complete := strings.NewReplacer("CREATOR", "anna", "MODIFIER", "anna").Replace(stored)
		createdBy := strings.NewReplacer("CREATOR", `\u0000`, "MODIFIER", "anna").Replace(stored)
		modifiedBy := strings.NewReplacer("CREATOR", "anna", "MODIFIER", `\u0000`).Replace(stored)
		for _, test := range []struct {
			method, path, body string
			headers            []string
			status             int
			answer             string
		}{
			{"GET", "/sbds?user=%00", "", nil, 200, "[]"},
			{"GET", "/sbds?user=%ff", "", nil, 400, ""},
			{"GET", "/sbds?user=%C3&user_match_type=starts_with", "", nil, 400, ""},
			{"GET", "/sbds?user=%A9c&user_match_type=contains", "", nil, 400, ""},
			{"GET", "/sbds?user=%C3%A9c&user_match_type=starts_with", "", nil, 200, `["s"]`},
			{"GET", "/sbds?user=%00&user_match_type=contains", "", nil, 200, "[]"},
			{"GET", "/sbds?user=%00&limit=1", "", nil, 200, "[]"},
			{"GET", "/sbds?limit=1&cursor=" + cursor(`{"c":"sbds","p":{"user":["\u0000"]},"t":0,"i":"s"}`), "", nil, 200, "[]"},
			{"GET", "/sbds?limit=1&cursor=" + cursor(`{"c":"sbds","p":{"user":["anna"]},"t":0,"i":"\u0000"}`), "", nil, 400, ""},
			{"GET", "/sbds?created_after=%00", "", nil, 400, ""},
			{"GET", "/sbds/%00", "", nil, 404, ""},
			{"GET", "/sbds/%ff", "", nil, 404, ""},
			{"GET", "/ebs/%00/request_responses", "", nil, 404, ""},
			{"GET", "/sbds/s", "", []string{"If-None-Match", "\"\xff\""}, 200, ""},
			{"PUT", "/sbds/%00", `{}`, nil, 400, ""},
			{"PUT", "/sbds/s", `{}`, []string{"If-Match", "\"\xff\""}, 412, ""},
			{"PUT", "/sbds/s", complete, []string{"If-Match", "\"\xff\""}, 412, ""},
			{"PUT", "/sbds/s", complete, []string{"If-None-Match", "\"\xff\""}, 422, ""},
			{"PUT", "/sbds/new", `{}`, []string{"If-Match", "\"\xff\""}, 412, ""},
			{"PUT", "/sbds/none", `{}`, []string{"If-None-Match", "\"\xff\""}, 200, ""},
			{"PUT", "/sbds/s", `{}`, []string{"X-Forwarded-User", "\xff"}, 400, ""},
			{"PUT", "/sbds/s", createdBy, []string{"X-Forwarded-User", "anna"}, 400, ""},
			{"PUT", "/sbds/s", modifiedBy, nil, 400, ""},
			{"PUT", "/ebs/b?records=keep", createdBy, []string{"X-Forwarded-User", "anna"}, 400, ""},
			{"PUT", "/sbds/other", modifiedBy, nil, 400, ""},
			{"PUT", "/sbds/zero", `{"\u0000":"\u0000"}`, nil, 200, ""},
			{"PUT", "/sbds/s", `{"sbd_id":"\u0000"}`, nil, 400, ""},
			{"POST", "/sbds", `{}`, []string{"Idempotency-Key", "\xff"}, 400, ""},
			{"POST", "/ebs/b/request_response", `{"request":"\u0000"}`, nil, 200, ""},
			{"POST", "/ebs/b/request_response", `{"request":"r"}`, []string{"Idempotency-Key", "\xff"}, 400, ""},
			{"POST", "/ebs/%00/request_response", `{"request":"r"}`, nil, 404, ""},
			{"POST", "/ebs/b/request_responses", `{"records":[{"key":"\u0000","record":{"request":"r"}}]}`, nil, 400, ""},
			{"GET", "/ebs/b/request_responses?after=%00", "", nil, 400, ""},
			{"PUT", "/", `{"sbds":[{"sbd_id":"\u0000"}]}`, nil, 400, ""},
		} {
			r := a.Do(test.method, test.path, test.body, test.headers...)
			if r.Status != test.status || test.answer != "" && string(r.Body) != test.answer {
				t.Errorf("%s %s %s %q: %d %s, want %d %s", test.method, test.path, test.body, test.headers, r.Status, r.Body, test.status, test.answer)
			}
		}
	})
}

// Anybody can write a cursor that the archive has not made. It is refused, or gives some
// page, but never causes a server error.
func TestAForgedCursorCausesNoServerError(t *testing.T) {
	t.Parallel()
	listing, search, versions := `"c":"sbds","o":1,"t":0,"i":"a"`, `"c":"sbds","cr":{},"mo":{},"l":5,"t":0,"i":"a"`, `"c":"sbds","i":"s","v":2`
	const first, last = "-9223372036854775808", "9223372036854775807"
	values := []string{
		"null", "true", "0", "1", "2", "3", "4", "5", "-1", "255", "256", "1e300", first, last, `""`, `"a"`, `"\u0000"`, `"\ud800"`, `"a b"`, `"a%_'\\"`,
		`"` + strings.Repeat("\U00020000", 1000) + `"`, `[]`, `[null]`, `[""]`, `["a"]`, `["a","b"]`, `["\u0000"]`, `["/a = 1"]`, `["/a ~ \"\\u0000\""]`,
		`{}`, `{"a":null}`, `{"a":` + first + `,"b":` + last + `}`, `{"a":` + last + `,"b":` + first + `}`,
		`{"RA":0,"Dec":-90,"Radius":180}`, `{"RA":360,"Dec":90,"Radius":0}`, `{"RA":-0,"Dec":-0,"Radius":1e-300}`,
	}
	var paths []string
	forge := func(path, whole, members string) {
		for member := range strings.FieldsSeq(members) {
			for _, value := range values {
				// The last of two members with one name counts.
				text := "{" + whole + `,"` + member + `":` + value + "}"
				paths = append(paths, path+"cursor="+base64.RawURLEncoding.EncodeToString([]byte(text)))
			}
		}
	}
	forge("/api/v1/sbds?limit=1&", listing, "c o u m a b t i")
	forge("/api/v1/sbds?limit=1&", listing+`,"o":2`, "a b t i")
	forge("/api/v1/sbds?limit=1&", listing+`,"u":"a\u0000"`, "m")
	forge("/api/v1/sbds/s/versions?", versions, "c i v")
	for _, page := range []string{"/api/v1/sbds/search?", "/sbds?"} {
		forge(page, search, "c u m cr mo te r v w co wh s l f t i")
		forge(page, search+`,"u":"a\u0000"`, "m")
		forge(page, search+`,"r":"a\u0000"`, "v")
		forge(page, search+`,"s":2`, "cr mo t")
		forge(page, search+`,"s":3`, "cr mo t")
		forge(page, search+`,"s":4`, "cr mo t w")
	}
	onBothEngines(t, func(t *testing.T, a *env.Archive) {
		a.Do("PUT", "/sbds/s", `{"name":"a b","sbd_ref":"a"}`)
		a.Do("PUT", "/sbds/t", `{"name":"a b"}`)
		for _, path := range paths {
			if status, text := env.Send(t, "GET", a.Origin()+path, ""); status != 200 && status != 400 {
				t.Errorf("%s: %d %s", path, status, text)
			}
		}
	})
}
