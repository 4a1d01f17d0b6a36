package httpapi_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"oda"
	"oda/api"
	"oda/internal/app"
	"oda/internal/auth"
	"oda/internal/contract"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// tokensOf configures an archive with a file of tokens.
func tokensOf(file string) func(*app.Config) {
	return func(cfg *app.Config) { cfg.Auth.Tokens = file }
}

// newToken adds a token to a file and returns it as a header.
func newToken(t testing.TB, file string, token auth.Token) []string {
	t.Helper()
	secret := must.Get(auth.CreateToken(file, token))(t)
	return []string{"Authorization", "Bearer " + secret}
}

// mid is the telescope of the documents in this test, if they have one.
const mid = "ska_mid"

// operation is one operation of the description in this test: whom the
// specification lets call it, and a request for it.
type operation struct {
	name    string
	needs   auth.Role
	request func(s *stage, telescope string) request
	// A role that is bound to a telescope may also do this where there is none.
	unbound bool
	// It is about all telescopes at once.
	all bool
}

type request struct {
	method, path, body string
	headers            []string
}

// stage has what the requests are about.
type stage struct {
	t     testing.TB
	a     *env.Archive
	admin []string
	n     int
}

// stored stores a new entity and returns it.
func (s *stage) stored(collection, idField, telescope string) (id, text string) {
	s.t.Helper()
	s.n++
	id = fmt.Sprintf("e%d", s.n)
	put := want(s.t, 200, s.a.Do("PUT", "/"+collection+"/"+id, document(idField, id, telescope), s.admin...))
	return id, put.Text()
}

func document(idField, id, telescope string) string {
	if telescope == "" {
		return fmt.Sprintf(`{"%s":"%s"}`, idField, id)
	}
	return fmt.Sprintf(`{"%s":"%s","telescope":"%s"}`, idField, id, telescope)
}

// operations returns the operations of the description. It ends the test if it does
// not know one.
func operations(t testing.TB) []operation {
	t.Helper()
	description := must.Get(contract.Load(api.JSON(), "Record"))(t)
	queries := map[string]string{"night": "?date=2026-01-01", "findCalls": "?eb=a", "tallyCalls": "?eb=a&by=day"}
	for _, k := range kinds {
		queries["list"+strings.ToUpper(k.idField[:3])+"s"] = "?" + everything
		queries["diff"+strings.ToUpper(k.idField[:3])] = "?from=1&to=1"
	}
	queries["listEBs"], queries["diffEB"] = "?"+everything, "?from=1&to=1"
	var all []operation
	for _, op := range description.Operations() {
		if op.ID == "backup" || op.ID == "export" {
			all = append(all, operation{name: op.ID, needs: auth.Admin, all: true, request: func(*stage, string) request { return request{method: "GET", path: op.Path} }})
			continue
		}
		if op.Method == "GET" {
			all = append(all, operation{name: op.ID, needs: auth.Reader, request: func(s *stage, telescope string) request {
				path := strings.NewReplacer("{version}", "1", "{code}", "not-found", "{file}", "swagger-ui.css").Replace(op.Path)
				for _, k := range kinds {
					if strings.Contains(path, "{"+k.idField+"}") {
						id, _ := s.stored(k.collection, k.idField, telescope)
						path = strings.ReplaceAll(path, "{"+k.idField+"}", id)
					}
				}
				return request{method: "GET", path: path + queries[op.ID]}
			}})
			continue
		}
		found := slices.IndexFunc(writes, func(w operation) bool { return w.name == op.ID })
		if found < 0 {
			t.Fatalf("this test does not know who may call %s", op.ID)
		}
		all = append(all, writes[found])
	}
	return append(all, createsOnly)
}

// createsOnly is the PUT of a block that must be new, as a spool sends it.
var createsOnly = operation{name: "storeEB, only if it is new", needs: auth.Recorder, unbound: true, request: func(s *stage, telescope string) request {
	s.n++
	id := fmt.Sprintf("e%d", s.n)
	return request{"PUT", "/ebs/" + id, document("eb_id", id, telescope), []string{"If-None-Match", "*"}}
}}

