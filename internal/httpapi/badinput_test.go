package httpapi_test

import (
	"net/url"
	"strings"
	"testing"

	"oda"
	"oda/internal/test/env"
)

// nested returns a document of that many levels, itself included.
func nested(levels int) string {
	return `{"a":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + `}`
}

// Every operation with a body answers a bad one with a clear problem, and stores
// nothing.
func TestBadBodies(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/ebs/eb", `{}`)
	places := []struct {
		method, path string
		optional     bool
	}{
		{"PUT", "/", false},
		{"PUT", "", false},
		{"PUT", "/sbds/n", false},
		{"PUT", "/sbis/n", false},
		{"PUT", "/ebs/n", false},
		{"PUT", "/prjs/n", false},
		{"POST", "/sbds", false},
		{"POST", "/sbis", false},
		{"POST", "/ebs", false},
		{"POST", "/prjs", false},
		{"POST", "/ebs/create", true},
		{"PATCH", "/ebs/eb/request_response", false},
		{"POST", "/ebs/eb/request_response", false},
		{"POST", "/ebs/eb/status", false},
	}
	for _, test := range []struct {
		name, body string
		code       oda.Code
	}{
		{"empty", ``, oda.InvalidJSON},
		{"white space", " \r\n\t", oda.InvalidJSON},
		{"truncated object", `{"request":"a"`, oda.InvalidJSON},
		{"truncated text", `{"request":"a`, oda.InvalidJSON},
		{"truncated word", `{"a":tru`, oda.InvalidJSON},
		{"trailing document", `{"request":"a"}{}`, oda.InvalidJSON},
		{"trailing text", `{"request":"a"} x`, oda.InvalidJSON},
		{"trailing comma", `{"request":"a",}`, oda.InvalidJSON},
		{"trailing zero byte", "{\"request\":\"a\"}\x00", oda.InvalidJSON},
		{"duplicate keys", `{"request":"a","request":"b"}`, oda.InvalidJSON},
		{"duplicate keys, spelled otherwise", `{"request":"a","\u0072equest":"b"}`, oda.InvalidJSON},
		{"duplicate keys far down", `{"request":"a","x":[{"y":{"z":1,"z":1}}]}`, oda.InvalidJSON},
		{"invalid UTF-8", "{\"request\":\"\xff\"}", oda.InvalidJSON},
		{"UTF-8 cut off", "{\"request\":\"\xe2\x82\"}", oda.InvalidJSON},
		{"overlong UTF-8", "{\"request\":\"\xc0\xaf\"}", oda.InvalidJSON},
		{"UTF-16", "{\x00}\x00", oda.InvalidJSON},
		{"byte order mark", "\xef\xbb\xbf{\"request\":\"a\"}", oda.InvalidJSON},
		{"lone surrogate", `{"request":"\ud800"}`, oda.InvalidJSON},
		{"swapped surrogates", `{"request":"\udc00\ud800"}`, oda.InvalidJSON},
		{"NaN", `{"request":NaN}`, oda.InvalidJSON},
		{"Infinity", `{"request":-Infinity}`, oda.InvalidJSON},
		{"leading zero", `{"request":01}`, oda.InvalidJSON},
		{"hexadecimal", `{"request":0x1}`, oda.InvalidJSON},
		{"single quotes", `{'request':'a'}`, oda.InvalidJSON},
		{"a comment", `{"request":"a"/**/}`, oda.InvalidJSON},
		{"a control character", "{\"request\":\"a\nb\"}", oda.InvalidJSON},
		{"a wrong escape", `{"request":"\x41"}`, oda.InvalidJSON},
		{"nested one too deep", nested(101), oda.InvalidJSON},
		{"nested far too deep", nested(100_000), oda.InvalidJSON},
		{"form instead of JSON", `request=a`, oda.InvalidJSON},
		{"a list", `[]`, oda.InvalidRequest},
		{"a list of objects", `[{"request":"a"}]`, oda.InvalidRequest},
		{"a text", `"request"`, oda.InvalidRequest},
		{"a number", `1`, oda.InvalidRequest},
		{"true", `true`, oda.InvalidRequest},
		{"null", `null`, oda.InvalidRequest},
	} {
		t.Run(test.name, func(t *testing.T) {
			unchanged(t, a, func() {
				for _, place := range places {
					if (test.body == "" || test.body == "null") && place.optional {
						continue // no body
					}
					p := refused(t, a.Do(place.method, place.path, test.body), 400, test.code)
					if len(p.Detail) < 30 || len(p.Detail) > 400 {
						t.Errorf("%s %s: the detail is %q", place.method, place.path, p.Detail)
					}
				}
			})
		})
	}
}

