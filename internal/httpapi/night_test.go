package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oda"
	"oda/internal/test/env"
	"oda/internal/test/must"
	"oda/night"
)

// observed returns an archive with two blocks that have records.
func observed(t *testing.T) *env.Archive {
	a := env.Start(t)
	store(t, a, "/sbds/sbd-1", `{"name":"Cen A"}`)
	store(t, a, "/ebs/eb-1", `{"telescope":"ska_mid","sbi_ref":"sbi-1","sbd_ref":"sbd-1","sbd_version":1}`, "X-Forwarded-User", "ada")
	store(t, a, "/ebs/eb-2", `{"request_responses":[{"request":"park <all>","request_sent_at":"2026-03-02T09:59:59.999999Z"}]}`, "X-Forwarded-User", "bob")
	for _, record := range []string{
		`{"request":"scan","status":"OK","request_sent_at":"2026-03-01T22:00:00+02:00","response_received_at":"2026-03-01T20:10:00.5Z"}`,
		`{"request":"scan","status":"ERROR","request_sent_at":"2026-03-01T10:00:00Z","response_received_at":"2026-03-01T10:00:01Z"}`,
		`{"request":"point","status":"ok","error":{"detail":"wind"},"request_sent_at":"2026-03-01 21:00"}`,
		`{"request":"scan","status":"ERROR","request_sent_at":"2026-03-01T09:59:59.9999999Z"}`,
		`{"request":"scan","status":"ERROR","request_sent_at":"2026-03-02T10:00:00Z"}`,
	} {
		want(t, http.StatusOK, a.Do("POST", "/ebs/eb-1/request_response", record))
	}
	want(t, http.StatusOK, a.Do("POST", "/ebs/eb-1/status", `{"status":"Executing","at":"2026-03-01T10:00:00Z"}`))
	return a
}

func TestANightIsReported(t *testing.T) {
	a := observed(t)
	const whole = `{"zone":"Africa/Johannesburg","from":"2026-03-01T10:00:00.000000Z","to":"2026-03-02T10:00:00.000000Z","calls":4,"failures":2,"seconds_in_calls":601.5,` +
		`"busy_seconds":601.5,"idle_seconds":38998.5,"telescopes":[` +
		`{"telescope":"ska_mid","blocks":1,"calls":3,"failures":2,"busy_seconds":601.5,"idle_seconds":38998.5,"first_call":"2026-03-01T10:00:00.000000Z","last_call":"2026-03-01T21:00:00.000000Z"},` +
		`{"telescope":null,"blocks":1,"calls":1,"failures":0,"busy_seconds":0,"idle_seconds":0,"first_call":"2026-03-02T09:59:59.999999Z","last_call":"2026-03-02T09:59:59.999999Z"}],` +
		`"blocks":[` +
		`{"id":"eb-1","name":"Cen A","telescope":"ska_mid","created_by":"ada","status":{"status":"Executing","class":"running","at":"2026-03-01T10:00:00.000000Z"},"running":true,"first_call":"2026-03-01T10:00:00.000000Z","last_call":"2026-03-01T21:00:00.000000Z",` +
		`"calls":3,"failures":2,"seconds_in_calls":601.5,"busy_seconds":601.5,"references":[REFERENCES]},` +
		`{"id":"eb-2","name":null,"telescope":null,"created_by":"bob","status":null,"running":false,"first_call":"2026-03-02T09:59:59.999999Z","last_call":"2026-03-02T09:59:59.999999Z",` +
		`"calls":1,"failures":0,"seconds_in_calls":0,"busy_seconds":0,"references":[]}],` +
		`"slowest":[{"id":"eb-1","sequence":1,"request":"scan","sent_at":"2026-03-01T20:00:00.000000Z","seconds":600.5},` +
		`{"id":"eb-1","sequence":2,"request":"scan","sent_at":"2026-03-01T10:00:00.000000Z","seconds":1}],` +
		`"failures_by_request":[{"request":"point","failures":1,"calls":1},{"request":"scan","failures":1,"calls":2}],` +
		`"errors":[{"type":null,"detail":null,"calls":1,"blocks":1,"first":{"eb_id":"eb-1","sequence":2}},` +
		`{"type":null,"detail":"wind","calls":1,"blocks":1,"first":{"eb_id":"eb-1","sequence":3}}],"unusual":[],"notes":[],"time_lost":[]}`
	r := want(t, http.StatusOK, a.Do("GET", "/night?date=2026-03-01&zone=Africa/Johannesburg", ""))
	references := `{"kind":"sbds","id":"sbd-1","version":1,"field":"sbd_ref"},{"kind":"sbis","id":"sbi-1","version":null,"field":"sbi_ref"}`
	equalJSON(t, r.Body, strings.Replace(whole, "REFERENCES", references, 1))
	if got := r.Header.Get("Cache-Control"); got != "private, no-cache" {
		t.Errorf("Cache-Control is %q", got)
	}
	if r.Header.Get("Etag") != "" {
		t.Error("a report has an entity tag")
	}
	var in night.Report
	must.Do(t, json.Unmarshal(r.Body, &in))
	if in.Tally != (night.Tally{Calls: 4, Failures: 2, Took: 601_500_000}) || len(in.Blocks[0].References) != 2 {
		t.Errorf("it is read as %+v", in)
	}

	none := want(t, http.StatusOK, a.Do("GET", "/night?date=2026-03-05", ""))
	equalJSON(t, none.Body, `{"zone":"UTC","from":"2026-03-05T12:00:00.000000Z","to":"2026-03-06T12:00:00.000000Z","calls":0,"failures":0,"seconds_in_calls":0,`+
		`"busy_seconds":0,"idle_seconds":0,"telescopes":[],"blocks":[],"slowest":[],"failures_by_request":[],"errors":[],"unusual":[],"notes":[],"time_lost":[]}`)
}