var writes = func() []operation {
	all := []operation{
		{name: "storeSeveral", needs: auth.Editor, request: func(s *stage, telescope string) request {
			s.n++
			return request{"PUT", "/", `{"sbds":[` + document("sbd_id", fmt.Sprintf("e%d", s.n), telescope) + `]}`, nil}
		}},
		{name: "createEmptyEB", needs: auth.Recorder, unbound: true, request: func(_ *stage, telescope string) request {
			return request{"POST", "/ebs/create", document("note", "x", telescope), nil}
		}},
	}
	for _, k := range kinds {
		suffix := strings.ToUpper(strings.TrimSuffix(k.idField, "_id"))
		create := operation{name: "create" + suffix, needs: auth.Editor, unbound: k.collection == "prjs", request: func(_ *stage, telescope string) request {
			return request{"POST", "/" + k.collection, document("note", "x", telescope), nil}
		}}
		if k.collection == "ebs" {
			create.needs, create.unbound = auth.Recorder, true
		}
		all = append(all, create, operation{name: "store" + suffix, needs: auth.Editor, unbound: k.collection == "prjs", request: func(s *stage, telescope string) request {
			id, text := s.stored(k.collection, k.idField, telescope)
			return request{"PUT", "/" + k.collection + "/" + id, text, nil}
		}})
		say := operation{name: "sayStatusOf" + suffix, needs: auth.Editor, unbound: true, request: func(s *stage, telescope string) request {
			id, _ := s.stored(k.collection, k.idField, telescope)
			return request{"POST", "/" + k.collection + "/" + id + "/status", `{"status":"Observed"}`, nil}
		}}
		if k.collection == "ebs" || k.collection == "sbis" {
			say.needs = auth.Recorder
		}
		all = append(all, say)
	}
	for name, at := range map[string]struct{ method, path, body string }{
		"beginCall":    {"PUT", "/running/k", `{"request":"a"}`},
		"withdrawCall": {"DELETE", "/running/k", ""},
		"recordPatch":  {"PATCH", "/request_response", `{"request":"a"}`},
		"recordPost":   {"POST", "/request_response", `{"request":"a"}`},
		"recordBatch":  {"POST", "/request_responses", `{"records":[{"key":"k","record":{"request":"a"}}]}`},
	} {
		all = append(all, operation{name: name, needs: auth.Recorder, unbound: true, request: func(s *stage, telescope string) request {
			id, _ := s.stored("ebs", "eb_id", telescope)
			return request{at.method, "/ebs/" + id + at.path, at.body, nil}
		}})
	}
	return all
}()

// roles are the roles that a caller can have.
var roles = []auth.Role{auth.Reader, auth.Recorder, auth.Editor, auth.Admin}

