package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oda"
	"oda/client"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// faulty stands in front of an archive and answers the first requests with
// faults. It notes what arrives.
type faulty struct {
	*httptest.Server
	mu   sync.Mutex
	keys []string // of the requests that arrived
}

func front(t *testing.T, archive http.Handler, faults ...http.HandlerFunc) *faulty {
	t.Helper()
	f := &faulty{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.keys = append(f.keys, r.Header.Get("Idempotency-Key"))
		n := len(f.keys)
		f.mu.Unlock()
		if n <= len(faults) {
			faults[n-1](w, r)
			return
		}
		archive.ServeHTTP(w, r)
	}))
	f.Config.ErrorLog = nil
	t.Cleanup(f.Close)
	return f
}

func (f *faulty) arrived() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.keys
}

// reset breaks the connection without an answer.
func reset(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
}

// lose lets the archive handle the request, and breaks the connection during
// the answer.
func lose(archive http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		recorder := httptest.NewRecorder()
		archive.ServeHTTP(recorder, r)
		w.Header().Set("Content-Length", fmt.Sprint(recorder.Body.Len()))
		_, _ = w.Write(recorder.Body.Bytes()[:recorder.Body.Len()/2])
		panic(http.ErrAbortHandler)
	}
}

const overloaded = `{"type":"urn:oda:problem:overloaded","status":503,"detail":"Try again."}`

func dialing(t *testing.T, url string, options ...client.Option) *client.Client {
	t.Helper()
	return must.Get(client.New(url, options...))(t)
}

func TestASafeCallIsRetried(t *testing.T) {
	t.Parallel()
	archive := env.Start(t)
	direct := connect(t, archive)
	block := must.Get(direct.CreateBlock(t.Context(), nil, ""))(t).ID
	record := []byte(`{"request":"a"}`)
	t.Run("sent again", func(t *testing.T) {
		for name, call := range map[string]func(*testing.T, *client.Client) error{
			"get": func(t *testing.T, c *client.Client) error {
				_, err := c.Get(t.Context(), oda.ExecutionBlock, block)
				return err
			},
			"description": func(t *testing.T, c *client.Client) error { _, err := c.Description(t.Context()); return err },
			"create": func(t *testing.T, c *client.Client) error {
				_, err := c.Create(t.Context(), oda.Project, []byte(`{}`), "")
				return err
			},
			"create block": func(t *testing.T, c *client.Client) error { _, err := c.CreateBlock(t.Context(), nil, ""); return err },
			"record": func(t *testing.T, c *client.Client) error {
				_, err := c.Record(t.Context(), block, record, "")
				return err
			},
			"batch": func(t *testing.T, c *client.Client) error {
				_, err := c.RecordBatch(t.Context(), block, []oda.NewRecord{{Text: record}})
				return err
			},
			"page of a list": func(t *testing.T, c *client.Client) error {
				query := everything(oda.ExecutionBlock)
				query.Limit = 10
				collect(t, c.List(t.Context(), query))
				return nil
			},
			"records": func(t *testing.T, c *client.Client) error { collect(t, c.Records(t.Context(), block, 0)); return nil },
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f := front(t, archive.Forward(), reset, lose(archive.Forward()))
				if err := call(t, dialing(t, f.URL)); err != nil {
					t.Errorf("%v", err)
				}
				keys := f.arrived()
				if len(keys) != 3 || keys[0] != keys[2] {
					t.Errorf("the call was sent with the keys %q", keys)
				}
			})
		}
	})
	// Each write was stored once, though its answer was lost.
	if n := len(collect(t, direct.Records(t.Context(), block, 0))); n != 2 {
		t.Errorf("%d records are stored, want 2", n)
	}
	if n := len(collect(t, direct.List(t.Context(), everything(oda.Project)))); n != 1 {
		t.Errorf("%d projects are stored, want 1", n)
	}
	if n := len(collect(t, direct.List(t.Context(), everything(oda.ExecutionBlock)))); n != 2 {
		t.Errorf("%d blocks are stored, want 2", n)
	}
}

func TestStoreIsNotRetried(t *testing.T) {
	t.Parallel()
	archive := env.Start(t)
	for name, f := range map[string]http.HandlerFunc{
		"reset": reset, "lost answer": lose(archive.Forward()), "overloaded": env.Answering(503, overloaded, "Retry-After", "1"), "gateway": env.Answering(502, ""),
	} {
		t.Run(name, func(t *testing.T) {
			for _, store := range []func(*client.Client) error{
				func(c *client.Client) error {
					_, err := c.Store(t.Context(), oda.Project, "prj-1", []byte(`{}`))
					return err
				},
				func(c *client.Client) error { _, err := c.StoreSeveral(t.Context(), []byte(`{"prjs":[]}`)); return err },
			} {
				server := front(t, archive.Forward(), f)
				if err := store(dialing(t, server.URL)); err == nil || !client.Temporary(err) {
					t.Errorf("the error is %v", err)
				}
				if n := len(server.arrived()); n != 1 {
					t.Errorf("the call was sent %d times", n)
				}
			}
		})
	}
}

