package httpapi_test

import (
	"encoding/json"
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
		return fmt.Sprintf(`{"%s":"%s","text":"a note says something"}`, idField, id)
	}
	return fmt.Sprintf(`{"%s":"%s","text":"a note says something","telescope":"%s"}`, idField, id, telescope)
}

// allKinds are those of the specification's tables, and notes.
var allKinds = append(slices.Clone(kinds), struct{ collection, idField string }{"notes", "note_id"})

// ofOwn are the operations that recorders may do to what they have created.
var ofOwn = []string{"storeNote", "sayStatusOfNote"}

// operations returns the operations of the description. It ends the test if it does
// not know one.
func operations(t testing.TB) []operation {
	t.Helper()
	description := must.Get(contract.Load(api.JSON(), "Record"))(t)
	queries := map[string]string{"night": "?date=2026-01-01", "findCalls": "?eb=a", "tallyCalls": "?eb=a&by=day"}
	for _, kind := range oda.Kinds {
		queries["list"+kind.Short()+"s"], queries["diff"+kind.Short()] = "?"+everything, "?from=1&to=1"
	}
	var all []operation
	for _, op := range description.Operations() {
		if op.ID == "backup" || op.ID == "export" {
			all = append(all, operation{name: op.ID, needs: auth.Admin, all: true, request: func(*stage, string) request { return request{method: "GET", path: op.Path} }})
			continue
		}
		if op.Method == "GET" {
			all = append(all, operation{name: op.ID, needs: auth.Reader, request: func(s *stage, telescope string) request {
				path := strings.NewReplacer("{version}", "1", "{code}", "not-found", "{file}", "swagger-ui.css").Replace(op.Path)
				for _, k := range allKinds {
					if strings.Contains(path, "{"+k.idField+"}") {
						id, _ := s.stored(k.collection, k.idField, telescope)
						path = strings.ReplaceAll(path, "{"+k.idField+"}", id)
					}
				}
				return request{method: "GET", path: path + queries[op.ID]}
			}})
			continue
		}
		if slices.Contains(ofOwn, op.ID) {
			continue // TestARecorderWritesOnlyToTheirOwnNotes
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
	all = append(all, operation{name: "createNote", needs: auth.Recorder, unbound: true, request: func(_ *stage, telescope string) request {
		return request{"POST", "/notes", document("x", "x", telescope), nil}
	}})
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

// A recorder may change, and say statuses of, only the notes that the recorder has
// created. An editor may do it to all, where the editor is one.
func TestARecorderWritesOnlyToTheirOwnNotes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	token := func(name string, role auth.Role, telescopes ...string) []string {
		return newToken(t, file, auth.Token{Name: name, Role: role, Telescopes: telescopes})
	}
	callers := map[string][]string{
		"reader": token("reader", auth.Reader), "recorder": token("recorder", auth.Recorder), "colleague": token("colleague", auth.Recorder),
		"recorder of mid": token("recorder of mid", auth.Recorder, mid), "editor": token("editor", auth.Editor),
		"editor of mid": token("editor of mid", auth.Editor, mid), "editor of low": token("editor of low", auth.Editor, "ska_low"),
	}
	a := env.Start(t, tokensOf(file))
	for name, c := range map[string]struct {
		creator, telescope string
		may                []string
	}{
		"of mid":          {"recorder of mid", mid, []string{"recorder of mid", "editor", "editor of mid"}},
		"of none":         {"recorder", "", []string{"recorder", "editor", "editor of mid", "editor of low"}},
		"of low":          {"recorder", "ska_low", []string{"recorder", "editor", "editor of low"}},
		"by an editor":    {"editor", mid, []string{"editor", "editor of mid"}},
		"by one of mid":   {"editor of mid", "", []string{"editor", "editor of mid", "editor of low"}},
		"by one of low":   {"editor of low", "ska_low", []string{"editor", "editor of low"}},
		"by a colleague":  {"colleague", "", []string{"colleague", "editor", "editor of mid", "editor of low"}},
		"and it is keyed": {"colleague", mid, []string{"colleague", "editor", "editor of mid"}},
	} {
		created := want(t, 200, a.Do("POST", "/notes", document("x", "x", c.telescope), callers[c.creator]...))
		var stored struct {
			ID string `json:"note_id"`
		}
		must.Do(t, json.Unmarshal(created.Body, &stored))
		for caller, headers := range callers {
			text := want(t, 200, a.Do("GET", "/notes/"+stored.ID, "", headers...)).Text()
			for what, answer := range map[string]*env.Reply{
				"change":            a.Do("PUT", "/notes/"+stored.ID, text, headers...),
				"status":            a.Do("POST", "/notes/"+stored.ID+"/status", `{"status":"Resolved"}`, headers...),
				"status with a key": a.Do("POST", "/notes/"+stored.ID+"/status", `{"status":"Resolved"}`, append([]string{"Idempotency-Key", "k"}, headers...)...),
			} {
				if slices.Contains(c.may, caller) {
					if answer.Status != 200 {
						t.Errorf("the note %s: %s by %s is answered %d: %s", name, what, caller, answer.Status, answer.Body)
					}
				} else if p := refused(t, answer, 403, oda.Forbidden); !strings.Contains(p.Detail, "the role ") {
					t.Errorf("the note %s: %s by %s: %s", name, what, caller, p.Detail)
				}
			}
		}
	}
	spooled := want(t, 200, a.Do("PUT", "/notes/n", document("note_id", "n", ""), append([]string{"If-None-Match", "*"}, callers["recorder"]...)...))
	want(t, 200, a.Do("PUT", "/notes/n", spooled.Text(), callers["recorder"]...))
	refused(t, a.Do("PUT", "/notes/n", document("note_id", "n", ""), append([]string{"If-None-Match", "*"}, callers["recorder"]...)...), 412, oda.Precondition)
	refused(t, a.Do("PUT", "/", `{"notes":[`+document("note_id", "m", "")+`]}`, callers["recorder"]...), 403, oda.Forbidden)
	want(t, 200, a.Do("PUT", "/", `{"notes":[`+document("note_id", "m", "")+`]}`, callers["editor"]...))
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