// Every operation lets in whom the specification lets in, and nobody else: with each
// role, for its own telescope, another one and none, with forged headers, with bad
// credentials and without any.
func TestWhoMayDoWhat(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	bounds := map[string][]string{"everywhere": nil, "for the telescope": {"other", mid}, "for another": {"other"}}
	credentials := make(map[string][]string)
	for _, role := range roles {
		for where, telescopes := range bounds {
			name := fmt.Sprintf("%s %s", role, where)
			credentials[name] = newToken(t, file, auth.Token{Name: name, Role: role, Telescopes: telescopes})
		}
	}
	s := &stage{t: t, a: env.Start(t, tokensOf(file)), admin: credentials["admin everywhere"]}
	forged := []string{user, "admin everywhere", "X-Forwarded-Groups", "oda-admin", "X-Forwarded-For", "127.0.0.1", "Cookie", "session=admin"}
	strangers := map[string][]string{
		"nobody":         nil,
		"forged headers": forged,
		"a wrong token":  {"Authorization", "Bearer " + auth.Prefix + strings.Repeat("A", 33)},
		"a short token":  {"Authorization", "Bearer " + auth.Prefix},
		"another bearer": append([]string{"Authorization", "Bearer x"}, forged...),
		"no bearer":      {"Authorization", "Bearer"},
		"a password":     {"Authorization", "Basic YWRtaW46YWRtaW4="},
	}
	send := func(r request, headers ...string) *env.Reply {
		return s.a.Do(r.method, r.path, r.body, slices.Concat(r.headers, headers)...)
	}
	for _, op := range operations(t) {
		for name, headers := range strangers {
			answer := send(op.request(s, mid), headers...)
			refused(t, answer, 401, oda.Unauthenticated)
			if got := answer.Header.Get("WWW-Authenticate"); got != "Bearer" {
				t.Errorf("%s by %s: WWW-Authenticate is %q", op.name, name, got)
			}
		}
		for _, telescope := range []string{mid, ""} {
			if telescope == "" && op.needs == auth.Reader {
				continue // reading is not bound to telescopes
			}
			for _, role := range roles {
				for where := range bounds {
					may := role >= op.needs
					if op.needs > auth.Reader && where != "everywhere" {
						may = may && !op.all && (telescope == "" && op.unbound || telescope == mid && where == "for the telescope")
					}
					answer := send(op.request(s, telescope), append(forged, credentials[fmt.Sprintf("%s %s", role, where)]...)...)
					what := fmt.Sprintf("%s of %q by %s %s", op.name, telescope, role, where)
					if !may {
						p := refused(t, answer, 403, oda.Forbidden)
						if !strings.Contains(p.Detail, "the role "+op.needs.String()) {
							t.Errorf("%s: the detail does not name the role %s: %s", what, op.needs, p.Detail)
						}
					} else if answer.Status != 200 && answer.Status != 204 {
						t.Errorf("%s is answered %d: %.200s", what, answer.Status, answer.Body)
					}
				}
			}
		}
	}
	for _, path := range []string{"/livez", "/readyz"} {
		want(t, 200, s.a.Do("GET", s.a.Origin()+path, ""))
	}
	for _, path := range []string{"/", "/ebs", "/night?date=2026-01-01", "/search?q=a"} {
		refused(t, s.a.Do("GET", s.a.Origin()+path, ""), 401, oda.Unauthenticated)
		want(t, 200, s.a.Do("GET", s.a.Origin()+path, "", append([]string{"Accept", "text/html"}, credentials["reader for another"]...)...))
	}
	for _, headers := range credentials {
		if _, secret, _ := strings.Cut(headers[1], " "); strings.Contains(s.a.LogText(), secret) {
			t.Error("a token is in the log")
		}
	}
}

// A recorder may store a block that is new, but not one that is stored, however it
// asks.
func TestARecorderStoresOnlyNewBlocks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	recorder := newToken(t, file, auth.Token{Name: "script", Role: auth.Recorder})
	a := env.Start(t, tokensOf(file))
	first := want(t, 200, a.Do("PUT", "/ebs/a", `{"request_responses":[{"request":"x"}]}`, append(recorder, "If-None-Match", "*")...))
	if m := metadataOf(t, first.Body); m.CreatedBy != "script" {
		t.Errorf("the block is by %+v", m)
	}
	refused(t, a.Do("PUT", "/ebs/a", first.Text(), append(recorder, "If-None-Match", "*")...), 412, oda.Precondition)
	for name, headers := range map[string][]string{
		"without a condition": nil,
		"If-Match":            {"If-Match", first.Header.Get("ETag")},
		"another tag":         {"If-None-Match", `"1-1"`},
	} {
		p := refused(t, a.Do("PUT", "/ebs/a", first.Text(), append(headers, recorder...)...), 403, oda.Forbidden)
		if !strings.Contains(p.Detail, "editor") {
			t.Errorf("%s: %s", name, p.Detail)
		}
	}
	refused(t, a.Do("PUT", "/sbds/a", `{}`, append(recorder, "If-None-Match", "*")...), 403, oda.Forbidden)
}
