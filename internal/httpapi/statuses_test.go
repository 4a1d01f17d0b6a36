package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oda"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// members returns the members of an object.
func members(t testing.TB, r *env.Reply) map[string]any {
	t.Helper()
	var all map[string]any
	if err := json.Unmarshal(want(t, 200, r).Body, &all); err != nil {
		t.Fatalf("%v: %s", err, r.Body)
	}
	return all
}

func TestAStatusIsSaidOfEachKind(t *testing.T) {
	a := env.Start(t)
	for _, k := range kinds {
		t.Run(k.collection, func(t *testing.T) {
			path := "/" + k.collection + "/x"
			store(t, a, path, `{"status":"Fully_Observed"}`)
			document := a.Do("GET", path, "")
			none := members(t, a.Do("GET", path+"/status", ""))
			if diff := cmp.Diff(map[string]any{
				"kind": k.collection, "id": "x", "sequence": 0.0, "status": "Fully_Observed", "class": "done", "reason": nil, "at": nil,
				"version": 1.0, "previous": nil, "by": nil, "on": nil,
			}, none); diff != "" {
				t.Errorf("what the document says (-want +got):\n%s", diff)
			}
			const body = `{"status":"Observing failed","reason":"the wind\n","at":"2026-03-01 21:30","version":1,"previous":"fully observed"}`
			r := a.Do("POST", path+"/status", body, user, "anna")
			said := members(t, r)
			if on, ok := said["on"].(string); !ok || on < "2026-03-01T21:30" {
				t.Errorf("it was said on %v", said["on"])
			}
			delete(said, "on")
			if diff := cmp.Diff(map[string]any{
				"kind": k.collection, "id": "x", "sequence": 1.0, "status": "Observing failed", "class": "failed", "reason": "the wind\n",
				"at": "2026-03-01T21:30:00.000000Z", "version": 1.0, "previous": "Fully_Observed", "by": "anna",
			}, said); diff != "" {
				t.Errorf("the entry (-want +got):\n%s", diff)
			}
			if now := a.Do("GET", path+"/status", ""); now.Text() != r.Text() {
				t.Errorf("the status is %s, and %s was said", now.Body, r.Body)
			}
			if head := want(t, 200, a.Do("HEAD", path+"/status", "")); len(head.Raw) > 0 || head.Header.Get("Content-Length") != fmt.Sprint(len(r.Raw)) {
				t.Errorf("HEAD answers %v", head.Header)
			}
			if after := a.Do("GET", path, ""); after.Text() != document.Text() || after.Header.Get("ETag") != document.Header.Get("ETag") {
				t.Error("a status changes the document")
			}
		})
	}
	refused(t, a.Do("DELETE", "/ebs/x/status", ""), 405, oda.WrongMethod)
	for _, path := range []string{"/ebs/y/status", "/ebs/y/status/history", "/ebs/-/status", "/ebs/-/status/history"} {
		refused(t, a.Do("GET", path, ""), 404, oda.NotFound, "could not be found")
	}
	for _, id := range []string{"y", "-", "create"} {
		refused(t, a.Do("POST", "/ebs/"+id+"/status", `{"status":"a"}`), 404, oda.NotFound, "could not be found")
	}
}

// What is not said is as if it were null.
func TestAStatusWithNulls(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/ebs/x", `{}`)
	said := members(t, a.Do("POST", "/ebs/x/status", `{"status":"Done","class":null,"reason":null,"at":null,"version":null,"previous":null}`))
	if said["class"] != "done" || said["reason"] != nil || said["at"] != said["on"] || said["version"] != 1.0 {
		t.Errorf("with nulls: %v", said)
	}
	if said := members(t, a.Do("POST", "/ebs/x/status", `{"status":"rained","class":"stopped","at":"9999-12-31T23:59:59-05:00","version":1e0}`)); said["class"] != "stopped" || said["at"] != said["on"] {
		t.Errorf("the class is not the given one, or the time is to come: %v", said)
	}
	refused(t, a.Do("POST", "/ebs/x/status", `{"status":"Done","previous":null}`), 422, oda.StatusMismatch, "none")
}

