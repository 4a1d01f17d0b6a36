package env

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"oda/internal/app"
	"oda/internal/httpapi"
	"oda/internal/test/judge"
	"oda/internal/test/must"
)

// Archive is a complete archive in the process of the test: the real API on the
// real embedded engine, in its own directory. Everything sent with its client
// is checked against the API description.
type Archive struct {
	tb     testing.TB
	app    *app.App
	base   string
	log    *Journal
	client *http.Client
	stop   func() error
}

// Start starts an archive with the defaults of the command line, changed by the
// given functions. It stops with the test.
func Start(tb testing.TB, configure ...func(*app.Config)) *Archive {
	tb.Helper()
	log := &Journal{}
	cfg := app.Config{
		Listen:         "127.0.0.1:0",
		Database:       "sqlite:" + filepath.Join(tb.TempDir(), "archive.db"),
		Generator:      1,
		Bounds:         httpapi.Bounds{Body: 64 << 20, InFlight: 256 << 20, Depth: 100},
		HeaderTimeout:  10 * time.Second,
		ReadTimeout:    60 * time.Second,
		WriteTimeout:   120 * time.Second,
		IdleTimeout:    120 * time.Second,
		MaxConnections: 1024,
		MaxFollowers:   4096,
		Version:        "test",
		Log:            slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, change := range configure {
		change(&cfg)
	}
	running, err := app.Start(context.Background(), cfg)
	if err != nil {
		tb.Fatalf("start an archive: %v", err)
	}
	a := &Archive{tb: tb, app: running, log: log, stop: sync.OnceValue(running.Stop)}
	if trimmed := strings.Trim(cfg.BasePath, "/"); trimmed != "" {
		a.base = "/" + trimmed
	}
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64, ExpectContinueTimeout: 10 * time.Second}
	checked, err := judge.New(a.URL(), cfg.Bounds.Depth, transport, func(complaint string) { tb.Error(complaint) })
	if err != nil {
		tb.Fatalf("set up the judge: %v", err)
	}
	a.client = &http.Client{
		Transport: checked,
		Timeout:   60 * time.Second,
		// Tests see redirects as they are.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	tb.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := a.Stop(); err != nil {
			tb.Errorf("stop the archive: %v", err)
		}
	})
	return a
}

// Addr returns the address that the archive listens on.
func (a *Archive) Addr() string { return a.app.Addr() }

// Admin returns the address for operators as a URL without a path.
func (a *Archive) Admin() string { return "http://" + a.app.AdminAddr().String() }

// Origin returns the address as a URL without a path.
func (a *Archive) Origin() string { return "http://" + a.Addr() }

// URL returns the address of the API, including /api/v1.
func (a *Archive) URL() string { return a.Origin() + a.base + "/api/v1" }

// Client returns an HTTP client whose requests and responses are checked.
func (a *Archive) Client() *http.Client { return a.client }

// Followers returns how many clients follow the archive.
func (a *Archive) Followers() int { return a.app.Followers() }

// AwaitFollowers waits until n clients follow the archive.
func (a *Archive) AwaitFollowers(n int) {
	a.tb.Helper()
	Await(a.tb, fmt.Sprintf("%d clients follow the archive", n), func() bool { return a.Followers() == n })
}

// Stop stops the archive gracefully before the test ends.
func (a *Archive) Stop() error { return a.stop() }

// Log returns the lines that the archive has logged so far.
func (a *Archive) Log() []map[string]any {
	a.tb.Helper()
	var entries []map[string]any
	for line := range strings.Lines(a.LogText()) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			a.tb.Fatalf("the log has a line that is not JSON: %v\n%s", err, line)
		}
		entries = append(entries, entry)
	}
	return entries
}

// LogText returns the log as text.
func (a *Archive) LogText() string { return a.log.String() }

// Logged waits for the line of the request with this id. The line is written
// after the answer, so it may arrive later.
func (a *Archive) Logged(requestID string) map[string]any {
	a.tb.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		for _, entry := range a.Log() {
			if entry["msg"] == "request" && entry["request_id"] == requestID {
				return entry
			}
		}
	}
	a.tb.Fatalf("the log has no line of the request %q", requestID)
	return nil
}

// Reply is a response that has been read to the end.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte // decompressed if necessary
	Raw    []byte // as received
	Close  bool   // the server ends the connection
}

// Do sends a request and reads the answer. The path is relative to /api/v1, or
// a whole URL; headers are pairs of name and value.
func (a *Archive) Do(method, path, body string, headers ...string) *Reply {
	a.tb.Helper()
	answer := must.Get(a.Try(method, path, body, headers...))(a.tb)
	return answer
}

// Must is like Do, and ends the test unless the answer is 200.
func (a *Archive) Must(method, path, body string, headers ...string) *Reply {
	a.tb.Helper()
	answer := a.Do(method, path, body, headers...)
	if answer.Status != http.StatusOK {
		a.tb.Fatalf("%s %s is answered %d: %s", method, path, answer.Status, answer.Body)
	}
	return answer
}

// Try is like Do, for requests that may fail and for goroutines other than the
// test's own.
func (a *Archive) Try(method, path, body string, headers ...string) (*Reply, error) {
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	if !strings.HasPrefix(path, "http://") {
		path = a.URL() + path
	}
	request, err := http.NewRequestWithContext(context.Background(), method, path, content)
	if err != nil {
		return nil, err
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header[http.CanonicalHeaderKey(headers[i])] = nil
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	response, err := a.client.Do(request)
	if err != nil {
		return nil, err
	}
	return Read(response)
}

// Read reads a response to its end.
func Read(response *http.Response) (*Reply, error) {
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	body, err := judge.Decoded(response.Header.Get("Content-Encoding"), raw)
	return &Reply{Status: response.StatusCode, Header: response.Header, Body: body, Raw: raw, Close: response.Close}, err
}

// Send sends a request to any address, on a connection of its own, and returns the status
// and the body of the answer. Headers are pairs of name and value.
func Send(tb testing.TB, method, url, body string, headers ...string) (int, string) {
	tb.Helper()
	request := must.Get(http.NewRequestWithContext(tb.Context(), method, url, strings.NewReader(body)))(tb)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
	reply := must.Get(Read(must.Get(client.Do(request))(tb)))(tb)
	return reply.Status, reply.Text()
}

// Text returns the body.
func (a *Reply) Text() string { return string(a.Body) }
