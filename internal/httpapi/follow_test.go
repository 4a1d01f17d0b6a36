package httpapi_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"oda"
	"oda/internal/app"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// changePage is an answer with changes.
type changePage struct {
	Changes []json.RawMessage
	Next    int64
}

func changes(t testing.TB, r *env.Reply) changePage {
	t.Helper()
	var page changePage
	if err := json.Unmarshal(want(t, 200, r).Body, &page); err != nil {
		t.Fatalf("%v: %s", err, r.Body)
	}
	return page
}

// told returns the changes without their times.
func (p changePage) told(t testing.TB) string {
	t.Helper()
	var all []string
	for _, c := range p.Changes {
		all = append(all, timeless(t, string(c)))
	}
	return strings.Join(all, "\n")
}

func timeless(t testing.TB, change string) string {
	t.Helper()
	var on struct{ On string }
	if err := json.Unmarshal([]byte(change), &on); err != nil {
		t.Fatalf("%v: %s", err, change)
	}
	if _, err := time.Parse("2006-01-02T15:04:05.000000Z", on.On); err != nil {
		t.Errorf("the time of a change is not valid: %v", err)
	}
	return strings.Replace(change, on.On, "T", 1)
}

func TestChangesByPolling(t *testing.T) {
	a := env.Start(t)
	if page := changes(t, a.Do("GET", "/changes", "")); page.Next != 0 || len(page.Changes) != 0 {
		t.Errorf("an empty archive has %+v", page)
	}
	store(t, a, "/sbds/a", `{}`, "X-Forwarded-User", "anna")
	store(t, a, "/ebs/b", `{"request_responses":[{"request":"one"},{"request":"two"}]}`, "X-Forwarded-User", `an"na`)
	for range 3 {
		record(t, a, "POST", "b", `{"request":"three"}`, "X-Forwarded-User", "mid")
	}
	r := a.Do("GET", "/changes", "")
	page := changes(t, r)
	const all = `{"position":1,"kind":"sbds","id":"a","change":"stored","version":1,"by":"anna","on":"T"}
{"position":4,"kind":"ebs","id":"b","change":"stored","version":1,"by":"an\"na","on":"T"}
{"position":7,"kind":"ebs","id":"b","change":"recorded","version":1,"first_sequence":3,"last_sequence":5,"by":"mid","on":"T"}`
	if got := page.told(t); got != all || page.Next != 7 {
		t.Errorf("the changes up to %d are\n%s\nwant\n%s", page.Next, got, all)
	}
	if got := r.Header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control is %q", got)
	}
	if got := r.Header.Get("Vary"); got != "Accept, Accept-Encoding" {
		t.Errorf("Vary is %q", got)
	}
	for _, query := range []string{"after=now", "after=7&wait=0", "id=b&kind=sbds", "kind=sbis&kind=prjs"} {
		if page := changes(t, a.Do("GET", "/changes?"+query, "")); page.Next != 7 || len(page.Changes) > 0 {
			t.Errorf("%s answers %s up to %d", query, page.told(t), page.Next)
		}
	}
	// In the middle of a change, the answer has the rest of it.
	if got := changes(t, a.Do("GET", "/changes?after=5", "")).told(t); !strings.Contains(got, `"first_sequence":4,"last_sequence":5`) {
		t.Errorf("after 5 there is %s", got)
	}
	head := want(t, 200, a.Do("HEAD", "/changes", ""))
	if len(head.Raw) != 0 || head.Header.Get("Content-Length") != r.Header.Get("Content-Length") {
		t.Errorf("HEAD answers with %d bytes and a length of %s", len(head.Raw), head.Header.Get("Content-Length"))
	}
	if got := a.Do("GET", "/changes?limit=10", "", "Accept-Encoding", "gzip"); changes(t, got).Next != 7 {
		t.Errorf("compressed, the changes are %s", got.Body)
	}
}