// deep returns a document of that many levels with further members.
func deep(levels int, members string) string {
	return strings.Replace(nested(levels), "{", "{"+members+",", 1)
}

// Nesting is counted from the document or record, not from the body around it. So
// a document that one operation accepts is accepted by all, and can be stored
// again as it was read.
func TestNestingIsCountedFromTheDocument(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/ebs/eb", deep(100, `"eb_id":"eb"`))
	for n, send := range map[string]func(levels int) *env.Reply{
		"PUT":            func(n int) *env.Reply { return a.Do("PUT", "/sbds/put", nested(n)) },
		"POST":           func(n int) *env.Reply { return a.Do("POST", "/prjs", nested(n)) },
		"create":         func(n int) *env.Reply { return a.Do("POST", "/ebs/create", nested(n)) },
		"PUT of a block": func(n int) *env.Reply { return a.Do("PUT", "/ebs/put", nested(n)) },
		"PUT several":    func(n int) *env.Reply { return a.Do("PUT", "/", `{"sbds":[`+deep(n, `"sbd_id":"several"`)+`]}`) },
		"PATCH record":   func(n int) *env.Reply { return a.Do("PATCH", "/ebs/eb/request_response", deep(n, `"request":"a"`)) },
		"POST record":    func(n int) *env.Reply { return a.Do("POST", "/ebs/eb/request_response", deep(n, `"request":"a"`)) },
		"batch": func(n int) *env.Reply {
			return a.Do("POST", "/ebs/eb/request_responses", batch("k", deep(n, `"request":"a"`)))
		},
		"record in a PUT": func(n int) *env.Reply {
			return a.Do("PUT", "/ebs/with", `{"request_responses":[`+deep(n, `"request":"a"`)+`]}`)
		},
		"record in a POST": func(n int) *env.Reply {
			return a.Do("POST", "/ebs", `{"request_responses":[`+deep(n, `"request":"a"`)+`]}`)
		},
		"record in a PUT of several": func(n int) *env.Reply {
			return a.Do("PUT", "/", `{"ebs":[{"eb_id":"several","request_responses":[`+deep(n, `"request":"a"`)+`]}]}`)
		},
	} {
		t.Run(n, func(t *testing.T) {
			unchanged(t, a, func() {
				refused(t, send(101), 400, oda.InvalidJSON, "deeper than 100")
				refused(t, send(200), 400, oda.InvalidJSON, "deeper than 100")
			})
			want(t, 200, send(100))
		})
	}
	t.Run("stored again", func(t *testing.T) {
		for _, k := range kinds {
			for _, id := range list(t, a, k.collection, everything) {
				read := want(t, 200, a.Do("GET", "/"+k.collection+"/"+id, ""))
				put := want(t, 200, a.Do("PUT", "/"+k.collection+"/"+id, read.Text()))
				want(t, 200, a.Do("PUT", "/", `{"`+k.collection+`":[`+put.Text()+`]}`))
			}
		}
	})
}

