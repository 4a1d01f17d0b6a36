package httpapi_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"oda"
	"oda/internal/app"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// runningIn returns what an answer or an event says is running, those that are silent
// with a question mark.
func runningIn(t testing.TB, text []byte) string {
	t.Helper()
	var in oda.RunningCalls
	if err := json.Unmarshal(text, &in); err != nil || in.Running == nil {
		t.Fatalf("%v: %s", err, text)
	}
	var keys []string
	for _, c := range in.Running {
		key := c.Block + "/" + c.Key
		if c.Silent {
			key += "?"
		}
		keys = append(keys, key)
	}
	return strings.Join(keys, " ")
}

// nowRunning returns what is running at a path.
func nowRunning(t testing.TB, a *env.Archive, path string) string {
	t.Helper()
	return runningIn(t, want(t, 200, a.Do("GET", path, "")).Body)
}

const scan = `{"request":"scan"}`

func TestACallIsSaidToBeRunningAndEnds(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/ebs/x", `{"telescope":"ska_mid"}`)
	store(t, a, "/ebs/y", `{}`)
	r := want(t, 204, a.Do("PUT", "/ebs/x/running/k.1_~-", `{"request":"scan","request_args":{"a": [1],
		"kwargs":{"device":"SKA001"}},"request_sent_at":"2026-03-01T21:04:11.25+02:00","lease_seconds":3600}`, "X-Forwarded-User", "mid"))
	if len(r.Body) != 0 {
		t.Errorf("the answer is %s", r.Body)
	}
	want(t, 204, a.Do("PUT", "/ebs/y/running/1", `{"request":"scan","request_args":null,"request_sent_at":null,"lease_seconds":null}`))
	want(t, 204, a.Do("PUT", "/ebs/y/running/2", `{"request":"scan","request_args":"old"}`))
	for path, wanted := range map[string]string{
		"/running": "x/k.1_~- y/1 y/2", "/running?telescope=ska_mid": "x/k.1_~-", "/running?telescope=ska_low": "", "/ebs/x/running": "x/k.1_~-", "/ebs/y/running": "y/1 y/2",
	} {
		if got := nowRunning(t, a, path); got != wanted {
			t.Errorf("%s: %q is running, want %q", path, got, wanted)
		}
	}
	answer := string(a.Do("GET", "/ebs/x/running", "").Body)
	for _, part := range []string{
		`{"eb_id":"x","key":"k.1_~-","request":"scan","request_args":{"a":[1],"kwargs":{"device":"SKA001"}},"sent_at":"2026-03-01T19:04:11.250000Z","since":"`,
		`"silent":false,"device":"SKA001","telescope":"ska_mid","by":"mid"}`,
	} {
		if !strings.Contains(answer, part) {
			t.Errorf("the answer lacks %s: %s", part, answer)
		}
	}
	want(t, 200, a.Do("POST", "/ebs/y/request_response", scan, "Idempotency-Key", "1"))
	want(t, 204, a.Do("PUT", "/ebs/y/running/1", scan))
	for range 2 {
		want(t, 204, a.Do("DELETE", "/ebs/x/running/k.1_~-", ""))
	}
	if got := nowRunning(t, a, "/running"); got != "y/2" {
		t.Errorf("%q is running", got)
	}
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		path, body := "/ebs/z/running/k", ""
		if method == "PUT" {
			body = scan
		}
		if method == "GET" {
			path = "/ebs/z/running"
		}
		refused(t, a.Do(method, path, body), 404, oda.NotFound)
	}
}

func TestABadRunningCallIsRefused(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/ebs/x", `{}`)
	for body, pointer := range map[string]string{
		`{}`:                                 "",
		`{"request":""}`:                     "/request",
		`{"request":null}`:                   "/request",
		`{"request":"r","request_args":[1]}`: "/request_args",
		`{"request":"r","request_sent_at":"yesterday"}`: "/request_sent_at",
		`{"request":"r","lease_seconds":4}`:             "/lease_seconds",
		`{"request":"r","lease_seconds":3601}`:          "/lease_seconds",
		`{"request":"r","lease_seconds":5.5}`:           "/lease_seconds",
		`{"request":"r","lease_seconds":"60"}`:          "/lease_seconds",
		`{"request":"r","response":{}}`:                 "/response",
		`{"request":"r","request_args":{"a":1,"a":2}}`:  "/request_args/a",
	} {
		p := problemOf(t, a.Do("PUT", "/ebs/x/running/k", body), 400)
		if got := p.pointers(); !slices.Equal(got, []string{pointer}) {
			t.Errorf("%s: the faults are at %q: %s", body, got, p.Detail)
		}
	}
	for _, key := range []string{"a%20b", "a%2Fb", "é", "a%00", "a:b", strings.Repeat("k", 129)} {
		for _, method := range []string{"PUT", "DELETE"} {
			body := ""
			if method == "PUT" {
				body = scan
			}
			p := refused(t, a.Do(method, "/ebs/x/running/"+key, body), 400, oda.InvalidRequest)
			if got := p.pointers(); !slices.Equal(got, []string{"path:key"}) {
				t.Errorf("%s of %s: the faults are at %q: %s", method, key, got, p.Detail)
			}
		}
	}
	sized := func(n int) string {
		const rest = `{"request":"r","request_args":{"a":""}}`
		return `{"request":"r","request_args":{"a":"` + strings.Repeat("x", n-len(rest)) + `"}}`
	}
	refused(t, a.Do("PUT", "/ebs/x/running/k", sized(16<<10+1)), 413, oda.BodyTooLarge, "16384 bytes")
	if got := nowRunning(t, a, "/running"); got != "" {
		t.Errorf("%q is running", got)
	}
	want(t, 204, a.Do("PUT", "/ebs/x/running/"+strings.Repeat("k", 128), sized(16<<10)))
	refused(t, a.Do("GET", "/running?telescope=a&telescope=b", ""), 400, oda.InvalidRequest)
	refused(t, a.Do("GET", "/running?limit=1", ""), 400, oda.InvalidRequest)
}

