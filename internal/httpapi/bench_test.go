package httpapi_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"oda/archive"
	"oda/internal/auth"
	"oda/internal/httpapi"
	"oda/internal/skuid"
	"oda/internal/test/embedded"
	"oda/internal/web"
)

// benchRecord is a record as scripts send them.
const benchRecord = `{"request":"devicecontrol.assign_resources","request_args":{"args":null,"kwargs":{"subarray_id":"1"}},` +
	`"status":"OK","request_sent_at":"2026-03-01T21:04:05.500000Z","response":{"result":"resources are assigned"},` +
	`"response_received_at":"2026-03-01T21:04:05.900000Z"}`

// benchDocument is an SBDefinition of about 5 KB.
func benchDocument() string {
	var b strings.Builder
	b.WriteString(`{"sbd_id":"sbd-bench","interface":"https://schema.skao.int/ska-oso-pdm-sbd/0.1","targets":[`)
	for i := 0; b.Len() < 4800; i++ {
		fmt.Fprintf(&b, `{"target_id": "calibrator %d", "reference_coordinate": {"kind": "equatorial", "ra": "19:39:25.026%d",`+
			` "dec": "-63:42:45.63", "unit": ["hourangle", "deg"]}, "rate": 0.35e9, "tied": null},`, i, i)
	}
	return b.String() + `{}],"metadata":{}}`
}

// desk returns the interface on the embedded engine, in this process. It logs as
// it does by default, but the log is discarded.
func desk(tb testing.TB) http.Handler {
	tb.Helper()
	return deskBehind(tb, auth.NewGate())
}