func TestIdentifiersOfCallers(t *testing.T) {
	a := env.Start(t)
	for _, id := range []string{"a", "0", "A.b_c-d", strings.Repeat("z", 128), "eb-t0001-20230101-00001", "Create", "creates", "a..b", "null"} {
		for _, k := range kinds {
			path := "/" + k.collection + "/" + id
			want(t, 200, a.Do("PUT", path, `{}`))
			if got := member(t, want(t, 200, a.Do("GET", path, "")).Body, k.idField); got != id {
				t.Errorf("%s: the document says %q", path, got)
			}
		}
	}
	for _, id := range []string{"create", "search", ".hidden", "-x", "_x", "a b", "a/b", "a\\b", "é", "a:b", "a~", "a\x00", "a\n", "%", "a?b", "a#b", "a;b", "\xff", strings.Repeat("z", 129), "*", "<script>"} {
		t.Run(id, func(t *testing.T) {
			unchanged(t, a, func() {
				for _, k := range kinds {
					path := "/" + k.collection + "/" + url.PathEscape(id)
					p := refused(t, a.Do("PUT", path, `{}`), 400, oda.InvalidIdentifier, k.idField)
					if len(p.Errors) != 1 || p.Errors[0].Pointer != "path:"+k.idField {
						t.Errorf("the faults are %v", p.Errors)
					}
					if id != "search" { // that is another operation
						refused(t, a.Do("GET", path, ""), 404, oda.NotFound, "could not be found")
					}
				}
			})
		})
	}
	unchanged(t, a, func() {
		for _, value := range []string{`1`, `{}`, `[]`, `true`, `""`, `"a b"`, `"create"`, `"search"`, `"` + strings.Repeat("z", 129) + `"`} {
			for _, k := range kinds {
				body := `{"` + k.idField + `":` + value + `}`
				p := refused(t, a.Do("PUT", "/"+k.collection+"/new", body), 400, oda.InvalidRequest)
				if len(p.Errors) != 1 || p.Errors[0].Pointer != "/"+k.idField {
					t.Errorf("%s: the faults are %v", body, p.Errors)
				}
			}
		}
		for _, k := range kinds {
			p := refused(t, a.Do("PUT", "/"+k.collection+"/new", `{"`+k.idField+`":"New"}`), 422, oda.IdentifierMismatch, "new", "New", k.idField)
			if len(p.Errors) != 1 || p.Errors[0].Pointer != "/"+k.idField {
				t.Errorf("the faults are %v", p.Errors)
			}
		}
	})
}

func TestInvalidListsOfRecords(t *testing.T) {
	a := env.Start(t)
	unchanged(t, a, func() {
		for _, value := range []string{`null`, `{}`, `"x"`, `1`, `[1]`, `[null]`, `["observe"]`, `[[]]`, `[{}]`, `[{"request":null}]`} {
			body := `{"request_responses":` + value + `}`
			for _, r := range []*env.Reply{a.Do("PUT", "/ebs/new", body), a.Do("POST", "/ebs", body)} {
				p := refused(t, r, 400, oda.InvalidRequest)
				if len(p.Errors) == 0 || !strings.HasPrefix(p.Errors[0].Pointer, "/request_responses") {
					t.Errorf("%s: the faults are %v", body, p.Errors)
				}
			}
		}
	})
}

func TestMediaTypes(t *testing.T) {
	a, other := env.Start(t), env.Start(t)
	store(t, a, "/ebs/eb", `{}`)
	store(t, other, "/ebs/eb", `{}`)
	for _, test := range []struct {
		header, value string
		good          bool
	}{
		{"Content-Type", "application/json", true},
		{"Content-Type", "application/json; charset=utf-8", true},
		{"Content-Type", "application/json;charset=UTF-8", true},
		{"Content-Type", "Application/JSON", true},
		{"Content-Encoding", "identity", true},
		{"Content-Type", "application/json; charset=iso-8859-1", false},
		{"Content-Type", "application/json; charset=utf-16", false},
		{"Content-Type", "text/plain", false},
		{"Content-Type", "text/json", false},
		{"Content-Type", "application/xml", false},
		{"Content-Type", "application/merge-patch+json", false},
		{"Content-Type", "application/x-www-form-urlencoded", false},
		{"Content-Type", "multipart/form-data; boundary=x", false},
		{"Content-Type", "json", false},
		{"Content-Type", ";;", false},
		{"Content-Encoding", "gzip", false},
		{"Content-Encoding", "zstd", false},
		{"Content-Encoding", "identity, gzip", false},
	} {
		t.Run(test.header+" "+test.value, func(t *testing.T) {
			for _, place := range keyed {
				if test.good {
					want(t, 200, other.Do(place.method, place.path, place.body, test.header, test.value))
					continue
				}
				unchanged(t, a, func() {
					refused(t, a.Do(place.method, place.path, place.body, test.header, test.value), 415, oda.WrongMedia, "application/json")
				})
			}
			if !test.good {
				refused(t, a.Do("PUT", "/sbds/n", `{}`, test.header, test.value), 415, oda.WrongMedia)
				refused(t, a.Do("PUT", "/", `{"sbds":[]}`, test.header, test.value), 415, oda.WrongMedia)
			}
		})
	}
	t.Run("no Content-Type is JSON", func(t *testing.T) {
		r := raw(t, a, "PUT /api/v1/sbds/bare HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
		want(t, 200, r)
	})
}
