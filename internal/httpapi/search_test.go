package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oda"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// found is a page of a search on the wire.
type found struct {
	Items []json.RawMessage `json:"items"`
	Next  *string           `json:"next"`
}

// search returns a page. The parameters are name, value, name, value...
func search(t testing.TB, a *env.Archive, collection string, params ...string) (found, *env.Reply) {
	t.Helper()
	query := url.Values{}
	for i := 0; i+1 < len(params); i += 2 {
		query.Add(params[i], params[i+1])
	}
	r := want(t, 200, a.Do("GET", "/"+collection+"/search?"+query.Encode(), ""))
	var page found
	if err := json.Unmarshal(r.Body, &page); err != nil || page.Items == nil {
		t.Fatalf("the answer is %s: %v", r.Body, err)
	}
	return page, r
}

func TestASearchReturnsSummaries(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/sbds/sbd-1", `{"telescope":"ska_mid","name":"Calibrator <scan> & more","prj_ref":"prj-1",
		"targets":[{"name":"Cen A","reference_coordinate":{"ra_str":"13:25:27.6","dec_str":"-43:01:08.4"}}]}`, "X-Forwarded-User", "anna")
	m := store(t, a, "/ebs/eb-1", `{"sbd_ref":"sbd-1","sbd_version":3,"sbi_ref":null}`)
	page, r := search(t, a, "ebs")
	want := fmt.Sprintf(`{"items":[{"kind":"ebs","id":"eb-1","metadata":%s,"telescope":null,"name":null,"targets":[],`+
		`"references":[{"kind":"sbds","id":"sbd-1","version":3,"field":"sbd_ref"}],"status":null}],"next":null}`, m.text())
	if !sameJSON(t, r.Body, []byte(want)) {
		t.Errorf("the answer is %s, want %s", r.Body, want)
	}
	if r.Header.Get("Link") != "" || r.Header.Get("Cache-Control") != "private, no-cache" || r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("the headers are %v", r.Header)
	}
	if page, _ = search(t, a, "sbds"); len(page.Items) != 1 {
		t.Fatalf("found %d", len(page.Items))
	}
	var item struct {
		Telescope, Name string
		Targets         []struct {
			Name    *string
			RA, Dec float64
		}
		References []struct {
			Kind, ID, Field string
			Version         *int64
		}
	}
	must.Do(t, json.Unmarshal(page.Items[0], &item))
	if item.Telescope != "ska_mid" || item.Name != "Calibrator <scan> & more" || len(item.Targets) != 1 || *item.Targets[0].Name != "Cen A" ||
		item.Targets[0].RA < 201.364 || item.Targets[0].RA > 201.366 || item.Targets[0].Dec > -43.018 || item.Targets[0].Dec < -43.020 {
		t.Errorf("the summary is %s", page.Items[0])
	}
	if len(item.References) != 1 || item.References[0].Kind != "prjs" || item.References[0].Version != nil || item.References[0].Field != "prj_ref" {
		t.Errorf("the references are %s", page.Items[0])
	}
}

// sameJSON compares two JSON texts as values.
func sameJSON(t testing.TB, a, b []byte) bool {
	t.Helper()
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		t.Fatalf("one of these is not JSON: %s %s", a, b)
	}
	return cmp.Equal(x, y)
}

func TestASearchReturnsIdentifiersOrDocuments(t *testing.T) {
	a := env.Start(t)
	for _, id := range []string{"b", "a"} {
		store(t, a, "/ebs/"+id, `{ "x": 1.50,"request_responses":[{"request":"r"}]}`)
	}
	_, r := search(t, a, "ebs", "fields", "id")
	if r.Text() != `{"items":["a","b"],"next":null}` {
		t.Errorf("identifiers are %s", r.Body)
	}
	_, r = search(t, a, "ebs", "fields", "document", "sort", "id")
	want := `{"items":[` + a.Do("GET", "/ebs/a", "").Text() + "," + a.Do("GET", "/ebs/b", "").Text() + `],"next":null}`
	if r.Text() != want {
		t.Errorf("documents are %s, want %s", r.Body, want)
	}
	for _, fields := range []string{"id", "summary", "document"} {
		if _, r := search(t, a, "ebs", "fields", fields, "q", "nothing"); r.Text() != `{"items":[],"next":null}` {
			t.Errorf("an empty page with fields=%s is %s", fields, r.Body)
		}
	}
}

// The cursor is in the page and in the Link header. Which pages there are is tested
// with the engines.
func TestAPageOfASearchLeadsToTheNext(t *testing.T) {
	a := env.Start(t)
	for _, id := range []string{"a", "b", "c"} {
		store(t, a, "/sbds/"+id, `{"name":"page"}`)
	}
	first, r := search(t, a, "sbds", "fields", "id", "limit", "2", "sort", "id", "q", "page")
	next := link(t, r)
	if len(first.Items) != 2 || first.Next == nil || next == nil || next.Query().Get("cursor") != *first.Next {
		t.Fatalf("%s leads to %v", r.Body, next)
	}
	for _, path := range []string{"/sbds/" + next.String(), "/sbds/search?cursor=" + *first.Next} {
		if r := want(t, 200, a.Do("GET", path, "")); r.Text() != `{"items":["c"],"next":null}` || r.Header.Get("Link") != "" {
			t.Errorf("%s answers %s, %v", path, r.Body, r.Header)
		}
	}
}

func TestInvalidSearchesAreRefused(t *testing.T) {
	a := env.Start(t)
	const where = "where=%2Fa+%3D+1"
	want(t, 200, a.Do("GET", "/sbds/search?"+where+strings.Repeat("&"+where, 15), ""))
	for query, words := range map[string]string{
		"telescop=ska_mid":                    "Did you mean telescope",
		"Q=x":                                 "Did you mean q",
		"q=":                                  "q",
		"telescope=a&telescope=b":             "2 times",
		"limit=1001":                          "limit",
		"limit=0":                             "limit",
		"sort=name":                           "sort",
		"fields=everything":                   "fields",
		"cone=":                               "cone",
		"cursor=rubbish":                      "not a cursor",
		where + strings.Repeat("&"+where, 16): "at most 16 conditions",
		"created_after=now":                   "created_after: Must be a time, such as 2026-01-31T12:30:00Z",
		"last_modified_before=2026-13":        "last_modified_before: Must be a time, such as 2026-01-31T12:30:00Z",
		"created_before=":                     "created_before: Must be a time, such as 2026-01-31T12:30:00Z",
	} {
		p := a.Do("GET", "/sbds/search?"+query, "")
		if p.Status != 400 || !strings.Contains(p.Text(), words) {
			t.Errorf("%s: %d %s", query, p.Status, p.Body)
		}
	}
	// Nothing can be stored under the path of a search.
	refused(t, a.Do("PUT", "/sbds/search", `{}`), 400, oda.InvalidIdentifier)
	for _, method := range []string{"POST", "DELETE", "PATCH"} {
		if r := a.Do(method, "/ebs/search", `{}`); r.Status != 405 || !strings.Contains(r.Header.Get("Allow"), "GET") {
			t.Errorf("%s: %d, %s", method, r.Status, r.Header.Get("Allow"))
		}
	}
	if r := a.Do("GET", "/sbds/search", "", "If-Match", `"1-1"`); r.Status != 400 {
		t.Errorf("If-Match: %d %s", r.Status, r.Body)
	}
}

func TestSearchAnswersAreCompressedAndHaveHeads(t *testing.T) {
	a := env.Start(t)
	for i := range 30 {
		store(t, a, fmt.Sprintf("/sbds/s%d", i), `{"name":"`+strings.Repeat("long ", 40)+`"}`)
	}
	for _, fields := range []string{"id", "summary", "document"} {
		path := "/sbds/search?limit=20&fields=" + fields
		plain := want(t, 200, a.Do("GET", path, ""))
		for _, encoding := range []string{"gzip", "zstd"} {
			if r := want(t, 200, a.Do("GET", path, "", "Accept-Encoding", encoding)); len(plain.Body) > 1024 && r.Header.Get("Content-Encoding") != encoding {
				t.Errorf("%s is not compressed by %s", fields, encoding)
			}
		}
		head := want(t, 200, a.Do("HEAD", path, ""))
		if len(head.Raw) != 0 || head.Header.Get("Link") != plain.Header.Get("Link") || head.Header.Get("Content-Length") != plain.Header.Get("Content-Length") {
			t.Errorf("%s: HEAD answers %v and %d bytes", fields, head.Header, len(head.Raw))
		}
	}
}

// A page of documents is streamed. It is never in memory as a whole.
func TestAPageOfLargeDocumentsTakesLittleMemory(t *testing.T) {
	a := env.Start(t)
	const n, size = 16, 1 << 20
	for i := range n {
		store(t, a, fmt.Sprintf("/sbds/s%d", i), `{"text":"`+strings.Repeat("0123456789abcdef", size/16)+`"}`)
	}
	var most atomic.Uint64
	watch := func() {
		runtime.GC() // so that garbage does not count
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		most.Store(max(most.Load(), m.HeapAlloc))
	}
	watch()
	before := most.Load()
	r := must.Get(http.Get(a.URL() + "/sbds/search?fields=document"))(t)
	defer r.Body.Close()
	total := int64(0)
	for {
		n, err := io.CopyN(io.Discard, r.Body, size)
		total += n
		watch()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if total < n*size {
		t.Fatalf("the page has %d bytes", total)
	}
	if grown := int64(most.Load()) - int64(before); grown > n*size*3/4 {
		t.Errorf("%d bytes took %d bytes of memory", total, grown)
	}
}

// Documents may have thousands of references. Neither a page of summaries nor what
// the search reads for it is in memory as a whole.
func TestAPageOfLongSummariesTakesLittleMemory(t *testing.T) {
	a := env.Start(t)
	const n = 60
	text := `{"obs_blocks":[{"sbd_ids":["other"` + strings.Repeat(`,"hub"`, 9_999) + `]}]}`
	for i := range n {
		store(t, a, fmt.Sprintf("/prjs/p%d", i), text)
	}
	for _, query := range []string{"ref=hub&limit=1000", "ref=hub&fields=id&limit=1000", "limit=1000", "user=DefaultUser&sort=id&limit=1000"} {
		inUse := func() int64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		before, most, items := inUse(), int64(0), 0
		for path := "/prjs/search?" + query; path != ""; {
			r := must.Get(http.Get(a.URL() + path))(t)
			chunk, id := make([]byte, 4<<20), []byte(`"p`)
			for end := error(nil); end == nil; {
				var got int
				got, end = io.ReadFull(r.Body, chunk)
				items += bytes.Count(chunk[:got], id)
				most = max(most, inUse())
			}
			r.Body.Close()
			path = ""
			if link := r.Header.Get("Link"); link != "" {
				path = "/prjs/" + link[1:strings.Index(link, ">")]
			}
		}
		if grown := most - before; items < n || grown > 56<<20 {
			t.Errorf("%s: %d items took %d MiB", query, items, grown>>20)
		}
	}
}

