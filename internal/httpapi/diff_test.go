package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"

	"oda"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

const patchType = "application/json-patch+json"

func TestADiffTurnsOneVersionIntoAnother(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/sbds/a", `{"name":"M51","freq":0.350000000000000000001,"targets":[{"id":"x","ra":1.0},{"id":"y","ra":2}]}`, user, "anna")
	change(t, a, "/sbds/a", `"ra":2`, `"ra":2.5`)
	change(t, a, "/sbds/a", `[{`, `[{"id":"new"},{`)
	change(t, a, "/sbds/a", `"M51"`, `"M101"`)
	documents := map[int][]byte{}
	for n := 1; n <= 4; n++ {
		documents[n] = a.Do("GET", fmt.Sprintf("/sbds/a/versions/%d", n), "").Body
	}
	for query, versions := range map[string][2]int{
		"": {3, 4}, "?from=1": {1, 4}, "?to=2": {1, 2}, "?from=1&to=3": {1, 3}, "?from=4&to=1": {4, 1}, "?from=2&to=2": {2, 2},
	} {
		r := want(t, 200, a.Do("GET", "/sbds/a/diff"+query, ""))
		patch, err := jsonpatch.DecodePatch(r.Body)
		if err != nil {
			t.Fatalf("%s: %v: %s", query, err, r.Text())
		}
		got, err := patch.Apply(documents[versions[0]])
		if err != nil || !jsonpatch.Equal(got, documents[versions[1]]) {
			t.Errorf("%s: %s\nturns %s\ninto  %s\nwant  %s, %v", query, r.Text(), documents[versions[0]], got, documents[versions[1]], err)
		}
		if r.Header.Get("Content-Type") != patchType || r.Header.Get("Vary") != "Accept, Accept-Encoding" || r.Header.Get("Cache-Control") != revalidated {
			t.Errorf("%s: %v", query, r.Header)
		}
	}
	changed := func(query string) (places []string) {
		var operations []struct{ Op, Path string }
		must.Do(t, json.Unmarshal(a.Do("GET", "/sbds/a/diff"+query, "").Body, &operations))
		for _, o := range operations {
			if !strings.HasPrefix(o.Path, "/metadata/") {
				places = append(places, o.Op+" "+o.Path)
			}
		}
		return places
	}
	for query, want := range map[string][]string{
		"?to=2": {"replace /targets/1/ra"}, "?to=3": {"add /targets/0"}, "?from=3&to=2": {"remove /targets/0"}, "?from=2&to=2": nil,
		"?from=1": {"replace /name", "add /targets/0", "replace /targets/2/ra"},
	} {
		if diff := cmp.Diff(want, changed(query)); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
}

func TestAPersonGetsAUnifiedDiff(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/sbds/a", `{"name":"M51","freq":0.350e9,"metadata":{"pdm_version":"1"}}`)
	m := metadataOf(t, a.Do("GET", "/sbds/a", "").Body)
	after := metadataOf(t, change(t, a, "/sbds/a", "M51", "M101").Body)
	expected := "--- sbds/a/versions/1\t" + m.LastModifiedOn + "\n+++ sbds/a/versions/2\t" + after.LastModifiedOn + `
@@ -1,6 +1,6 @@
 {
   "sbd_id": "a",
-  "name": "M51",
+  "name": "M101",
   "freq": 0.350e9,
   "metadata": {
     "pdm_version": "1"
`
	for accept, isText := range map[string]bool{
		"text/plain": true, "text/*": true, "Text/Plain; charset=utf-8": true, "text/plain, */*;q=0.1": true, "application/json;q=0.3, text/plain;q=0.4": true,
		"": false, "*/*": false, patchType: false, "application/json": false, "text/html, application/xhtml+xml, */*;q=0.8": false,
		"text/plain;q=0.5, application/json-patch+json": false, "text/plain;q=0": false, "text/plain;q=0.5, application/*": false, "rubbish": false,
	} {
		r := want(t, 200, a.Do("GET", "/sbds/a/diff", "", "Accept", accept))
		if got := r.Header.Get("Content-Type") == "text/plain; charset=utf-8"; got != isText || r.Header.Get("Vary") != "Accept, Accept-Encoding" {
			t.Errorf("%q: %v", accept, r.Header)
		}
		if isText {
			if diff := cmp.Diff(expected, r.Text()); diff != "" {
				t.Errorf("%q:\n%s", accept, diff)
			}
		}
	}
	change(t, a, "/sbds/a", "{", "{")
	if r := want(t, 200, a.Do("GET", "/sbds/a/diff", "", "Accept", "text/plain")); r.Text() != "" {
		t.Errorf("only managed fields have changed, but the diff is\n%s", r.Text())
	}
}

func TestADiffNeedsTwoVersions(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/sbds/a", `{}`)
	for _, query := range []string{"", "?to=1"} {
		refused(t, a.Do("GET", "/sbds/a/diff"+query, ""), 400, oda.InvalidQuery, "no version before version 1")
	}
	for _, query := range []string{"?from=0", "?from=0&to=1", "?from=x", "?to=-1", "?from=1&from=1", "?from=", "?to=9223372036854775808"} {
		refused(t, a.Do("GET", "/sbds/a/diff"+query, ""), 400, oda.InvalidRequest)
	}
	for _, query := range []string{"?to=2", "?from=2", "?from=1&to=7", "?from=7&to=1", "?from=1&to=9223372036854775807"} {
		refused(t, a.Do("GET", "/sbds/a/diff"+query, ""), 404, oda.NotFound, "could not be found")
	}
	if r := want(t, 200, a.Do("GET", "/sbds/a/diff?from=1", "")); r.Text() != "[]" {
		t.Errorf("got %s", r.Text())
	}
}

func TestLargeDocumentsAreNotCompared(t *testing.T) {
	a := env.Start(t)
	text := func(mib int) string { return `{"text":"` + strings.Repeat("x", mib<<20) + `"}` }
	store(t, a, "/sbds/a", text(7))
	want(t, 200, a.Do("PUT", "/sbds/a", strings.Replace(a.Do("GET", "/sbds/a", "").Text(), "x", "y", 1)))
	want(t, 200, a.Do("GET", "/sbds/a/diff", ""))
	m := metadataOf(t, a.Do("GET", "/sbds/a", "").Body)
	store(t, a, "/sbds/a", strings.Replace(text(10), "{", `{"metadata":`+m.text()+",", 1))
	refused(t, a.Do("GET", "/sbds/a/diff", ""), 422, oda.DiffTooLarge)

	// Deep nesting makes the text long, although the patch is short.
	deep := func(n string) string {
		return `{"a":` + strings.Repeat("[", 90) + strings.Repeat(n+",", 300_000) + n + strings.Repeat("]", 90) + "}"
	}
	store(t, a, "/sbds/deep", deep("1"))
	m = metadataOf(t, a.Do("GET", "/sbds/deep", "").Body)
	store(t, a, "/sbds/deep", strings.Replace(deep("2"), "{", `{"metadata":`+m.text()+",", 1))
	refused(t, a.Do("GET", "/sbds/deep/diff", "", "Accept", "text/plain"), 422, oda.DiffTooLarge, "As text", "JSON Patch")
	want(t, 200, a.Do("GET", "/sbds/deep/diff", ""))

	// Records count, although they are not in the stored text.
	store(t, a, "/ebs/b", `{}`)
	for i := range 9 {
		want(t, 200, a.Do("POST", "/ebs/b/request_response", fmt.Sprintf(`{"request":"%d","note":%q}`, i, strings.Repeat("x", 1<<20))))
	}
	m = metadataOf(t, a.Do("GET", "/ebs/b", "").Body)
	want(t, 200, a.Do("PUT", "/ebs/b?records=keep", `{"metadata":`+m.text()+`}`))
	refused(t, a.Do("GET", "/ebs/b/diff", ""), 422, oda.DiffTooLarge)
	refused(t, a.Do("GET", "/ebs/b/diff", "", "Accept", "text/plain"), 422, oda.DiffTooLarge)
}

func TestTheMemoryOfAllComparisonsIsBounded(t *testing.T) {
	a := tight(t, 50*time.Millisecond, time.Hour)
	store(t, a, "/sbds/a", `{"text":"`+strings.Repeat("x", 2<<20)+`"}`)
	want(t, 200, a.Do("PUT", "/sbds/a", a.Do("GET", "/sbds/a", "").Text()))
	want(t, 200, a.Do("GET", "/sbds/a/diff", "")) // alone
	asks(t, a, "127.0.0.2")
	awaitHeld(t, a, largeDocument)
	r := a.Do("GET", "/sbds/a/diff", "")
	if refused(t, r, 503, oda.Overloaded, "memory"); r.Header.Get("Retry-After") == "" {
		t.Error("the answer does not say when to try again")
	}
	store(t, a, "/sbds/b", `{"text":"`+strings.Repeat("x", 100<<10)+`"}`)
	want(t, 200, a.Do("PUT", "/sbds/b", a.Do("GET", "/sbds/b", "").Text()))
	for range 10 { // each gives its memory back
		want(t, 200, a.Do("GET", "/sbds/b/diff", ""))
	}
}