func TestABadStatusIsRefused(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/ebs/x", `{}`)
	want(t, 200, a.Do("POST", "/ebs/x/status", `{"status":"Aborted"}`))
	for _, test := range []struct {
		body    string
		status  int
		code    oda.Code
		pointer string
	}{
		{`{}`, 400, oda.InvalidRequest, ""},
		{`{"status":null}`, 400, oda.InvalidRequest, "/status"},
		{`{"status":1}`, 400, oda.InvalidRequest, "/status"},
		{`{"status":""}`, 400, oda.InvalidRequest, "/status"},
		{`{"status":"` + strings.Repeat("é", 65) + `"}`, 400, oda.InvalidRequest, "/status"},
		{`{"status":"a\u0000"}`, 400, oda.InvalidRequest, "/status"},
		{`{"status":"a\nb"}`, 400, oda.InvalidRequest, "/status"},
		{`{"status":"a\u0085"}`, 400, oda.InvalidRequest, "/status"},
		{`{"status":"a","class":"finished"}`, 400, oda.InvalidRequest, "/class"},
		{`{"status":"a","class":""}`, 400, oda.InvalidRequest, "/class"},
		{`{"status":"a","class":"Done"}`, 400, oda.InvalidRequest, "/class"},
		{`{"status":"a","reason":["x"]}`, 400, oda.InvalidRequest, "/reason"},
		{`{"status":"a","reason":"` + strings.Repeat("é", 2001) + `"}`, 400, oda.InvalidRequest, "/reason"},
		{`{"status":"a","reason":"\u0007"}`, 400, oda.InvalidRequest, "/reason"},
		{`{"status":"a","at":"yesterday"}`, 400, oda.InvalidRequest, "/at"},
		{`{"status":"a","at":"2026-02-30"}`, 400, oda.InvalidRequest, "/at"},
		{`{"status":"a","at":0}`, 400, oda.InvalidRequest, "/at"},
		{`{"status":"a","version":0}`, 400, oda.InvalidRequest, "/version"},
		{`{"status":"a","version":-1}`, 400, oda.InvalidRequest, "/version"},
		{`{"status":"a","version":1.5}`, 400, oda.InvalidRequest, "/version"},
		{`{"status":"a","version":"1"}`, 400, oda.InvalidRequest, "/version"},
		{`{"status":"a","version":9223372036854775808}`, 422, oda.UnknownVersion, "/version"},
		{`{"status":"a","previous":""}`, 400, oda.InvalidRequest, "/previous"},
		{`{"status":"a","previous":false}`, 400, oda.InvalidRequest, "/previous"},
		{`{"status":"a","sequence":1}`, 400, oda.InvalidRequest, "/sequence"},
		{`{"status":"a","by":"anna"}`, 400, oda.InvalidRequest, "/by"},
		{`{"status":"a","version":2}`, 422, oda.UnknownVersion, "/version"},
		{`{"status":"a","version":9223372036854775807}`, 422, oda.UnknownVersion, "/version"},
		{`{"status":"a","previous":null}`, 422, oda.StatusMismatch, "/previous"},
		{`{"status":"a","previous":"Executing"}`, 422, oda.StatusMismatch, "/previous"},
	} {
		t.Run(test.body[:min(len(test.body), 60)], func(t *testing.T) {
			unchanged(t, a, func() {
				p := refused(t, a.Do("POST", "/ebs/x/status", test.body), test.status, test.code)
				if got := p.pointers(); !slices.Equal(got, []string{test.pointer}) {
					t.Errorf("the faults are at %q: %s", got, p.Detail)
				}
			})
		})
	}
	longest := `{"status":"` + strings.Repeat("é", 64) + `","reason":"` + strings.Repeat("é", 2000) + `","previous":"ABORTED"}`
	want(t, 200, a.Do("POST", "/ebs/x/status", longest))
}

