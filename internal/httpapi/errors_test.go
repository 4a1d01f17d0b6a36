package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"oda"
	"oda/api"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// The table has a request for every problem that a caller can cause.
func TestEveryProblemHasItsShape(t *testing.T) {
	a := env.Start(t, small)
	titles := describedTitles(t)
	store(t, a, "/sbds/a", `{}`)
	want(t, 200, a.Do("POST", "/sbds", `{}`, key, "k"))
	for _, test := range []struct {
		code               oda.Code
		status             int
		method, path, body string
		headers            []string
	}{
		{oda.InvalidJSON, 400, "PUT", "/sbds/n", `{`, nil},
		{oda.InvalidRequest, 400, "PUT", "/sbds/n", `[]`, nil},
		{oda.InvalidIdentifier, 400, "PUT", "/sbds/-", `{}`, nil},
		{oda.InvalidQuery, 400, "GET", "/sbds", ``, nil},
		{oda.InvalidUser, 400, "PUT", "/sbds/n", `{}`, []string{user, ""}},
		{oda.CrossOrigin, 403, "PUT", "/sbds/n", `{}`, []string{"Sec-Fetch-Site", "cross-site"}},
		{oda.NotFound, 404, "GET", "/sbds/n", ``, nil},
		{oda.NoSuchPath, 404, "GET", "/n", ``, nil},
		{oda.WrongMethod, 405, "DELETE", "/sbds/n", ``, nil},
		{oda.Precondition, 412, "PUT", "/sbds/n", `{}`, []string{"If-Match", "*"}},
		{oda.BodyTooLarge, 413, "PUT", "/sbds/n", filled(smallBody + 1), nil},
		{oda.WrongMedia, 415, "PUT", "/sbds/n", `{}`, []string{"Content-Type", "text/plain"}},
		{oda.IdentifierMismatch, 422, "PUT", "/sbds/n", `{"sbd_id":"m"}`, nil},
		{oda.MetadataMismatch, 422, "PUT", "/sbds/a", `{}`, nil},
		{oda.DuplicateEntity, 422, "PUT", "/", `{"sbds":[{"sbd_id":"n"},{"sbd_id":"n"}]}`, nil},
		{oda.KeyReused, 422, "POST", "/sbds", `{"other":1}`, []string{key, "k"}},
	} {
		t.Run(string(test.code), func(t *testing.T) {
			unchanged(t, a, func() {
				r := a.Do(test.method, test.path, test.body, append(test.headers, "X-Request-Id", "for-"+string(test.code))...)
				p := refused(t, r, test.status, test.code)
				if p.Status != test.status || p.Title != titles[p.Type] || p.Instance != "urn:oda:request:for-"+string(test.code) {
					t.Errorf("the problem is %+v", p)
				}
				if r.Header.Get("Cache-Control") != "no-store" {
					t.Error("a problem may be cached")
				}
				if line := a.Logged("for-" + string(test.code)); line["problem"] != string(test.code) {
					t.Errorf("the log says %v", line)
				}
			})
		})
	}
}

// describedTitles returns the titles of problems in the examples of the
// description, by type.
func describedTitles(t *testing.T) map[string]string {
	t.Helper()
	doc := must.Get(openapi3.NewLoader().LoadFromData(api.JSON()))(t)
	titles := map[string]string{}
	for _, example := range doc.Components.Examples {
		value, ok := example.Value.Value.(map[string]any)
		if kind, isText := value["type"].(string); ok && isText && strings.HasPrefix(kind, "urn:oda:problem:") {
			titles[kind] = value["title"].(string)
		}
	}
	if len(titles) != len(doc.Components.Schemas["Problem"].Value.Properties["type"].Value.Enum) {
		t.Errorf("%d problems have an example", len(titles))
	}
	return titles
}

