package httpapi_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"oda"
	"oda/internal/test/env"
)

// The test follows the specification's tables for each kind, in the order in
// which a caller would use them.
func TestSpecificationTables(t *testing.T) {
	a := env.Start(t)
	for _, k := range kinds {
		t.Run(k.collection, func(t *testing.T) {
			collection := "/" + k.collection
			one := collection + "/" + k.collection + "-1"

			refused(t, a.Do("GET", one, ""), 404, oda.NotFound, "could not be found")
			if got := list(t, a, k.collection, "user=anna"); len(got) != 0 {
				t.Errorf("an empty archive lists %v", got)
			}
			refused(t, a.Do("GET", collection, ""), 400, oda.InvalidQuery)

			put := want(t, 200, a.Do("PUT", one, `{"note":"first"}`, "X-Forwarded-User", "anna"))
			if m := metadataOf(t, put.Body); m.Version != 1 || m.CreatedBy != "anna" {
				t.Errorf("a first store makes %+v", m)
			}
			got := want(t, 200, a.Do("GET", one, ""))
			if got.Text() != put.Text() {
				t.Errorf("GET answers %s, PUT answered %s", got.Body, put.Body)
			}
			update := want(t, 200, a.Do("PUT", one, strings.Replace(got.Text(), "first", "second", 1)))
			if m := metadataOf(t, update.Body); m.Version != 2 {
				t.Errorf("an update makes version %d", m.Version)
			}
			refused(t, a.Do("PUT", one, got.Text()), 422, oda.MetadataMismatch)
			refused(t, a.Do("PUT", one, `{"`+k.idField+`":"other"}`), 422, oda.IdentifierMismatch)
			refused(t, a.Do("PUT", one, `[]`), 400, oda.InvalidRequest)

			created := want(t, 200, a.Do("POST", collection, `{"note":"made"}`, "X-Forwarded-User", "anna"))
			id := member(t, created.Body, k.idField)
			if want(t, 200, a.Do("GET", collection+"/"+id, "")).Text() != created.Text() {
				t.Error("GET does not answer what POST answered")
			}
			refused(t, a.Do("POST", collection, `"text"`), 400, oda.InvalidRequest)
			if got, want := list(t, a, k.collection, "user=anna"), []string{k.collection + "-1", id}; !slices.Equal(got, want) {
				t.Errorf("the list is %v, want %v", got, want)
			}
		})
	}
	for _, method := range []string{"PATCH", "POST"} {
		t.Run(method+" request_response", func(t *testing.T) {
			created := want(t, 200, a.Do("POST", "/ebs/create", ""))
			id := member(t, created.Body, "eb_id")
			if !strings.Contains(created.Text(), `"request_responses":[]`) {
				t.Errorf("the new block is not empty: %s", created.Body)
			}
			path := "/ebs/" + id + "/request_response"
			want(t, 200, a.Do(method, path, `{"request":"observe","response":{"result":"done"}}`))
			refused(t, a.Do(method, path, `{}`), 400, oda.InvalidRequest)
			refused(t, a.Do(method, "/ebs/unknown/request_response", `{"request":"observe"}`), 404, oda.NotFound, "could not be found")
			block := want(t, 200, a.Do("GET", "/ebs/"+id, ""))
			if !strings.Contains(block.Text(), `"request_responses":[{"request":"observe","response":{"result":"done"}}]`) {
				t.Errorf("the block is %s", block.Body)
			}
		})
	}
	t.Run("PUT several", func(t *testing.T) {
		want(t, 200, a.Do("PUT", "/", `{"sbds":[{"sbd_id":"several-1"}],"prjs":[{"prj_id":"several-1"}]}`))
		want(t, 200, a.Do("GET", "/sbds/several-1", ""))
		want(t, 200, a.Do("GET", "/prjs/several-1", ""))
	})
	t.Run("GET the home page", func(t *testing.T) {
		r := want(t, 200, a.Do("GET", "/", ""))
		if !strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") || !strings.Contains(r.Text(), "</html>") {
			t.Errorf("the home page is %s: %.100s", r.Header.Get("Content-Type"), r.Body)
		}
	})
	t.Run("GET the interactive description", func(t *testing.T) {
		r := want(t, 200, a.Do("GET", "/ui", ""))
		if !strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") {
			t.Errorf("the page is %s", r.Header.Get("Content-Type"))
		}
		want(t, 200, a.Do("GET", "/ui/swagger-ui.css", ""))
		refused(t, a.Do("GET", "/ui/nothing.css", ""), 404, oda.NoSuchPath)
	})
	t.Run("GET the description", func(t *testing.T) {
		r := want(t, 200, a.Do("GET", "/openapi.json", ""))
		var doc struct{ Servers []struct{ URL string } }
		if err := json.Unmarshal(r.Body, &doc); err != nil || len(doc.Servers) != 1 || doc.Servers[0].URL != "../../api/v1" {
			t.Errorf("the servers are %+v, %v", doc.Servers, err)
		}
		want(t, 200, a.Do("GET", "/openapi.yaml", ""))
		want(t, http.StatusNotModified, a.Do("GET", "/openapi.json", "", "If-None-Match", r.Header.Get("ETag")))
	})
}

// HEAD works wherever GET does, with the same headers and no body.
func TestHead(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/sbds/a", `{}`)
	for _, path := range []string{"/problems", "/sbds/a", "/sbds?" + everything, "/ui", "/openapi.json"} {
		get, head := a.Do("GET", path, ""), want(t, 200, a.Do("HEAD", path, ""))
		if len(head.Raw) != 0 {
			t.Errorf("%s: HEAD has a body", path)
		}
		for _, name := range []string{"Content-Type", "Content-Length", "ETag", "Vary"} {
			if head.Header.Get(name) != get.Header.Get(name) {
				t.Errorf("%s: %s is %q with HEAD, %q with GET", path, name, head.Header.Get(name), get.Header.Get(name))
			}
		}
	}
	want(t, 404, a.Do("HEAD", "/sbds/b", ""))
	want(t, 405, a.Do("HEAD", "/ebs/a/request_response", ""))
}
