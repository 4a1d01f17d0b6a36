package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oda"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

func TestStoreSeveral(t *testing.T) {
	a := env.Start(t)
	for _, test := range []struct{ name, path, body string }{
		{"all kinds", "/", `{"prjs":[{"prj_id":"p1"}],"sbds":[{"sbd_id":"s2"},{"sbd_id":"s1","n":1.0}],"ebs":[{"eb_id":"e1","request_responses":[{"request":"a"}]}],"sbis":[{"sbi_id":"i1"}]}`},
		{"without the trailing slash", "", `{"sbds":[{"sbd_id":"no-slash"}]}`},
		{"one identifier in several collections", "/", `{"sbds":[{"sbd_id":"same"}],"prjs":[{"prj_id":"same"}],"sbis":[{"sbi_id":"same"}]}`},
		{"empty lists", "/", `{"sbds":[],"sbis":[],"ebs":[],"prjs":[]}`},
		{"an empty list among others", "/", `{"sbds":[],"prjs":[{"prj_id":"p2"}]}`},
		{"white space", "/", " { \"sbds\" : [ { \"sbd_id\" : \"s3\" } ] } "},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := want(t, 200, a.Do("PUT", test.path, test.body, "X-Forwarded-User", "anna"))
			var sent, got map[string][]json.RawMessage
			must.Do(t, json.Unmarshal([]byte(test.body), &sent))
			must.Do(t, json.Unmarshal(r.Body, &got))
			if len(got) != len(sent) {
				t.Errorf("the answer has other collections: %s", r.Body)
			}
			for _, k := range kinds {
				if len(got[k.collection]) != len(sent[k.collection]) {
					t.Fatalf("%s: the answer has %d, the request had %d", k.collection, len(got[k.collection]), len(sent[k.collection]))
				}
				for i, text := range got[k.collection] {
					id := member(t, sent[k.collection][i], k.idField)
					if stored := want(t, 200, a.Do("GET", "/"+k.collection+"/"+id, "")); stored.Text() != string(text) {
						t.Errorf("%s/%s: GET answers %s, PUT answered %s", k.collection, id, stored.Body, text)
					}
					if m := metadataOf(t, text); m.Version != 1 || m.CreatedBy != "anna" {
						t.Errorf("%s/%s has %+v", k.collection, id, m)
					}
				}
			}
		})
	}
}

func TestStoreSeveralRefuses(t *testing.T) {
	a := env.Start(t)
	first := store(t, a, "/sbds/a", `{}`)
	store(t, a, "/sbds/b", `{}`)
	store(t, a, "/ebs/e", `{}`)
	stale := `{"sbd_id":"a","metadata":` + strings.Replace(first.text(), `"version":1`, `"version":4`, 1) + `}`
	for _, test := range []struct {
		name, body string
		status     int
		code       oda.Code
		pointers   []string
	}{
		{"no collection", `{}`, 400, oda.InvalidRequest, []string{""}},
		{"an unknown collection", `{"sbds":[{"sbd_id":"n"}],"things":[]}`, 400, oda.InvalidRequest, []string{"/things"}},
		{"a list at the top", `[{"sbd_id":"n"}]`, 400, oda.InvalidRequest, []string{""}},
		{"a collection of null", `{"sbds":null}`, 400, oda.InvalidRequest, []string{"/sbds"}},
		{"a collection that is an object", `{"sbds":{"sbd_id":"n"}}`, 400, oda.InvalidRequest, []string{"/sbds"}},
		{"an entity that is none", `{"sbds":[{"sbd_id":"n"},1,null,"x",[]]}`, 400, oda.InvalidRequest, []string{"/sbds/1", "/sbds/2", "/sbds/3", "/sbds/4"}},
		{"no identifier", `{"sbds":[{"sbd_id":"n"}],"prjs":[{"name":"x"}]}`, 400, oda.InvalidRequest, []string{"/prjs/0"}},
		{"the identifier of another kind", `{"sbds":[{"prj_id":"n"}]}`, 400, oda.InvalidRequest, []string{"/sbds/0"}},
		{"an identifier of null", `{"sbds":[{"sbd_id":null}]}`, 400, oda.InvalidRequest, []string{"/sbds/0/sbd_id"}},
		{"an identifier that is a number", `{"sbds":[{"sbd_id":1}]}`, 400, oda.InvalidRequest, []string{"/sbds/0/sbd_id"}},
		{"an empty identifier", `{"sbds":[{"sbd_id":""}]}`, 400, oda.InvalidRequest, []string{"/sbds/0/sbd_id"}},
		{"an identifier outside the set", `{"sbds":[{"sbd_id":"a/b"}]}`, 400, oda.InvalidRequest, []string{"/sbds/0/sbd_id"}},
		{"a reserved identifier", `{"ebs":[{"eb_id":"create"}]}`, 400, oda.InvalidRequest, []string{"/ebs/0/eb_id"}},
		{"an identifier that is too long", `{"ebs":[{"eb_id":"` + strings.Repeat("a", 129) + `"}]}`, 400, oda.InvalidRequest, []string{"/ebs/0/eb_id"}},
		{"a record that is none", `{"ebs":[{"eb_id":"n","request_responses":[{}]}]}`, 400, oda.InvalidRequest, []string{"/ebs/0/request_responses/0"}},
		{"one entity twice", `{"sbds":[{"sbd_id":"n"},{"sbd_id":"m"},{"sbd_id":"n"}]}`, 422, oda.DuplicateEntity, []string{"/sbds/2"}},
		{"one entity twice, spelled otherwise", `{"sbds":[{"sbd_id":"n"},{"sbd_id":"\u006e"}]}`, 422, oda.DuplicateEntity, []string{"/sbds/1"}},
		{
			"several that do not match", `{"sbds":[{"sbd_id":"n"},` + stale + `,{"sbd_id":"b"}],"ebs":[{"eb_id":"e","metadata":null}]}`, 422, oda.MetadataMismatch,
			[]string{
				"/sbds/1/metadata/version",
				"/sbds/2/metadata/version", "/sbds/2/metadata/created_by", "/sbds/2/metadata/created_on", "/sbds/2/metadata/last_modified_by", "/sbds/2/metadata/last_modified_on",
				"/ebs/0/metadata/version", "/ebs/0/metadata/created_by", "/ebs/0/metadata/created_on", "/ebs/0/metadata/last_modified_by", "/ebs/0/metadata/last_modified_on",
			},
		},
		{"one of one that does not match", `{"sbds":[` + stale + `]}`, 422, oda.MetadataMismatch, []string{"/sbds/0/metadata/version"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			unchanged(t, a, func() {
				for _, path := range []string{"/", ""} {
					p := refused(t, a.Do("PUT", path, test.body), test.status, test.code)
					if diff := cmp.Diff(test.pointers, p.pointers()); diff != "" {
						t.Errorf("the faults (-want +got):\n%s", diff)
					}
					if test.status == 422 && !strings.Contains(p.Detail, "Nothing was stored") {
						t.Errorf("the detail is %q", p.Detail)
					}
				}
			})
		})
	}
	p := refused(t, a.Do("PUT", "/", `{"sbds":[{"sbd_id":"n"}],"ebs":[{"eb_id":"n"},{"eb_id":"e"},{"eb_id":"e"}]}`), 422, oda.DuplicateEntity)
	if diff := cmp.Diff([]oda.Fault{{Pointer: "/ebs/2", Detail: "ExecutionBlock e is already at /ebs/1"}}, p.Errors); diff != "" {
		t.Error(diff)
	}
}