// deskBehind is desk for an archive that knows its callers by a gate.
func deskBehind(tb testing.TB, gate *auth.Gate) http.Handler {
	tb.Helper()
	minter, err := skuid.NewGenerator(1)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := minter.Close(); err != nil {
			tb.Error(err)
		}
	})
	archive := archive.New(embedded.Engine(tb), minter)
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	api, err := httpapi.New(httpapi.Config{
		Archive: archive, Gate: gate, Pages: web.New(web.Config{Version: "test", Engine: "embedded", Logger: log}),
		Bounds: httpapi.Bounds{Body: 64 << 20, InFlight: 256 << 20, Depth: 100}, Log: log,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return api
}

// caller sends one request again and again to a handler, without a network and
// without net/http, to measure the archive alone. It is also the writer of the
// answer.
type caller struct {
	tb      testing.TB
	handler http.Handler
	request *http.Request
	body    bytes.Reader
	header  http.Header
	status  int
	answer  []byte
}

func newCaller(tb testing.TB, handler http.Handler, method, path string) *caller {
	tb.Helper()
	request, err := http.NewRequestWithContext(context.Background(), method, "http://archive/api/v1"+path, http.NoBody)
	if err != nil {
		tb.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	return &caller{tb: tb, handler: handler, request: request, header: http.Header{}}
}

func (c *caller) Header() http.Header        { return c.header }
func (c *caller) WriteHeader(status int)     { c.status = status }
func (c *caller) Read(p []byte) (int, error) { return c.body.Read(p) }
func (c *caller) Close() error               { return nil }

func (c *caller) Write(p []byte) (int, error) {
	c.answer = append(c.answer, p...)
	return len(p), nil
}

// call sends the request with that body. The answer is valid until the next call.
func (c *caller) call(body []byte) []byte {
	clear(c.header)
	c.status, c.answer = 0, c.answer[:0]
	if c.request.ContentLength = int64(len(body)); len(body) > 0 {
		c.body.Reset(body)
		c.request.Body = c
	}
	c.handler.ServeHTTP(c, c.request)
	if c.status != http.StatusOK {
		c.tb.Fatalf("the status is %d: %s", c.status, c.answer)
	}
	return c.answer
}

// work returns the most frequent kinds of request. Each function sends one
// and returns how many bytes it carries.
var work = map[string]func(tb testing.TB, handler http.Handler) (send func(), size int){
	"GET": func(tb testing.TB, handler http.Handler) (func(), int) {
		document := newCaller(tb, handler, "PUT", "/sbds/sbd-bench").call([]byte(benchDocument()))
		get := newCaller(tb, handler, "GET", "/sbds/sbd-bench")
		return func() { get.call(nil) }, len(document)
	},
	"record": func(tb testing.TB, handler http.Handler) (func(), int) {
		newCaller(tb, handler, "PUT", "/ebs/eb-bench").call([]byte(`{}`))
		record, body := newCaller(tb, handler, "POST", "/ebs/eb-bench/request_response"), []byte(benchRecord)
		return func() { record.call(body) }, len(body)
	},
	"create": func(tb testing.TB, handler http.Handler) (func(), int) {
		put, count := newCaller(tb, handler, "PUT", "/sbds/sbd-bench"), 0
		before, behind, _ := strings.Cut(benchDocument(), "sbd-bench")
		var body []byte
		return func() {
			count++
			id := fmt.Sprintf("sbd-%09d", count)
			put.request.URL.Path = "/api/v1/sbds/" + id
			body = append(append(append(body[:0], before...), id...), behind...)
			put.call(body)
		}, len(before) + len(behind)
	},
	"update": func(tb testing.TB, handler http.Handler) (func(), int) {
		put := newCaller(tb, handler, "PUT", "/sbds/sbd-bench")
		body := bytes.Clone(put.call([]byte(benchDocument())))
		return func() { body = append(body[:0], put.call(body)...) }, len(body)
	},
}

// BenchmarkHandler measures the archive alone: a whole request without net/http.
func BenchmarkHandler(b *testing.B) {
	bench(b, func(_ testing.TB, handler http.Handler) http.Handler { return handler })
}

// BenchmarkLoopback does the same over a connection, with net/http and a client.
func BenchmarkLoopback(b *testing.B) { bench(b, loopback) }

// BenchmarkToken is BenchmarkHandler for a caller with a token.
func BenchmarkToken(b *testing.B) {
	for _, name := range []string{"GET", "record", "create", "update"} {
		b.Run(name, func(b *testing.B) {
			gate, headers := tokenGate(b)
			send, _ := work[name](b, withHeaders(deskBehind(b, gate), headers))
			b.ReportAllocs()
			for b.Loop() {
				send()
			}
		})
	}
}

// tokenGate returns a gate with a token for an admin, and the header of that.
func tokenGate(tb testing.TB) (*auth.Gate, []string) {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "tokens")
	header := newToken(tb, file, auth.Token{Name: "bench", Role: auth.Admin})
	gate, err := auth.New(auth.Config{Tokens: file}, slog.New(slog.DiscardHandler))
	if err != nil {
		tb.Fatal(err)
	}
	return gate, header
}

// withHeaders adds a header to every request.
func withHeaders(handler http.Handler, header []string) http.Handler {
	values := header[1:]
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header[header[0]] = values
		handler.ServeHTTP(w, r)
	})
}

// bench measures each kind of request on an archive of its own. Way wraps the
// archive's handler.
func bench(b *testing.B, way func(testing.TB, http.Handler) http.Handler) {
	for _, name := range []string{"GET", "record", "create", "update"} {
		b.Run(name, func(b *testing.B) {
			send, size := work[name](b, way(b, desk(b)))
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				send()
			}
		})
	}
}

// loopback serves the handler on a local port, and returns a handler that forwards
// requests to it over one connection.
func loopback(tb testing.TB, handler http.Handler) http.Handler {
	tb.Helper()
	server := httptest.NewServer(handler)
	tb.Cleanup(server.Close)
	transport := &http.Transport{DisableCompression: true}
	tb.Cleanup(transport.CloseIdleConnections)
	buffer := make([]byte, 32<<10)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Host = server.Listener.Addr().String()
		response, err := transport.RoundTrip(r)
		if err != nil {
			tb.Fatal(err)
		}
		w.WriteHeader(response.StatusCode)
		if _, err := io.CopyBuffer(w, response.Body, buffer); err != nil {
			tb.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			tb.Fatal(err)
		}
	})
}
