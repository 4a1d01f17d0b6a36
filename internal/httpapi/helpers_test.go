package httpapi_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"oda"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// kinds lists the kinds of the specification.
var kinds = []struct{ collection, idField string }{
	{"sbds", "sbd_id"}, {"sbis", "sbi_id"}, {"ebs", "eb_id"}, {"prjs", "prj_id"},
}

// everything is a query that all entities match.
const everything = "created_after=1970-01-01"

// problem is RFC 9457's document.
type problem struct {
	Type, Title, Detail, Instance string
	Status                        int
	Errors                        []oda.Fault
}

// code is the last part of a problem's type.
func (p problem) code() oda.Code {
	return oda.Code(strings.TrimPrefix(p.Type, "urn:oda:problem:"))
}

func (p problem) pointers() []string {
	var list []string
	for _, e := range p.Errors {
		list = append(list, e.Pointer)
	}
	return list
}

// want ends the test unless the response has that status.
func want(t testing.TB, status int, r *env.Reply) *env.Reply {
	t.Helper()
	if r.Status != status {
		t.Fatalf("the status is %d, want %d: %.400s", r.Status, status, r.Body)
	}
	return r
}

// refused decodes a problem and checks its status, its code, and the words in its
// detail.
func refused(t testing.TB, r *env.Reply, status int, code oda.Code, words ...string) problem {
	t.Helper()
	want(t, status, r)
	if got := r.Header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("the problem is of type %q", got)
	}
	var p problem
	if err := json.Unmarshal(r.Body, &p); err != nil {
		t.Fatalf("the problem is not JSON: %v\n%s", err, r.Body)
	}
	if p.code() != code {
		t.Errorf("the problem is %q, want %q: %s", p.code(), code, p.Detail)
	}
	for _, word := range words {
		if !strings.Contains(p.Detail, word) {
			t.Errorf("the detail %q does not say %q", p.Detail, word)
		}
	}
	return p
}

// metadata has the managed fields of an entity.
type metadata struct {
	Version        int64  `json:"version"`
	CreatedBy      string `json:"created_by"`
	CreatedOn      string `json:"created_on"`
	LastModifiedBy string `json:"last_modified_by"`
	LastModifiedOn string `json:"last_modified_on"`
}

// text returns the metadata as in a document.
func (m metadata) text() string {
	text, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func (m metadata) modifiedOn(t testing.TB) time.Time {
	t.Helper()
	at, err := time.Parse("2006-01-02T15:04:05.000000Z", m.LastModifiedOn)
	if err != nil {
		t.Fatalf("last_modified_on does not have the form of a time of the server: %v", err)
	}
	return at
}

func metadataOf(t testing.TB, body []byte) metadata {
	t.Helper()
	var document struct{ Metadata metadata }
	if err := json.Unmarshal(body, &document); err != nil {
		t.Fatalf("%v: %.200s", err, body)
	}
	return document.Metadata
}

// member returns a member of a document that is a text.
func member(t testing.TB, body []byte, name string) string {
	t.Helper()
	var document map[string]json.RawMessage
	if err := json.Unmarshal(body, &document); err != nil {
		t.Fatalf("%v: %.200s", err, body)
	}
	var text string
	if err := json.Unmarshal(document[name], &text); err != nil {
		t.Fatalf("the member %s: %v: %.200s", name, err, body)
	}
	return text
}

// store stores a document that must be accepted, and returns its metadata.
func store(t testing.TB, a *env.Archive, path, body string, headers ...string) metadata {
	t.Helper()
	return metadataOf(t, want(t, http.StatusOK, a.Do("PUT", path, body, headers...)).Body)
}

// list returns the identifiers that match a query.
func list(t testing.TB, a *env.Archive, collection, query string) []string {
	t.Helper()
	return identifiers(t, want(t, http.StatusOK, a.Do("GET", "/"+collection+"?"+query, "")))
}

func identifiers(t testing.TB, r *env.Reply) []string {
	t.Helper()
	var ids []string
	if err := json.Unmarshal(r.Body, &ids); err != nil {
		t.Fatalf("%v: %.200s", err, r.Body)
	}
	return ids
}

// state describes everything that an archive holds. If two states are equal,
// nothing was stored in between.
func state(t testing.TB, a *env.Archive) string {
	t.Helper()
	var b strings.Builder
	for _, k := range kinds {
		for _, id := range list(t, a, k.collection, everything) {
			r := want(t, http.StatusOK, a.Do("GET", "/"+k.collection+"/"+id, ""))
			said := want(t, http.StatusOK, a.Do("GET", "/"+k.collection+"/"+id+"/status/history", ""))
			fmt.Fprintf(&b, "%s/%s %s %s %s\n", k.collection, id, r.Header.Get("ETag"), r.Body, said.Body)
		}
	}
	return b.String()
}

// unchanged checks that a function stores nothing.
func unchanged(t testing.TB, a *env.Archive, run func()) {
	t.Helper()
	before := state(t, a)
	run()
	if after := state(t, a); after != before {
		t.Errorf("something was stored.\nbefore: %s\nafter: %s", before, after)
	}
}

// raw sends bytes on a new connection, all of them before it reads anything, and
// returns the response.
func raw(t testing.TB, a *env.Archive, text string) *env.Reply {
	t.Helper()
	conn := dial(t, a)
	if _, err := io.WriteString(conn, text); err != nil {
		t.Logf("writing failed, as it may if the answer comes early: %v", err)
	}
	return answer(t, conn)
}

func dial(t testing.TB, a *env.Archive) net.Conn {
	t.Helper()
	conn := must.Get(net.Dial("tcp", a.Addr()))(t)
	t.Cleanup(func() { conn.Close() })
	must.Do(t, conn.SetDeadline(time.Now().Add(40*time.Second)))
	return conn
}

// begin sends the headers of a PUT with a body of that length, and waits until
// the archive reads the body.
func begin(t testing.TB, a *env.Archive, path string, length int) net.Conn {
	t.Helper()
	conn := dial(t, a)
	fmt.Fprintf(conn, "PUT /api/v1%s HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", path, length)
	const goOn = "HTTP/1.1 100 Continue\r\n\r\n"
	got := make([]byte, len(goOn))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != goOn {
		t.Fatalf("the archive does not read the body: %q, %v", got, err)
	}
	return conn
}

// answer reads the response to a request other than HEAD. It skips interim
// responses.
func answer(t testing.TB, conn net.Conn) *env.Reply {
	t.Helper()
	reader := bufio.NewReader(conn)
	for {
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatalf("there is no answer: %v", err)
		}
		if response.StatusCode == http.StatusContinue {
			continue
		}
		r, err := env.Read(response)
		if err != nil {
			t.Fatalf("the answer is incomplete: %v", err)
		}
		if r.Header.Get("X-Request-Id") == "" {
			t.Error("the answer has no X-Request-Id")
		}
		return r
	}
}

// ofClock is a span as clocks show it.
func ofClock(hours, minutes int) time.Duration {
	return time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
}