// One request must not delay all others, nor take memory without bound.
func TestStoreSeveralIsBounded(t *testing.T) {
	a := env.Start(t)
	entities := func(collection, idField string, n int) string {
		var b strings.Builder
		b.WriteString(`"` + collection + `":[`)
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `{"%s":"%d"}`, idField, i)
		}
		return b.String() + "]"
	}
	unchanged(t, a, func() {
		refused(t, a.Do("PUT", "/", "{"+entities("sbds", "sbd_id", 10_001)+"}"), 400, oda.InvalidRequest, "at most 10000")
		refused(t, a.Do("PUT", "/", "{"+entities("sbds", "sbd_id", 5001)+","+entities("prjs", "prj_id", 5000)+"}"),
			400, oda.InvalidRequest, "at most 10,000", "10001")
		// As many as fit into 20 MiB. The server stops where the list is too long.
		many := "{" + entities("sbds", "sbd_id", 700_000) + "}"
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		request := must.Get(http.NewRequestWithContext(t.Context(), "PUT", a.URL()+"/", strings.NewReader(many)))(t)
		response, err := http.DefaultClient.Do(request) // the judge would take memory too
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		runtime.ReadMemStats(&after)
		if response.StatusCode != 400 {
			t.Errorf("the status is %d", response.StatusCode)
		}
		// The buffer for the body doubles, so reading takes at most four times its size.
		if took := after.TotalAlloc - before.TotalAlloc; took > uint64(5*len(many)) {
			t.Errorf("a body of %d bytes took %d bytes of memory", len(many), took)
		}
	})
	r := want(t, 200, a.Do("PUT", "/", "{"+entities("sbds", "sbd_id", 10_000)+"}"))
	t.Run("the problem too", func(t *testing.T) {
		p := refused(t, a.Do("PUT", "/", "{"+entities("sbds", "sbd_id", 250)+"}"), 422, oda.MetadataMismatch, "250 of 250 entities", "first 100")
		if len(p.Errors) != 500 || p.Errors[499].Pointer != "/sbds/99/metadata/last_modified_on" {
			t.Errorf("the problem lists %d faults, the last is %v", len(p.Errors), p.Errors[len(p.Errors)-1])
		}
		p = refused(t, a.Do("PUT", "/", "{"+entities("sbds", "sbd_id", 100)+"}"), 422, oda.MetadataMismatch, "100 of 100 entities")
		if strings.Contains(p.Detail, "first") {
			t.Errorf("the detail is %q", p.Detail)
		}
		twice := `{"prjs":[` + strings.TrimSuffix(strings.Repeat(`{"prj_id":"p"},`, 300), ",") + `]}`
		p = refused(t, a.Do("PUT", "/", twice), 422, oda.DuplicateEntity, "299 of 300", "first 100")
		if len(p.Errors) != 100 {
			t.Errorf("the problem lists %d faults", len(p.Errors))
		}
	})
	want(t, 200, a.Do("PUT", "/", r.Text()))
}