func TestANightIsALogAndATable(t *testing.T) {
	a := observed(t)
	store(t, a, "/sbds/sbd-2", `{"name":"=HYPERLINK(\"x\") | *a*\n\u001b[2J_b"}`)
	store(t, a, "/ebs/eb-3", `{"telescope":"ska_low","sbd_ref":"sbd-2","request_responses":[`+
		`{"request":"a|b`+"`"+`","request_sent_at":"2026-03-01T22:00:00Z","error":{"detail":"odd.TooBad: no | way\nat all"}}]}`)
	want(t, http.StatusOK, a.Do("POST", "/ebs/eb-3/status", `{"status":"Failed","reason":"wind | rain\nsnow","at":"2026-03-01T22:00:00Z"}`))
	store(t, a, "/notes/note-1", `{"text":"Wind | *rain*\n\nstopped","level":"warning","from":"2026-03-01T21:10:00Z","to":"2026-03-01T21:50:00Z","time_lost_s":2400,"time_lost_type":"weather","about":[{"kind":"ebs","id":"eb-1"}]}`)
	store(t, a, "/notes/note-2", `{"text":"receptor 17 is noisy","level":"problem","from":"2025-12-24T21:10:00Z"}`)
	const query = "/night?date=2026-03-01&zone=Africa/Johannesburg"
	log := want(t, http.StatusOK, a.Do("GET", query, "", "Accept", "text/markdown, text/csv;q=0.5"))
	for _, line := range []string{
		"# Night of 2026-03-01",
		"From 2026-03-01 12:00 to 2026-03-02 12:00, Africa/Johannesburg.",
		"**5 calls, 3 failed, in 3 blocks.** Busy 10 min 1 s, idle 10 h 49 min.",
		"Outcomes of the blocks: 1 running, 1 failed.",
		"Time lost: 40 min 0 s to weather.",
		"- 23:10–23:50 **warning** Wind \\| \\*rain\\* stopped (DefaultUser, lost 40 min 0 s to weather, `eb-1`)",
		"- 2025-12-24 23:10 **problem** receptor 17 is noisy (DefaultUser)",
		"| ska_mid | 1 | 3 | 2 | 10 min 1 s | 10 h 49 min | 12:00:00 | 23:00:00 |",
		"| Cen A `eb-1` | ska_mid | 12:00:00 | 23:00:00 | Executing | 3 | 2 |",
		"| =HYPERLINK(\"x\") \\| \\*a\\* �\\[2J_b `eb-3` | ska_low | 00:00:00 | 00:00:00 | Failed: wind \\| rain snow | 1 | 1 |",
		"| `eb-2` | – | 11:59:59 | 11:59:59 | – | 1 | 0 |",
		"| 1 | 1 | (no error given) | `eb-1` #2 |",
		"| 1 | 1 | odd.TooBad: no \\| way at all | `eb-3` #1 |",
	} {
		if !strings.Contains(string(log.Body), line+"\n") {
			t.Errorf("the log does not say %q:\n%s", line, log.Body)
		}
	}
	table := want(t, http.StatusOK, a.Do("GET", query, "", "Accept", "text/csv"))
	const rows = "id,name,telescope,created_by,status,class,status_at,running,first_call,last_call,calls,failures,seconds_in_calls,busy_seconds\r\n" +
		"eb-1,Cen A,ska_mid,ada,Executing,running,2026-03-01T10:00:00.000000Z,true,2026-03-01T10:00:00.000000Z,2026-03-01T21:00:00.000000Z,3,2,601.5,601.5\r\n" +
		"eb-3,\"'=HYPERLINK(\"\"x\"\") | *a*\n�[2J_b\",ska_low,DefaultUser,Failed,failed,2026-03-01T22:00:00.000000Z,false,2026-03-01T22:00:00.000000Z,2026-03-01T22:00:00.000000Z,1,1,0,0\r\n" +
		"eb-2,,,bob,,,,false,2026-03-02T09:59:59.999999Z,2026-03-02T09:59:59.999999Z,1,0,0,0\r\n"
	if diff := cmp.Diff(rows, string(table.Body)); diff != "" {
		t.Error(diff)
	}
	if got := table.Header.Get("Content-Type") + " " + table.Header.Get("Vary"); got != "text/csv; charset=utf-8; header=present Accept, Accept-Encoding" {
		t.Errorf("the table has %s", got)
	}
}

