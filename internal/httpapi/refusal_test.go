package httpapi_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"oda"
	"oda/internal/app"
	"oda/internal/test/env"
)

// net/http itself answers a request that is not well-formed HTTP, and no handler
// sees it. The answer is still a problem, with a line in the log.
func TestRequestsThatAreNotWellFormed(t *testing.T) {
	a := env.Start(t)
	for name, test := range map[string]struct{ request, says string }{
		"a wrong escape":        {"GET /api/v1/sbds/%zz HTTP/1.1\r\nHost: x\r\n\r\n", "400 Bad Request"},
		"no Host":               {"GET /api/v1/sbds/a HTTP/1.1\r\n\r\n", "missing required Host header"},
		"two Hosts":             {"GET /api/v1/sbds/a HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", "400 Bad Request"},
		"a header too large":    {"GET /api/v1/sbds/a HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 100_000) + "\r\n\r\n", "limit of 65536 bytes"},
		"a wrong header":        {"GET /api/v1/sbds/a HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n", "400 Bad Request"},
		"a wrong header name":   {"GET /api/v1/sbds/a HTTP/1.1\r\nHost: x\r\nä: 1\r\n\r\n", "400 Bad Request"},
		"a version to come":     {"GET /api/v1/sbds/a HTTP/3.0\r\nHost: x\r\n\r\n", "HTTP Version Not Supported"},
		"another language":      {"EHLO archive\r\n\r\n", "400 Bad Request"},
		"an unknown coding":     {"PUT /api/v1/sbds/a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", "Not Implemented"},
		"two lengths":           {"PUT /api/v1/sbds/a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "400 Bad Request"},
		"another expectation":   {"PUT /api/v1/sbds/a HTTP/1.1\r\nHost: x\r\nExpect: the-unexpected\r\nContent-Length: 2\r\n\r\n{}", "417 Expectation Failed"},
		"a space in the target": {"GET /api/v1/sbds/a b HTTP/1.1\r\nHost: x\r\n\r\n", "400 Bad Request"},
	} {
		t.Run(name, func(t *testing.T) {
			r := raw(t, a, test.request)
			refused(t, r, 400, oda.InvalidRequest, test.says)
			if !r.Close {
				t.Error("the connection stays open")
			}
			if line := a.Logged(r.Header.Get("X-Request-Id")); line["problem"] != "invalid-request" || line["client"] == nil || line["status"] != 400.0 {
				t.Errorf("the log says %v", line)
			}
		})
	}
	// Earlier requests on the same connection keep their answers.
	conn := dial(t, a)
	fmt.Fprint(conn, "PUT /api/v1/sbds/a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"+
		"GET /api/v1/sbds/a HTTP/1.1\r\nHost: x\r\n\r\nGET /%zz HTTP/1.1\r\nHost: x\r\n\r\n")
	reader := bufio.NewReader(conn)
	for _, status := range []int{200, 200, 400} {
		r := want(t, status, next(t, reader))
		if r.Header.Get("X-Request-Id") == "" {
			t.Errorf("the answer has no X-Request-Id: %v", r.Header)
		}
	}
	if rest, err := io.ReadAll(reader); err != nil || len(rest) > 0 {
		t.Errorf("the connection does not end cleanly: %q, %v", rest, err)
	}
}

// A header that stops in the middle of a line did not arrive in time. It is not
// malformed, so the client may send the same request again.
func TestARequestThatStallsInItsHeader(t *testing.T) {
	t.Parallel()
	a := env.Start(t, func(cfg *app.Config) { cfg.HeaderTimeout = 200 * time.Millisecond })
	good := "GET /api/v1/sbds?created_after=2020-01-01 HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, start := range map[string]string{
		"in the request line":         "POST /api/v1/ebs/eb/request_resp",
		"in a header":                 "POST /api/v1/ebs/eb/request_response HTTP/1.1\r\nHost: x\r\nContent-Le",
		"before the rest of a method": "POST",
	} {
		for before, sent := range map[string]string{"": "", ", behind another request": good} {
			t.Run(name+before, func(t *testing.T) {
				t.Parallel()
				conn := dial(t, a)
				reader := bufio.NewReader(conn)
				fmt.Fprint(conn, sent+start)
				if sent != "" {
					want(t, 200, next(t, reader))
				}
				r := next(t, reader)
				refused(t, r, 408, oda.RequestTimeout, "did not arrive in time", "Nothing was stored", "again")
				if !r.Close {
					t.Error("the connection goes on")
				}
				if line := a.Logged(r.Header.Get("X-Request-Id")); line["problem"] != "request-timeout" || line["status"] != 408.0 {
					t.Errorf("the log says %v", line)
				}
			})
		}
	}
	// A malformed line stays malformed, however slowly the rest arrives.
	refused(t, raw(t, a, "GET /api/v1/sbds/%zz HTTP/1.1\r\nHos"), 400, oda.InvalidRequest)
}

// next reads the next response on a connection.
func next(t testing.TB, reader *bufio.Reader) *env.Reply {
	t.Helper()
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatalf("there is no answer: %v", err)
	}
	r, err := env.Read(response)
	if err != nil {
		t.Fatalf("the answer is incomplete: %v", err)
	}
	return r
}