func TestStoreIsRetriedIfNoConnectionWasMade(t *testing.T) {
	t.Parallel()
	archive := env.Start(t)
	var dials atomic.Int32
	refusing := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		if dials.Add(1) < 3 {
			return nil, &net.OpError{Op: "dial", Net: network, Err: errors.New("connection refused")}
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}}
	defer refusing.CloseIdleConnections()
	c := dialing(t, archive.URL(), client.WithHTTPClient(&http.Client{Transport: refusing}))
	must.Get(c.Store(t.Context(), oda.Project, "prj-1", []byte(`{}`)))(t)
	if n := dials.Load(); n != 3 {
		t.Errorf("there were %d dials", n)
	}
}

func TestATemporaryFailureIsRetried(t *testing.T) {
	t.Parallel()
	archive := env.Start(t)
	for status, want := range map[int]int{408: 2, 425: 2, 429: 2, 502: 2, 503: 2, 504: 2, 500: 1, 400: 1} {
		f := front(t, archive.Forward(), env.Answering(status, "not now"))
		_, err := dialing(t, f.URL).Get(t.Context(), oda.Project, "prj-none")
		if n := len(f.arrived()); n != want {
			t.Errorf("after %d the call was sent %d times, want %d: %v", status, n, want, err)
		}
	}
}

func TestRetriesAreBounded(t *testing.T) {
	t.Parallel()
	for retries, want := range map[int]int{0: 1, 2: 3} {
		f := front(t, env.Answering(503, overloaded))
		_, err := dialing(t, f.URL, client.WithRetries(retries)).Get(t.Context(), oda.Project, "prj-1")
		refused(t, err, oda.Overloaded, 503)
		if n := len(f.arrived()); n != want {
			t.Errorf("with %d retries the call was sent %d times", retries, n)
		}
	}
}

func TestRetryAfterIsHonouredWithinBounds(t *testing.T) {
	t.Parallel()
	archive := env.Start(t)
	f := front(t, archive.Forward(), env.Answering(503, overloaded, "Retry-After", "1"))
	began := time.Now()
	_, err := dialing(t, f.URL).Get(t.Context(), oda.Project, "prj-none")
	refused(t, err, oda.NotFound, 404)
	if took := time.Since(began); took < time.Second {
		t.Errorf("the call was retried after %v", took)
	}
	f = front(t, archive.Forward(), env.Answering(503, overloaded, "Retry-After", "3600"))
	_, err = dialing(t, f.URL).Get(t.Context(), oda.Project, "prj-none")
	refused(t, err, oda.Overloaded, 503)
	if a, ok := errors.AsType[*client.Answer](err); !ok || a.RetryAfter != time.Hour {
		t.Errorf("the answer is %+v", a)
	}
}

func TestAContextEndsRetriesAndReading(t *testing.T) {
	t.Parallel()
	f := front(t, http.NotFoundHandler(), env.Answering(503, overloaded, "Retry-After", "9"))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := dialing(t, f.URL).Get(ctx, oda.Project, "prj-1")
	refused(t, err, oda.Overloaded, 503)
	if took := time.Since(began); took > env.AtMost(5*time.Second) {
		t.Errorf("the call took %v", took)
	}
	done, cancelled := context.WithCancel(t.Context())
	cancelled()
	if _, err := dialing(t, f.URL).Get(done, oda.Project, "prj-1"); !errors.Is(err, context.Canceled) || !errors.Is(err, client.ErrNoAnswer) {
		t.Errorf("the error is %v", err)
	}
	if n := len(f.arrived()); n != 1 {
		t.Errorf("%d requests arrived", n)
	}
}

func TestARequestToASilentArchiveIsGivenUp(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	silent := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "sbds") { // begin to answer
			_, _ = io.WriteString(w, `["sbd-1",`)
			_ = http.NewResponseController(w).Flush()
		}
		<-release
	})
	f := front(t, silent)
	defer close(release)
	c := dialing(t, f.URL, client.WithSilence(400*time.Millisecond), client.WithRetries(1))
	if _, err := c.Get(t.Context(), oda.Project, "prj-1"); !errors.Is(err, client.ErrNoAnswer) || !strings.Contains(err.Error(), "silent for too long") {
		t.Errorf("the error is %v", err)
	}
	if n := len(f.arrived()); n != 2 {
		t.Errorf("%d requests arrived", n)
	}
	var ids []string
	var last error
	for id, err := range c.List(t.Context(), everything(oda.SBDefinition)) {
		if last = err; err == nil {
			ids = append(ids, id)
			time.Sleep(600 * time.Millisecond) // the caller's own slowness does not count
		}
	}
	equal(t, "the identifiers before the error", ids, []string{"sbd-1"})
	if !errors.Is(last, client.ErrNoAnswer) || !strings.Contains(last.Error(), "silent for too long") {
		t.Errorf("the error is %v", last)
	}
}

func TestASlowUploadIsNotMistakenForSilence(t *testing.T) {
	t.Parallel()
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		buf := make([]byte, 256<<10)
		for {
			n, err := io.ReadFull(r.Body, buf)
			if err != nil && n == 0 {
				break
			}
			time.Sleep(15 * time.Millisecond) // in total twice the allowed silence
		}
		_, _ = io.WriteString(w, `{"sbds":[]}`)
	})
	f := front(t, slow)
	c := dialing(t, f.URL, client.WithSilence(2*time.Second))
	must.Get(c.StoreSeveral(t.Context(), bytes.Repeat([]byte("x"), 64<<20)))(t)
}
