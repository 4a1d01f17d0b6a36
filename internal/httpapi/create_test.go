package httpapi_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"oda"
	"oda/internal/test/env"
)

// A creation always gets a generated identifier, in the archive's own form, and
// is stored as version 1.
func TestCreationTakesAGeneratedIdentifier(t *testing.T) {
	a := env.Start(t)
	for _, k := range kinds {
		form := regexp.MustCompile(`^` + strings.TrimSuffix(k.idField, "_id") + `-[0-9a-hjkmnp-tv-z]{5,13}$`)
		seen := map[string]bool{}
		for _, sent := range []string{
			`{}`, `{"a":1}`, `{"` + k.idField + `":null}`, `{"` + k.idField + `":"mine"}`, `{"` + k.idField + `":"no identifier at all/"}`,
			`{"metadata":{"version":9,"created_on":"2001-01-01","last_modified_by":"x"}}`,
		} {
			r := want(t, 200, a.Do("POST", "/"+k.collection, sent))
			id := member(t, r.Body, k.idField)
			if !form.MatchString(id) || seen[id] {
				t.Errorf("%s: the identifier is %q", k.collection, id)
			}
			seen[id] = true
			if m := metadataOf(t, r.Body); m.Version != 1 || m.CreatedBy != oda.DefaultUser || m.CreatedOn != m.LastModifiedOn || strings.HasPrefix(m.CreatedOn, "2001") {
				t.Errorf("%s: the metadata is %+v", k.collection, m)
			}
			get := want(t, 200, a.Do("GET", "/"+k.collection+"/"+id, ""))
			if get.Text() != r.Text() || get.Header.Get("ETag") != r.Header.Get("ETag") {
				t.Errorf("%s: GET answers %s, POST answered %s", k.collection, get.Body, r.Body)
			}
		}
		if got := list(t, a, k.collection, everything); len(got) != len(seen) {
			t.Errorf("%s: %d are listed, %d were created", k.collection, len(got), len(seen))
		}
	}
}

func TestEmptyExecutionBlock(t *testing.T) {
	a := env.Start(t)
	for _, test := range []struct{ name, sent, kept string }{
		{"no body", ``, `{"eb_id":"ID","request_responses":[],"metadata":M}`},
		{"null, which generated clients send for no body", "null\n", `{"eb_id":"ID","request_responses":[],"metadata":M}`},
		{"an empty object", `{}`, `{"eb_id":"ID","request_responses":[],"metadata":M}`},
		{"members are kept", `{"sbi_ref":"sbi-1","mine":[1.0]}`, `{"eb_id":"ID","sbi_ref":"sbi-1","mine":[1.0],"request_responses":[],"metadata":M}`},
		{"an identifier is replaced", `{"eb_id":"mine"}`, `{"eb_id":"ID","request_responses":[],"metadata":M}`},
		{
			"metadata is replaced", `{"metadata":{"version":5,"created_by":"u","created_on":null,"last_modified_by":"x","last_modified_on":"2001-01-01"}}`,
			`{"eb_id":"ID","metadata":M,"request_responses":[]}`,
		},
		{"an empty list", `{"request_responses":[ ],"a":1}`, `{"eb_id":"ID","request_responses":[],"a":1,"metadata":M}`},
		{"a list of null", `{"request_responses":null}`, `{"eb_id":"ID","request_responses":[],"metadata":M}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := want(t, 200, a.Do("POST", "/ebs/create", test.sent, "X-Forwarded-User", "u"))
			id := member(t, r.Body, "eb_id")
			kept := strings.NewReplacer("ID", id, "M", metadataOf(t, r.Body).text()).Replace(test.kept)
			if r.Text() != kept {
				t.Errorf("the answer is\n%s, want\n%s", r.Body, kept)
			}
			if block(t, a, id) != r.Text() {
				t.Error("GET does not answer what POST answered")
			}
			if got := record(t, a, "POST", id, `{"request":"a"}`); got.Sequence != 1 {
				t.Errorf("the first record has the sequence %d", got.Sequence)
			}
		})
	}
	for _, test := range []struct {
		name, sent string
		code       oda.Code
		pointer    string
	}{
		{"records", `{"request_responses":[{"request":"a"}]}`, oda.InvalidRequest, "/request_responses"},
		{"a list that is a text", `{"request_responses":"none"}`, oda.InvalidRequest, "/request_responses"},
		{"an identifier that is a number", `{"eb_id":1}`, oda.InvalidRequest, "/eb_id"},
		{"a reference that is a number", `{"sbd_ref":1}`, oda.InvalidRequest, "/sbd_ref"},
		{"a list", `[]`, oda.InvalidRequest, ""},
		{"a text", `"x"`, oda.InvalidRequest, ""},
		{"nothing but white space", " \n", oda.InvalidJSON, ""},
		{"half a document", `{"a":`, oda.InvalidJSON, "/a"},
	} {
		t.Run("refuses "+test.name, func(t *testing.T) {
			unchanged(t, a, func() {
				p := refused(t, a.Do("POST", "/ebs/create", test.sent), 400, test.code)
				if !slices.Equal(p.pointers(), []string{test.pointer}) {
					t.Errorf("the faults are at %q", p.pointers())
				}
			})
		})
	}
}