func TestStatusesComeInPagesWhileOthersAreSaid(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/sbis/x", `{}`)
	if none := want(t, 200, a.Do("GET", "/sbis/x/status/history", "")); none.Text() != `{"statuses":[],"next":null}` {
		t.Errorf("without statuses: %s", none.Body)
	}
	say := func(n int) { want(t, 200, a.Do("POST", "/sbis/x/status", fmt.Sprintf(`{"status":"s %d"}`, n))) }
	for n := range 7 {
		say(n + 1)
	}
	place := must.Get(url.Parse(a.URL() + "/sbis/x/status/history?limit=3"))(t)
	var seen []string
	for {
		r := a.Do("GET", place.String(), "")
		var page struct {
			Statuses []struct{ Status string }
			Next     *string
		}
		if err := json.Unmarshal(want(t, 200, r).Body, &page); err != nil {
			t.Fatalf("%v: %s", err, r.Body)
		}
		for _, s := range page.Statuses {
			seen = append(seen, s.Status)
		}
		link := r.Header.Get("Link")
		if page.Next == nil {
			if link != "" {
				t.Errorf("the last page has the link %s", link)
			}
			break
		}
		if !strings.Contains(link, url.QueryEscape(*page.Next)) || !strings.HasSuffix(link, `; rel="next"`) {
			t.Errorf("the link is %s, and next is %s", link, *page.Next)
		}
		place = place.ResolveReference(must.Get(url.Parse(strings.Trim(strings.Split(link, ";")[0], "<>")))(t))
		say(8 + len(seen))
	}
	if got := strings.Join(seen, ","); got != "s 7,s 6,s 5,s 4,s 3,s 2,s 1" {
		t.Errorf("the statuses are %s", got)
	}
	store(t, a, "/sbis/y", `{}`)
	for _, query := range []string{"limit=0", "limit=1001", "limit=x", "cursor=x", "cursor="} {
		want(t, 400, a.Do("GET", "/sbis/x/status/history?"+query, ""))
	}
	refused(t, a.Do("GET", "/sbis/y/status/history?"+place.RawQuery, ""), 400, oda.InvalidQuery, "another list")
	refused(t, a.Do("GET", "/sbis/x/versions?"+place.RawQuery, ""), 400, oda.InvalidQuery, "another list")
}

// Followers see a status like what is stored and recorded: in pages, through filters, and
// in streams.
func TestStatusesAreFollowed(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/ebs/b", `{"request_responses":[]}`, user, "anna")
	record(t, a, "POST", "b", `{"request":"one"}`, user, "mid")
	stream := a.Events("/changes")
	late := a.Events("/changes?kind=ebs&id=b&after=now")
	const now = `{"status":"Observed"}`
	on := member(t, want(t, 200, a.Do("POST", "/ebs/b/status", now, user, "mid")).Body, "on")
	record(t, a, "POST", "b", `{"request":"two"}`, user, "mid")
	before := member(t, want(t, 200, a.Do("POST", "/ebs/b/status", `{"status":"a \"word\"","at":"2026-03-01"}`, user, "mid")).Body, "on")

	said := fmt.Sprintf(`{"position":3,"kind":"ebs","id":"b","change":"status","version":1,"sequence":1,"status":"Observed","class":"done","at":"%s","current":true,"by":"mid","on":"%[1]s"}`, on)
	overtaken := fmt.Sprintf(`{"position":5,"kind":"ebs","id":"b","change":"status","version":1,"sequence":2,"status":"a \"word\"","class":null,"at":"2026-03-01T00:00:00.000000Z","current":false,"by":"mid","on":"%s"}`, before)
	page := changes(t, a.Do("GET", "/changes", ""))
	if len(page.Changes) != 5 || page.Next != 5 || string(page.Changes[2]) != said || string(page.Changes[4]) != overtaken {
		t.Errorf("the changes up to %d are\n%s\nwant\n%s\n%s", page.Next, page.told(t), said, overtaken)
	}
	for query, want := range map[string]int{"kind=ebs": 5, "kind=sbds&kind=prjs": 0, "id=b&after=2": 3, "after=2&limit=1": 1} {
		if got := changes(t, a.Do("GET", "/changes?"+query, "")); len(got.Changes) != want || want == 1 && string(got.Changes[0]) != said {
			t.Errorf("%s answers %s", query, got.told(t))
		}
	}
	for name, events := range map[string]*env.Events{"all": stream, "of the block, from now on": late} {
		var got []string
		for len(got) < 2 {
			if e := must.Get(events.Data())(t); strings.Contains(e.Data, `"change":"status"`) {
				got = append(got, e.Data)
			}
		}
		if diff := cmp.Diff([]string{said, overtaken}, got); diff != "" {
			t.Errorf("the stream %s (-want +got):\n%s", name, diff)
		}
	}
	unjoined := changes(t, a.Do("GET", "/changes?after=1&kind=ebs", ""))
	if len(unjoined.Changes) != 4 {
		t.Errorf("records around a status are joined: %s", unjoined.told(t))
	}
}

