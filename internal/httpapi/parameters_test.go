package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"oda"
	"oda/internal/test/env"
)

// A client must never believe that a parameter was applied that the operation does
// not have.
func TestParametersThatAnOperationDoesNotHave(t *testing.T) {
	const nothing = "-" // of those that there are is near
	a := env.Start(t)
	store(t, a, "/sbds/a", `{}`)
	store(t, a, "/ebs/a", `{}`)
	for _, test := range []struct {
		method, path, body string
		pointer, names     string // of the fault, and the parameter that was probably meant; empty if there are none at all
	}{
		{"GET", "/sbds?usr=anna&created_after=2026-01-01", "", "query:usr", "user"},
		{"GET", "/sbis?user=anna&user_match=contains", "", "query:user_match", "user_match_type"},
		{"GET", "/ebs?created_afer=2026-01-01", "", "query:created_afer", "created_after"},
		{"GET", "/prjs?last_modified_on=2026-01-01", "", "query:last_modified_on", "last_modified_"},
		{"GET", "/prjs?created=2026-01-01", "", "query:created", "created_"},
		{"GET", "/prjs?modified_on=2026-01-01", "", "query:modified_on", "last_modified_"},
		{"GET", "/prjs?Modified=2026-01-01", "", "query:Modified", "last_modified_"},
		{"GET", "/ebs/search?after=2026-01-01", "", "query:after", "created_after"},
		{"GET", "/ebs/search?match_type=contains", "", "query:match_type", "user_match_type"},
		{"GET", "/sbds?user=anna&Limit=1", "", "query:Limit", "limit"},
		{"GET", "/sbds?user=anna&offset=10", "", "query:offset", nothing},
		{"GET", "/sbds?user=anna&=x", "", "query:", nothing},
		{"HEAD", "/sbds?usr=anna", "", "", ""},
		{"GET", "/ebs/a/request_responses?form=3", "", "query:form", nothing},
		{"GET", "/sbds/a?version=2", "", "query:version", nothing},
		{"GET", "/sbis/a/versions?limt=2", "", "query:limt", "limit"},
		{"GET", "/prjs/a/versions/1?at=2026-01-01", "", "query:at", ""},
		{"GET", "/ebs/a/diff?form=1", "", "query:form", "from"},
		{"GET", "/ebs/a/status?version=1", "", "query:version", ""},
		{"GET", "/ebs/a/status/history?limt=1", "", "query:limt", "limit"},
		{"POST", "/ebs/a/status?reason=x", `{"status":"a"}`, "query:reason", ""},
		{"GET", "/ebs/search?clas=done", "", "query:clas", "class"},
		{"GET", "/calls/tally?outcom=failed&by=error", "", "query:outcom", "outcome"},
		{"PUT", "/ebs/a?record=keep", `{}`, "query:record", "records"},
		{"PUT", "/sbds/a?records=keep", `{}`, "query:records", ""},
		{"PUT", "/sbis/a?records=keep", `{}`, "query:records", ""},
		{"PUT", "/prjs/a?records=keep", `{}`, "query:records", ""},
		{"POST", "/ebs?records=keep", `{}`, "query:records", ""},
		{"POST", "/ebs/create?telescope=x", "", "query:telescope", ""},
		{"PATCH", "/ebs/a/request_response?key=1", `{"request":"a"}`, "query:key", ""},
		{"POST", "/ebs/a/request_response?key=1", `{"request":"a"}`, "query:key", ""},
		{"POST", "/ebs/a/request_responses?key=1", batch("k", `{"request":"a"}`), "query:key", ""},
		{"PUT", "/?dry_run=true", `{"sbds":[]}`, "query:dry_run", ""},
		{"PUT", "?dry_run=true", `{"sbds":[]}`, "query:dry_run", ""},
		{"GET", "/backup?since=2026-01-01", "", "query:since", ""},
	} {
		t.Run(test.method+" "+test.path, func(t *testing.T) {
			unchanged(t, a, func() {
				r := want(t, 400, a.Do(test.method, test.path, test.body))
				if test.method == "HEAD" {
					return
				}
				p := refused(t, r, 400, oda.InvalidRequest, "is unknown")
				if len(p.Errors) != 1 || p.Errors[0].Pointer != test.pointer {
					t.Errorf("the faults are %v", p.Errors)
				}
				meant := "takes no query parameters"
				switch test.names {
				case "":
				case nothing:
					meant = "is unknown. This operation has: "
				default:
					meant = "Did you mean " + test.names
				}
				if !strings.Contains(p.Detail, meant) {
					t.Errorf("the detail is %q", p.Detail)
				}
			})
		})
	}
	t.Run("once is enough", func(t *testing.T) {
		for _, path := range []string{"/ebs/a/request_responses?after=1&after=2", "/ebs/a/request_responses?limit=1&limit=1"} {
			refused(t, a.Do("GET", path, ""), 400, oda.InvalidRequest, "2 times")
		}
		refused(t, a.Do("PUT", "/ebs/a?records=keep&records=keep", `{}`), 400, oda.InvalidRequest, "2 times")
	})
	t.Run("many at once", func(t *testing.T) {
		query := "user=anna"
		for i := range 2000 {
			query += fmt.Sprintf("&x%d=1", i)
		}
		p := refused(t, a.Do("GET", "/sbds?"+query, ""), 400, oda.InvalidRequest)
		if len(p.Errors) > 100 {
			t.Errorf("the problem lists %d faults", len(p.Errors))
		}
	})
	t.Run("not well-formed", func(t *testing.T) {
		for _, path := range []string{"/sbds/a?%zz", "/sbds?user=a;b", "/ebs/a?records=ke%zzp"} {
			refused(t, a.Do("GET", path, ""), 400, oda.InvalidRequest, "not well-formed")
		}
	})
}

