package httpapi_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"oda"
	"oda/internal/test/env"
)

// What is not well-formed HTTP never gets to an operation, and is answered by
// net/http itself. It is a problem nevertheless, with its line in the log.
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
				t.Error("the connection goes on")
			}
			if line := a.Logged(r.Header.Get("X-Request-Id")); line["problem"] != "invalid-request" || line["client"] == nil || line["status"] != 400.0 {
				t.Errorf("the log says %v", line)
			}
		})
	}
	// It may come behind requests that are right, whose answers stand.
	conn := dial(t, a)
	fmt.Fprint(conn, "PUT /api/v1/sbds/a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"+
		"GET /api/v1/sbds/a HTTP/1.1\r\nHost: x\r\n\r\nGET /%zz HTTP/1.1\r\nHost: x\r\n\r\n")
	reader := bufio.NewReader(conn)
	for _, status := range []int{200, 200, 400} {
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := env.Read(response)
		if err != nil || r.Header.Get("X-Request-Id") == "" {
			t.Errorf("the answer is %v, %v", r, err)
		}
		want(t, status, r)
	}
	if rest, err := io.ReadAll(reader); err != nil || len(rest) > 0 {
		t.Errorf("the connection does not end cleanly: %q, %v", rest, err)
	}
}