// problemOf checks the status of a problem about the form of a request.
func problemOf(t testing.TB, r *env.Reply, status int) problem {
	t.Helper()
	code := oda.InvalidRequest
	if strings.Contains(string(r.Body), "invalid-json") {
		code = oda.InvalidJSON
	}
	return refused(t, r, status, code)
}

func TestTooManyRunningCallsAreRefused(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/ebs/x", `{}`)
	for i := range oda.MaxRunningOfCaller {
		want(t, 204, a.Do("PUT", fmt.Sprint("/ebs/x/running/", i), scan))
	}
	refused(t, a.Do("PUT", "/ebs/x/running/more", scan), 429, oda.TooManyRunning, "1000 calls of this caller")
	want(t, 204, a.Do("PUT", "/ebs/x/running/more", scan, "X-Forwarded-User", "another"))
}

func TestWhatIsRunningAsAStream(t *testing.T) {
	t.Parallel() // a lease lasts five seconds
	a := env.Start(t)
	store(t, a, "/ebs/x", `{"telescope":"ska_mid"}`)
	store(t, a, "/ebs/y", `{"telescope":"ska_low"}`)
	all, mid, plain := a.Events("/running"), a.Events("/running?telescope=ska_mid"), a.Events("/running", "Accept-Encoding", "identity")
	if got := all.Response.Header; got.Get("Content-Type") != "text/event-stream" || got.Get("Cache-Control") != "no-store" {
		t.Errorf("the headers are %v", got)
	}
	follow := func(e *env.Events, wanted string) {
		t.Helper()
		event := must.Get(e.Data())(t)
		if got := runningIn(t, []byte(event.Data)); event.Name != "running" || got != wanted {
			t.Errorf("the event %q says that %q is running, want %q", event.Name, got, wanted)
		}
	}
	for _, e := range []*env.Events{all, mid, plain} {
		follow(e, "")
	}
	want(t, 204, a.Do("PUT", "/ebs/y/running/1", scan))
	follow(all, "y/1")
	follow(plain, "y/1")
	want(t, 204, a.Do("PUT", "/ebs/y/running/1", scan)) // a renewal is no change
	want(t, 204, a.Do("PUT", "/ebs/x/running/1", `{"request":"scan","lease_seconds":5}`))
	follow(all, "x/1 y/1")
	follow(mid, "x/1") // it was not told of the other telescope
	want(t, 200, a.Do("POST", "/ebs/y/request_response", scan, "Idempotency-Key", "1"))
	follow(all, "x/1")
	follow(all, "x/1?")
	follow(mid, "x/1?")
	want(t, 204, a.Do("DELETE", "/ebs/x/running/1", ""))
	follow(all, "")
	want(t, 200, a.Do("HEAD", "/running", "", "Accept", "text/event-stream"))
	if line := finished(t, a, all); line["status"] != 200.0 || line["operation"] != "running" {
		t.Errorf("the log has %v", line)
	}
	late := a.Events("/running")
	follow(late, "")
	must.Do(t, a.Stop())
	if _, err := late.Data(); !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the stream ends with %v", err)
	}
}

func TestThoseWhoFollowWhatIsRunningAreFollowers(t *testing.T) {
	a := env.Start(t, func(cfg *app.Config) { cfg.MaxFollowers, cfg.MaxConnections = 2, 2 })
	streams := []*env.Events{a.Events("/running"), a.Events("/changes")}
	a.AwaitFollowers(2)
	for _, path := range []string{"/running", "/changes"} {
		refused(t, a.Do("GET", path, "", "Accept", "text/event-stream"), 503, oda.Overloaded, "2 clients follow")
	}
	streams[0].Close()
	a.AwaitFollowers(1)
	store(t, a, "/sbds/a", `{}`)
	must.Get(streams[1].Data())(t) // it goes on without the other
	streams[1].Close()
	a.AwaitFollowers(0)
	must.Get(a.Events("/running").Data())(t)
}