// The query of a page, of the description or of a probe is ignored, so any query
// is accepted.
func TestPagesTakeAnyQuery(t *testing.T) {
	a := env.Start(t)
	for _, query := range []string{"?x=1", "?%zz", "?a;b", "?user=", "?limit=x"} {
		for _, path := range []string{"/", "/ui", "/ui/ui.css", "/openapi.json", "/openapi.yaml", a.Origin() + "/livez", a.Origin() + "/readyz"} {
			want(t, 200, a.Do("GET", path+query, ""))
		}
	}
}

// A browser that has a page asks only whether it changed.
func TestPagesThatDidNotChange(t *testing.T) {
	a := env.Start(t)
	for _, path := range []string{"/guide", "/problems", "/problems/not-found", "/ui", "/ui/ui.css", "/openapi.json", "/openapi.yaml"} {
		r := want(t, 200, a.Do("GET", path, ""))
		want(t, 304, a.Do("GET", path, "", "If-None-Match", r.Header.Get("ETag")))
	}
}

// A header with two values is refused, since a proxy may have added one of them.
// The same value twice is fine.
func TestHeadersGivenTwice(t *testing.T) {
	a, same := env.Start(t), env.Start(t)
	store(t, a, "/ebs/eb", `{}`)
	store(t, same, "/ebs/eb", `{}`)
	for _, test := range []struct {
		name, one, other string
		code             oda.Code
	}{
		{user, "anna", "bob", oda.InvalidUser},
		{user, "anna", "", oda.InvalidUser},
		{key, "", "k", oda.InvalidRequest},
		{"Content-Type", "application/json", "text/plain", oda.InvalidRequest},
	} {
		for i, place := range keyed {
			t.Run(test.name+" "+place.name, func(t *testing.T) {
				one := test.one
				if test.name == key { // creations of one collection share their keys
					one = fmt.Sprint("k-", i)
				}
				unchanged(t, a, func() {
					r := a.Do(place.method, place.path, place.body, test.name, one, test.name, test.other)
					p := refused(t, r, 400, test.code, test.name, "Nothing was stored")
					if got := p.pointers(); len(got) != 1 || got[0] != "header:"+test.name {
						t.Errorf("the faults are %v", p.Errors)
					}
				})
				want(t, 200, same.Do(place.method, place.path, place.body, test.name, one, test.name, one))
			})
		}
	}
	want(t, 200, a.Do("GET", "/ebs/eb", "", user, "anna", user, "bob")) // reads ignore the user
	refused(t, a.Do("PUT", "/sbds/n", `{}`, "Content-Encoding", "identity", "Content-Encoding", "gzip"), 415, oda.WrongMedia)
}