// The server uses the request ID of a client if it is harmless in a log and in a
// header.
func TestRequestIDs(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/sbds/a", `{}`)
	seen := map[string]bool{}
	for _, test := range []struct {
		name, given string
		kept        bool
	}{
		{"a name", "proxy-1:abc/DEF=", true},
		{"128 characters", strings.Repeat("x", 128), true},
		{"what a URI has a meaning for", `50%zz#?"<>{}\^`, true},
		{"129 characters", strings.Repeat("x", 129), false},
		{"a space", "a b", false},
		{"a tab", "a\tb", false},
		{"beyond ASCII", "é", false},
		{"nothing", "", false},
	} {
		for _, path := range []string{"/sbds/a", "/sbds/b", "/sbds", "/nothing", "/", "/openapi.json", a.Origin() + "/livez"} {
			t.Run(test.name+" "+path, func(t *testing.T) {
				got := a.Do("GET", path, "", "X-Request-Id", test.given).Header.Get("X-Request-Id")
				switch {
				case test.kept && got != test.given:
					t.Errorf("the id is %q", got)
				case !test.kept && (got == test.given || len(got) < 16 || seen[got]):
					t.Errorf("the id is %q", got)
				}
				seen[got] = true
				a.Logged(got)
			})
		}
	}
}

func TestLogLines(t *testing.T) {
	a := env.Start(t)
	send := func(method, path, body string, headers ...string) map[string]any {
		return a.Logged(a.Do(method, path, body, headers...).Header.Get("X-Request-Id"))
	}
	for _, test := range []struct {
		name string
		line map[string]any
		want map[string]any
	}{
		{"a store", send("PUT", "/sbds/a", `{}`, user, "Zoë"), map[string]any{"kind": "SBDefinition", "identifier": "a", "user": "Zoë", "status": 200.0, "method": "PUT", "operation": "storeSBD", "level": "INFO"}},
		{"a read", send("GET", "/sbds/a", ``), map[string]any{"kind": "SBDefinition", "identifier": "a", "status": 200.0, "operation": "getSBD"}},
		{"a miss", send("GET", "/prjs/b", ``), map[string]any{"kind": "Project", "identifier": "b", "status": 404.0, "problem": "not-found"}},
		{"a refusal", send("PUT", "/ebs/b", `[]`, user, "bob"), map[string]any{"kind": "ExecutionBlock", "identifier": "b", "user": "bob", "status": 400.0, "problem": "invalid-request"}},
		{"a list", send("GET", "/sbis?user=x", ``), map[string]any{"kind": "SBInstance", "status": 200.0, "operation": "listSBIs"}},
		{"no path", send("GET", "/nothing", ``), map[string]any{"status": 404.0, "problem": "no-such-path"}},
		{"another origin", send("POST", "/sbds", `{}`, "Origin", "http://evil.example"), map[string]any{"status": 403.0, "problem": "cross-origin"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for name, value := range test.want {
				if test.line[name] != value {
					t.Errorf("%s is %v, want %v: %v", name, test.line[name], value, test.line)
				}
			}
			if d, ok := test.line["duration"].(float64); !ok || d <= 0 {
				t.Errorf("the duration is %v", test.line["duration"])
			}
		})
	}
	t.Run("who asked for what", func(t *testing.T) {
		for _, test := range []struct{ path, logged string }{
			{"/sbds/a", "/api/v1/sbds/a"},
			{"/sbds?user=xyzzy&created_after=2026-01-01", "/api/v1/sbds"},
			{"/sbds?xyzzy=1", "/api/v1/sbds"},
			{"/sbds/%0aforged", "/api/v1/sbds/%0aforged"},
			{"/sbds/" + strings.Repeat("y", 5000), "/api/v1/sbds/" + strings.Repeat("y", 512-len("/api/v1/sbds/")) + "…"},
		} {
			line := send("GET", test.path, "")
			client, _, err := net.SplitHostPort(fmt.Sprint(line["client"]))
			if line["path"] != test.logged || client != "127.0.0.1" || err != nil {
				t.Errorf("%.60s is logged as %v of %v, %v", test.path, line["path"], line["client"], err)
			}
		}
		if strings.Contains(a.LogText(), "xyzzy") {
			t.Error("the log has a query")
		}
	})
	t.Run("probes are not logged", func(t *testing.T) {
		for _, probe := range []string{"/livez", "/readyz"} {
			if line := send("GET", a.Origin()+probe, ""); line["level"] != "DEBUG" || line["path"] != probe {
				t.Errorf("it is logged as %v", line)
			}
		}
	})
	created := a.Do("POST", "/ebs/create", "")
	line := a.Logged(created.Header.Get("X-Request-Id"))
	if line["identifier"] != member(t, created.Body, "eb_id") {
		t.Errorf("a creation is logged as %v", line)
	}
}