func TestInvalidQueriesForChangesAreRefused(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/ebs/b", `{}`)
	for query, pointer := range map[string]string{
		"after=":            "query:after",
		"after=x":           "query:after",
		"after=-1":          "query:after",
		"after=NOW":         "query:after",
		"after=1&after=1":   "query:after",
		"limit=0":           "query:limit",
		"limit=10001":       "query:limit",
		"limit=1&limit=2":   "query:limit",
		"wait=61":           "query:wait",
		"wait=-1":           "query:wait",
		"wait=x":            "query:wait",
		"kind=sbd":          "query:kind",
		"kind=":             "query:kind",
		"id=":               "query:id",
		"kind=ebs&id=a&id=": "query:id",
	} {
		p := refused(t, a.Do("GET", "/changes?"+query, ""), 400, oda.InvalidQuery)
		if got := p.pointers(); len(got) != 1 || got[0] != pointer {
			t.Errorf("%s: the faults are at %v, want %s", query, got, pointer)
		}
	}
	refused(t, a.Do("GET", "/changes?user=anna", ""), 400, oda.InvalidRequest)
	refused(t, a.Do("GET", "/changes", "", "If-Match", `"1"`), 400, oda.InvalidRequest)
	refused(t, a.Do("GET", "/changes?"+strings.Repeat("id=x&", 101), ""), 400, oda.InvalidQuery, "at most 100")
	refused(t, a.Do("POST", "/changes", "{}"), 405, oda.WrongMethod)
	refused(t, a.Do("GET", "/changes?after=2", ""), 400, oda.UnknownPosition, "ends at position 1", "restored", "after=0", "after=now")
	refused(t, a.Do("GET", "/changes?after=2&wait=30", ""), 400, oda.UnknownPosition)
	refused(t, a.Do("GET", "/changes?after=2", "", "Accept", "text/event-stream"), 400, oda.UnknownPosition)
	refused(t, a.Do("GET", "/changes", "", "Accept", "text/event-stream", "Last-Event-ID", "2"), 400, oda.UnknownPosition)
	refused(t, a.Do("GET", "/changes", "", "Accept", "text/event-stream", "Last-Event-ID", "now"), 400, oda.InvalidQuery)
	refused(t, a.Do("GET", "/ebs/x/request_responses?wait=30", ""), 404, oda.NotFound)
	refused(t, a.Do("GET", "/ebs/x/request_responses", "", "Accept", "text/event-stream"), 404, oda.NotFound)
	refused(t, a.Do("GET", "/ebs/b/request_responses?after=1", "", "Accept", "text/event-stream"), 400, oda.UnknownPosition, "end at sequence 0", "restored", "after=0")
	want(t, 404, a.Do("HEAD", "/ebs/x/request_responses", "", "Accept", "text/event-stream"))
	refused(t, a.Do("GET", "/ebs/b/request_responses?wait=61", ""), 400, oda.InvalidQuery)
	refused(t, a.Do("GET", "/ebs/b/request_responses", "", "Accept", "text/event-stream", "Last-Event-ID", "x"), 400, oda.InvalidQuery)
}

// answers sends a request that waits.
func answers(a *env.Archive, path string) <-chan *env.Reply {
	answered := make(chan *env.Reply, 1)
	go func() {
		r, err := a.Try("GET", path, "")
		if err != nil {
			r = &env.Reply{Body: []byte(err.Error())}
		}
		answered <- r
	}()
	return answered
}

func TestAnAnswerWaitsForAChange(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/ebs/b", `{}`)
	all, one, records := answers(a, "/changes?after=1&wait=60"), answers(a, "/changes?after=now&wait=60&id=b"), answers(a, "/ebs/b/request_responses?wait=60")
	a.AwaitFollowers(3)
	store(t, a, "/sbds/a", `{}`)
	if page := changes(t, <-all); page.Next != 2 || len(page.Changes) != 1 {
		t.Errorf("the answer is %s", page.told(t))
	}
	a.AwaitFollowers(2) // the others still wait
	record(t, a, "POST", "b", `{"request":"one"}`)
	if page := changes(t, <-one); page.Next != 3 || len(page.Changes) != 1 {
		t.Errorf("the answer is %s", page.told(t))
	}
	if r := want(t, 200, <-records); !strings.Contains(r.Text(), `"record":{"request":"one"}`) {
		t.Errorf("the answer is %s", r.Body)
	}
	a.AwaitFollowers(0)
	if page := changes(t, a.Do("GET", "/changes?after=0&wait=60", "")); page.Next != 3 {
		t.Errorf("a change that is already there is answered as %s", page.told(t))
	}
}