func TestSearchesKnowTheStatus(t *testing.T) {
	a := env.Start(t)
	for id, status := range map[string]string{"done": "Observed", "failed": "Failed processing", "odd": "rained_out"} {
		store(t, a, "/ebs/"+id, `{}`)
		want(t, 200, a.Do("POST", "/ebs/"+id+"/status", fmt.Sprintf(`{"status":"%s","at":"2026-03-01"}`, status)))
	}
	store(t, a, "/ebs/said-by-the-document", `{"status":"observed"}`)
	store(t, a, "/ebs/none", `{}`)
	for query, want := range map[string]string{
		"status=OBSERVED&sort=id":        `["done","said-by-the-document"]`,
		"class=done&sort=id":             `["done","said-by-the-document"]`,
		"class=failed":                   `["failed"]`,
		"status=Rained-Out":              `["odd"]`,
		"status=rained%20out&class=done": `[]`,
		"class=planned":                  `[]`,
	} {
		if got := members(t, a.Do("GET", "/ebs/search?fields=id&"+query, "")); fmt.Sprint(string(must.Get(json.Marshal(got["items"]))(t))) != want {
			t.Errorf("%s finds %v, want %s", query, got["items"], want)
		}
	}
	items := members(t, a.Do("GET", "/ebs/search?sort=id", ""))["items"].([]any)
	var told []any
	for _, item := range items {
		told = append(told, item.(map[string]any)["status"])
	}
	at := "2026-03-01T00:00:00.000000Z"
	if diff := cmp.Diff([]any{
		map[string]any{"status": "Observed", "class": "done", "at": at},
		map[string]any{"status": "Failed processing", "class": "failed", "at": at},
		nil,
		map[string]any{"status": "rained_out", "class": nil, "at": at},
		map[string]any{"status": "observed", "class": "done", "at": nil},
	}, told); diff != "" {
		t.Errorf("the summaries (-want +got):\n%s", diff)
	}
	for query, pointer := range map[string]string{
		"class=finished": "query:class", "class=": "query:class", "class=Done": "query:class", "status=": "query:status",
		"status=" + strings.Repeat("x", 65): "query:status", "status=a%00": "query:status", "class=done&class=failed": "query:class",
	} {
		p := refused(t, a.Do("GET", "/ebs/search?"+query, ""), 400, oda.InvalidQuery)
		if got := p.pointers(); !slices.Equal(got, []string{pointer}) {
			t.Errorf("%s: the faults are at %q: %s", query, got, p.Detail)
		}
	}
}