// The log never shows any part of a document, whatever goes wrong.
func TestLogHasNothingOfDocuments(t *testing.T) {
	a := env.Start(t)
	const secret = "XYZZY-SECRET"
	ids := []string{}
	send := func(method, path, body string, headers ...string) {
		ids = append(ids, a.Do(method, path, body, headers...).Header.Get("X-Request-Id"))
	}
	send("PUT", "/sbds/a", `{"x":"`+secret+`","metadata":{"note":"`+secret+`"}}`)
	send("GET", "/sbds/a", "")
	send("PUT", "/sbds/a", `{"x":"`+secret+`"}`)
	send("PUT", "/sbds/b", `{"sbd_id":"`+secret+` no identifier"}`)
	send("PUT", "/sbds/b", `{"x":"`+secret)
	send("PUT", "/sbds/b", `{"`+secret+`":1,"`+secret+`":2}`)
	send("PUT", "/", `{"`+secret+`":[]}`)
	send("POST", "/ebs", `{"request_responses":[{"request":"`+secret+`"}]}`, key, "k")
	send("POST", "/ebs", `{"request_responses":[{"request":"`+secret+`2"}]}`, key, "k")
	send("POST", "/ebs/create", `{"x":"`+secret+`"}`)
	store(t, a, "/ebs/e", `{}`)
	send("PATCH", "/ebs/e/request_response", `{"request":"`+secret+`","error":{"detail":"`+secret+`"}}`)
	send("POST", "/ebs/none/request_response", `{"request":"`+secret+`"}`)
	send("GET", "/ebs/e", "", "Accept-Encoding", "gzip")
	for _, id := range ids {
		a.Logged(id)
	}
	if strings.Contains(a.LogText(), "XYZZY") {
		for line := range strings.Lines(a.LogText()) {
			if strings.Contains(line, "XYZZY") {
				t.Error(line)
			}
		}
	}
}

// A problem repeats only a little of the request.
func TestProblemsAreBounded(t *testing.T) {
	a := env.Start(t)
	long := strings.Repeat("y", 30_000)
	many := `{"sbds":[` + strings.Repeat(`{},`, 5000) + `{}]}`
	for _, r := range []*env.Reply{
		a.Do("GET", "/sbds/"+long, ""),
		a.Do("PUT", "/sbds/"+long, `{}`),
		a.Do("PUT", "/sbds/a", `{"sbd_id":"`+long+`"}`),
		a.Do("PUT", "/", `{"`+long+`":[]}`),
		a.Do("PUT", "/", many),
		a.Do("PUT", "/sbds/a", `{"`+long+`":1,"`+long+`":1}`),
		a.Do("PUT", "/sbds/a", `{"a":{"`+long+`":tru}}`),
		a.Do("GET", "/sbds?created_after="+long, ""),
		a.Do("GET", "/sbds?cursor="+long, ""),
		a.Do("PUT", "/sbds/a", `{"metadata":{"created_by":"`+long+`"}}`),
	} {
		if len(r.Body) > 6000 {
			t.Errorf("a problem has %d bytes: %.200s", len(r.Body), r.Body)
		}
		var p problem
		if err := json.Unmarshal(r.Body, &p); err != nil || len(p.Detail) > 600 {
			t.Errorf("a detail has %d bytes, %v", len(p.Detail), err)
		}
	}
	store(t, a, "/sbds/a", `{"metadata":{"created_by":"`+strings.Repeat("\U0001f600", 256)+`"}}`)
	r := a.Do("PUT", "/sbds/a", fmt.Sprintf(`{"metadata":{"version":1,"created_by":"%s"}}`, strings.Repeat("\U0001f601", 256)))
	refused(t, r, 422, oda.MetadataMismatch)
}