func TestAnAnswerWaitsNoLongerThanAsked(t *testing.T) {
	t.Parallel()
	a := env.Start(t, func(cfg *app.Config) {
		// The time-outs of ordinary requests do not end it.
		cfg.ReadTimeout, cfg.WriteTimeout = 300*time.Millisecond, 300*time.Millisecond
	})
	store(t, a, "/ebs/b", `{}`)
	store(t, a, "/sbds/a", `{}`)
	for path, answer := range map[string]string{
		"/changes?after=0&id=x&wait=1":    `{"changes":[],"next":2}`,
		"/ebs/b/request_responses?wait=1": `{"eb_id":"b","records":[]}`,
	} {
		started := time.Now()
		r := want(t, 200, a.Do("GET", path, ""))
		if took := time.Since(started); r.Text() != answer || took < time.Second {
			t.Errorf("%s answers %s after %v", path, r.Body, took)
		}
	}
}

func TestChangesAsAStream(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/sbds/a", `{}`)
	stream := a.Events("/changes")
	if got := stream.Response.Header; got.Get("Content-Type") != "text/event-stream" || got.Get("Cache-Control") != "no-store" || got.Get("X-Request-Id") == "" {
		t.Errorf("the headers are %v", got)
	}
	blocks := a.Events("/changes?kind=ebs")
	// Only what all get alike is compressed, once for all of them.
	plain := a.Events("/changes", "Accept-Encoding", "identity")
	if !stream.Response.Uncompressed || blocks.Response.Uncompressed || plain.Response.Header.Get("Content-Encoding") != "" {
		t.Error("not exactly the stream of all changes is compressed")
	}
	store(t, a, "/ebs/b", `{}`)
	for i, wanted := range []string{
		`{"position":1,"kind":"sbds","id":"a","change":"stored","version":1,"by":"DefaultUser","on":"T"}`,
		`{"position":2,"kind":"ebs","id":"b","change":"stored","version":1,"by":"DefaultUser","on":"T"}`,
		`{"position":3,"kind":"ebs","id":"b","change":"recorded","version":1,"first_sequence":1,"last_sequence":1,"by":"mid","on":"T"}`,
	} {
		if i == 2 {
			record(t, a, "POST", "b", `{"request":"one"}`, "X-Forwarded-User", "mid")
		}
		e := must.Get(stream.Data())(t)
		if e.Name != "change" || e.ID != fmt.Sprint(i+1) || timeless(t, e.Data) != wanted {
			t.Errorf("event %d is %+v, want %s", i, e, wanted)
		}
		if other, err := plain.Data(); err != nil || other != e {
			t.Errorf("a follower that wants no compression gets %+v, %v", other, err)
		}
		if i == 0 {
			continue
		}
		if other, err := blocks.Data(); err != nil || other != e {
			t.Errorf("a follower of blocks gets %+v, %v", other, err)
		}
	}
	// HEAD does not get a stream.
	if r := want(t, 200, a.Do("HEAD", "/changes", "", "Accept", "text/event-stream")); r.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("HEAD answers %v", r.Header)
	}
	if line := finished(t, a, stream); line["status"] != 200.0 || line["operation"] != "changes" || line["bytes"].(float64) < 300 {
		t.Errorf("the log has %v", line)
	}
}

// finished ends a stream and returns its line in the log.
func finished(t testing.TB, a *env.Archive, e *env.Events) map[string]any {
	t.Helper()
	e.Close()
	return a.Logged(e.Response.Header.Get("X-Request-Id"))
}

// Wherever a stream is cut, the next one continues after the last event.
func TestAStreamContinuesWhereItEnded(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/ebs/b", `{}`)
	now := a.Events("/changes?after=now")
	begin, err := now.Next()
	if err != nil || begin.ID != "1" || begin.Data != "" || begin.Retry == "" {
		t.Errorf("a stream after now begins with %+v, %v", begin, err)
	}
	for range 4 {
		record(t, a, "POST", "b", `{"request":"one"}`)
	}
	for _, test := range []struct {
		path, header string
		first        int
	}{
		{"/changes?after=0", "1", 1},
		{"/changes?after=now", "1", 1},
		{"/changes?after=4", "3", 3},
		{"/changes", "4", 4},
		{"/changes?after=3", "", 3},
	} {
		headers := []string{}
		if test.header != "" {
			headers = append(headers, "Last-Event-ID", test.header)
		}
		e, err := a.Events(test.path, headers...).Data()
		wanted := fmt.Sprintf(`"first_sequence":%d,`, test.first)
		if err != nil || !strings.Contains(e.Data, wanted) {
			t.Errorf("%s with %q begins with %+v, %v; want %s", test.path, test.header, e, err, wanted)
		}
	}
}