// Other requests are answered while searches walk through the archive.
func TestSlowSearchesDoNotDelayOtherRequests(t *testing.T) {
	a := env.Start(t)
	for i := range 100 {
		store(t, a, fmt.Sprintf("/sbds/s%d", i), `{"list":[`+strings.Repeat(`{"a":[1,2,3]},`, 300)+`0]}`)
	}
	done := make(chan struct{})
	searching := make(chan int, 6)
	for range cap(searching) {
		go func() {
			n := 0
			for {
				select {
				case <-done:
					searching <- n
					return
				default:
				}
				r := a.Do("GET", "/sbds/search?where="+url.QueryEscape(`/list/*/a/*/b = 1`), "")
				if r.Status != 200 && r.Status != 503 {
					t.Errorf("a search answers %d %s", r.Status, r.Body)
				}
				n++
			}
		}()
	}
	for i := range 20 {
		began := time.Now()
		want(t, 200, a.Do("GET", fmt.Sprintf("/sbds/s%d", i), ""))
		want(t, 200, a.Do("PUT", fmt.Sprintf("/sbds/new%d", i), `{}`))
		if took := time.Since(began); took > env.AtMost(5*time.Second) {
			t.Errorf("reading and storing took %v", took)
		}
	}
	close(done)
	for range cap(searching) {
		if <-searching == 0 {
			t.Error("a search was never answered")
		}
	}
}