// equalJSON compares documents as JSON values.
func equalJSON(t *testing.T, got []byte, want string) {
	t.Helper()
	var a, b any
	if err := json.Unmarshal(got, &a); err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	must.Do(t, json.Unmarshal([]byte(want), &b))
	if diff := cmp.Diff(b, a); diff != "" {
		t.Errorf("- wanted, + got:\n%s", diff)
	}
}

func TestInvalidNightQueriesAreRefused(t *testing.T) {
	a := env.Start(t)
	for query, test := range map[string]struct {
		code  oda.Code
		words string
	}{
		"":                               {oda.InvalidQuery, "a date such as 2026-03-01"},
		"zone=UTC":                       {oda.InvalidQuery, "missing"},
		"date=":                          {oda.InvalidQuery, "a date such as 2026-03-01"},
		"date=yesterday":                 {oda.InvalidQuery, "a date such as 2026-03-01"},
		"date=2026-02-30":                {oda.InvalidQuery, "write it as 2026-01-31"},
		"date=2026-03-01T12:00:00Z":      {oda.InvalidQuery, "a date such as 2026-03-01"},
		"date=9999-12-31":                {oda.InvalidQuery, "9999-12-30"},
		"date=2026-03-01&date=2026-3-2":  {oda.InvalidQuery, "2 times"},
		"date=2026-03-01&zone=Mars":      {oda.InvalidQuery, "Africa/Johannesburg"},
		"date=2026-03-01&zone=Local":     {oda.InvalidQuery, "Africa/Johannesburg"},
		"date=2026-03-01&zone=../x":      {oda.InvalidQuery, "Africa/Johannesburg"},
		"date=2026-03-01&telescope=":     {oda.InvalidQuery, "at least 1 character"},
		"date=2026-03-01&telescope=%FF":  {oda.InvalidQuery, "UTF-8"},
		"date=2026-03-01&telescopes=mid": {oda.InvalidRequest, "Did you mean telescope?"},
		"day=2026-03-01":                 {oda.InvalidRequest, "Did you mean date?"},
	} {
		refused(t, a.Do("GET", "/night?"+query, ""), http.StatusBadRequest, test.code, test.words)
	}
	refused(t, a.Do("POST", "/night?date=2026-03-01", "{}"), http.StatusMethodNotAllowed, oda.WrongMethod, "GET, HEAD")
}

func TestAReportIsCompressedAndHasALength(t *testing.T) {
	a := env.Start(t)
	for i := range 20 {
		store(t, a, fmt.Sprint("/ebs/eb-", i), `{"request_responses":[{"request":"r","request_sent_at":"2026-03-01T20:00:00Z"}]}`)
	}
	plain := want(t, http.StatusOK, a.Do("GET", "/night?date=2026-03-01", ""))
	packed := want(t, http.StatusOK, a.Do("GET", "/night?date=2026-03-01", "", "Accept-Encoding", "gzip"))
	if packed.Header.Get("Content-Encoding") != "gzip" || len(packed.Raw) >= len(plain.Raw) {
		t.Errorf("%d bytes became %d with %q", len(plain.Raw), len(packed.Raw), packed.Header.Get("Content-Encoding"))
	}
	head := want(t, http.StatusOK, a.Do("HEAD", "/night?date=2026-03-01", ""))
	if got := head.Header.Get("Content-Length"); got != fmt.Sprint(len(plain.Body)) || len(head.Body) != 0 {
		t.Errorf("HEAD says %s bytes and has %d, GET has %d", got, len(head.Body), len(plain.Body))
	}
}