func TestTheRecordsOfABlockAsAStream(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/ebs/b", `{"request_responses":[{"request":"one"}]}`)
	store(t, a, "/ebs/c", `{}`)
	stream := a.Events("/ebs/b/request_responses?limit=1&wait=1")
	record(t, a, "POST", "c", `{"request":"other"}`)
	want(t, 200, a.Do("POST", "/ebs/b/request_responses", `{"records":[{"key":"k","record":{"request":"two"}}]}`))
	record(t, a, "POST", "b", "{\"request\":\r\n\"three\"}")
	for i, wanted := range []string{
		`{"sequence":1,"recorded_at":"T","record":{"request":"one"}}`,
		`{"sequence":2,"key":"k","recorded_at":"T","record":{"request":"two"}}`,
		"{\"sequence\":3,\"recorded_at\":\"T\",\"record\":{\"request\":\n\"three\"}}",
	} {
		e := must.Get(stream.Data())(t)
		got := strings.Replace(e.Data, recordedAt(t, e.Data), "T", 1)
		if e.Name != "record" || e.ID != fmt.Sprint(i+1) || got != wanted {
			t.Errorf("event %d is %+v, want %s", i, e, wanted)
		}
	}
	if e, err := a.Events("/ebs/b/request_responses?after=1", "Last-Event-ID", "2").Data(); err != nil || e.ID != "3" {
		t.Errorf("after 2 the stream begins with %+v, %v", e, err)
	}
}

func recordedAt(t testing.TB, text string) string {
	t.Helper()
	var at struct {
		At string `json:"recorded_at"`
	}
	if err := json.Unmarshal([]byte(text), &at); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return at.At
}

func TestAStreamToAClientOfHTTP10(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/sbds/a", `{}`)
	conn := dial(t, a)
	fmt.Fprint(conn, "GET /api/v1/changes HTTP/1.0\r\nAccept: text/event-stream\r\n\r\n")
	var got strings.Builder
	buf := make([]byte, 1024)
	for !strings.Contains(got.String(), `"id":"a"`) {
		n, err := conn.Read(buf)
		if err != nil {
			t.Fatalf("%v after %q", err, got.String())
		}
		got.Write(buf[:n])
	}
	_, body, _ := strings.Cut(got.String(), "\r\n\r\n")
	if !strings.HasPrefix(body, "retry: 1000\n\nid: 1\nevent: change\ndata: {") || strings.Contains(got.String(), "chunked") {
		t.Errorf("the stream is %q", got.String())
	}
}

func TestFollowersAreBoundedSeparatelyFromConnections(t *testing.T) {
	a := env.Start(t, func(cfg *app.Config) { cfg.MaxFollowers, cfg.MaxConnections = 3, 2 })
	store(t, a, "/ebs/b", `{}`)
	streams := []*env.Events{a.Events("/changes"), a.Events("/ebs/b/request_responses")}
	answered := answers(a, "/changes?after=now&wait=60")
	a.AwaitFollowers(3)
	for _, headers := range [][]string{{"Accept", "text/event-stream"}, nil} {
		r := a.Do("GET", "/changes?after=1&wait=60", "", headers...)
		refused(t, r, 503, oda.Overloaded, "3 clients follow")
		if r.Header.Get("Retry-After") == "" {
			t.Error("the answer does not say when to try again")
		}
	}
	changes(t, a.Do("GET", "/changes", "")) // the bound does not apply without a wait
	streams[0].Close()
	a.AwaitFollowers(2)
	if _, err := a.Events("/changes").Data(); err != nil {
		t.Error(err)
	}
	store(t, a, "/sbds/a", `{}`)
	changes(t, <-answered)
}

// A stop does not wait for followers, but ends their streams properly.
func TestStreamsEndWhenTheArchiveStops(t *testing.T) {
	t.Parallel()
	a := env.Start(t)
	store(t, a, "/ebs/b", `{}`)
	streams := []*env.Events{
		a.Events("/changes?after=now"), a.Events("/changes?after=now", "Accept-Encoding", "identity"), a.Events("/ebs/b/request_responses"),
	}
	answered := []<-chan *env.Reply{answers(a, "/changes?after=1&wait=60"), answers(a, "/ebs/b/request_responses?wait=60")}
	a.AwaitFollowers(5)
	started := time.Now()
	if err := a.Stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(started); took > env.AtMost(5*time.Second) {
		t.Errorf("the stop took %v", took)
	}
	for _, s := range streams {
		if _, err := s.Data(); !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("the stream ends with %v", err)
		}
	}
	for _, c := range answered {
		want(t, 200, <-c)
	}
}
