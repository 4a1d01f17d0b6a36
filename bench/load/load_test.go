package load_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oda/bench/load"
)

// asker sends one request again and again and hands the answers to a function.
type asker struct {
	request []byte
	judge   func(*load.Answer) error
}

func (a *asker) Next(buf []byte) []byte          { return append(buf, a.request...) }
func (a *asker) Answered(got *load.Answer) error { return a.judge(got) }

func wantOK(a *load.Answer) error {
	if a.Status != http.StatusOK {
		return fmt.Errorf("status %d", a.Status)
	}
	return nil
}

func get(path string) []byte {
	return load.Request(nil, "GET", path, nil, nil)
}

// target asks for one path over a number of connections.
func target(addr string, connections int, path string) load.Target {
	return load.Target{Addr: addr, Connections: connections, New: func(int) load.Worker {
		return &asker{get(path), wantOK}
	}}
}

// serve starts a real server; it returns its address and counts connections.
func serve(t *testing.T, handler http.HandlerFunc) (addr string, connections *atomic.Int64) {
	t.Helper()
	connections = new(atomic.Int64)
	server := httptest.NewUnstartedServer(handler)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String(), connections
}

func TestClosedKeepsItsConnections(t *testing.T) {
	var served atomic.Int64
	body := strings.Repeat("x", 5000)
	addr, connections := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		served.Add(1)
		io.WriteString(w, body)
	})
	made := 0
	to := target(addr, 4, "/")
	worker := to.New
	to.New = func(i int) load.Worker { made++; return worker(i) }
	s, err := load.Closed(t.Context(), to, 200*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if s.Failed > 0 || s.Operations != served.Load() || s.Bytes != s.Operations*5000 {
		t.Errorf("%d served, measured %+v", served.Load(), s)
	}
	if connections.Load() != 4 || made != 4 {
		t.Errorf("%d connections and %d workers, want 4", connections.Load(), made)
	}
	if s.Elapsed < 200*time.Millisecond || s.P50 <= 0 || s.P99 < s.P50 || s.Max < s.P99 {
		t.Errorf("%+v", s)
	}
}

func TestConnectionsAreDealtToAllServers(t *testing.T) {
	var addrs []string
	var counts []*atomic.Int64
	for range 3 {
		addr, count := serve(t, func(http.ResponseWriter, *http.Request) {})
		addrs, counts = append(addrs, addr), append(counts, count)
	}
	to := target(addrs[0], 7, "/")
	to.Also = addrs[1:]
	if s, err := load.Closed(t.Context(), to, 20*time.Millisecond); err != nil || s.Failed > 0 {
		t.Fatal(s, err)
	}
	for i, want := range []int64{3, 2, 2} {
		if got := counts[i].Load(); got != want {
			t.Errorf("server %d has %d connections, want %d", i, got, want)
		}
	}
}

func TestRequestArrivesAsGiven(t *testing.T) {
	addr, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %s", r.Method, r.URL, r.Header.Get("X-Forwarded-User"), body)
	})
	request := load.Request([]byte{}, "PUT", "/a?b=c", []string{"X-Forwarded-User", "ada"}, []byte(`{"k":1}`))
	a, err := load.Once(t.Context(), addr, request)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(a.Body), `PUT /a?b=c ada {"k":1}`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := string(a.Get("content-length")); got != "22" {
		t.Errorf("content-length %q", got)
	}
	if a.Get("x-missing") != nil {
		t.Error("a header that is not there has a value")
	}
}

func TestServerThatClosesEveryConnectionIsFollowed(t *testing.T) {
	addr, connections := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
	})
	s, err := load.Closed(t.Context(), target(addr, 2, "/"), 50*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if s.Failed > 0 || s.Operations < 2 || connections.Load() < s.Operations {
		t.Errorf("%d connections for %+v", connections.Load(), s)
	}
}

func TestConnectionCutShortIsAFailedOperation(t *testing.T) {
	var served atomic.Int64
	addr, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if served.Add(1)%5 == 0 {
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, "half")
			panic(http.ErrAbortHandler)
		}
	})
	s, err := load.Closed(t.Context(), target(addr, 1, "/"), 50*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if s.Failed != served.Load()/5 || s.Operations != served.Load()-s.Failed {
		t.Errorf("%d served, measured %+v", served.Load(), s)
	}
	if !strings.Contains(s.FirstFailure, "unexpected EOF") {
		t.Errorf("first failure %q", s.FirstFailure)
	}
}

func TestWrongAnswersAreCountedAndTheFirstIsKept(t *testing.T) {
	var served atomic.Int64
	addr, connections := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if n := served.Add(1); n%2 == 0 {
			w.WriteHeader(500 + int(min(n, 99)))
		}
	})
	s, err := load.Closed(t.Context(), target(addr, 1, "/"), 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if s.Failed != served.Load()/2 || s.Operations+s.Failed != served.Load() {
		t.Errorf("%d served, measured %+v", served.Load(), s)
	}
	if s.FirstFailure != "status 502" || connections.Load() != 1 {
		t.Errorf("first failure %q over %d connections", s.FirstFailure, connections.Load())
	}
}

func TestAnswerThatTakesTooLongFails(t *testing.T) {
	var served atomic.Int64
	addr, _ := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if served.Add(1) == 3 {
			<-r.Context().Done()
		}
	})
	to := target(addr, 1, "/")
	to.Patience = 100 * time.Millisecond
	s, err := load.Closed(t.Context(), to, 300*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if s.Failed != 1 || !strings.Contains(s.FirstFailure, "timeout") {
		t.Errorf("%+v", s)
	}
	if s.Operations != served.Load()-1 || s.Operations < 3 {
		t.Errorf("%d served, %d operations: the work must go on", served.Load(), s.Operations)
	}
}

func TestRunEndsWithTheCallerOrTheServer(t *testing.T) {
	hold, _ := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	gone := func() string {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			c, err := listener.Accept()
			listener.Close()
			if err == nil {
				http.ReadRequest(bufio.NewReader(c))
				c.Close()
			}
		}()
		return listener.Addr().String()
	}
	quick := func() (context.Context, context.CancelFunc) {
		return context.WithTimeout(t.Context(), 50*time.Millisecond)
	}
	for name, run := range map[string]func(context.Context) error{
		"closed, no answer": func(ctx context.Context) error {
			_, err := load.Closed(ctx, target(hold, 2, "/"), time.Minute)
			return err
		},
		"open, nothing due": func(ctx context.Context) error {
			_, err := load.Open(ctx, target(hold, 4, "/"), 0.01, time.Minute)
			return err
		},
		"once, no answer": func(ctx context.Context) error {
			_, err := load.Once(ctx, hold, get("/"))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := quick()
			defer cancel()
			start := time.Now()
			if err := run(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v", err)
			}
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
	t.Run("the server has gone", func(t *testing.T) {
		_, err := load.Closed(t.Context(), target(gone(), 1, "/"), time.Minute)
		if err == nil || !strings.Contains(err.Error(), "connecting to the server") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("there never was a server", func(t *testing.T) {
		if _, err := load.Closed(t.Context(), target("127.0.0.1:1", 1, "/"), time.Minute); err == nil {
			t.Error("no error")
		}
	})
	for name, to := range map[string]load.Target{
		"no connections": {Addr: hold, New: func(int) load.Worker { return nil }},
		"no workers":     {Addr: hold, Connections: 1},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := load.Closed(t.Context(), to, time.Second); err == nil {
				t.Error("no error")
			}
		})
	}
}

func TestLargeAnswersAreKeptOrCounted(t *testing.T) {
	const size = 3 << 20
	content := bytes.Repeat([]byte("0123456789abcde\n"), size/16)
	addr, connections := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/length" {
			w.Header().Set("Content-Length", fmt.Sprint(size))
		}
		w.Write(content)
	})
	for _, path := range []string{"/length", "/chunked"} {
		for _, discard := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s discard %v", path, discard), func(t *testing.T) {
				connections.Store(0)
				judge := func(a *load.Answer) error {
					if a.Size != size || a.FirstByte <= 0 {
						return fmt.Errorf("size %d, first byte after %v", a.Size, a.FirstByte)
					}
					if !discard && !bytes.Equal(a.Body, content) || discard && len(a.Body) > 0 {
						return errors.New("another body")
					}
					if !bytes.HasPrefix(a.Header, []byte("HTTP/1.1 200 OK\r\n")) {
						return fmt.Errorf("header %q", a.Header)
					}
					return nil
				}
				to := load.Target{Addr: addr, Connections: 1, Discard: discard, New: func(int) load.Worker {
					return &asker{get(path), judge}
				}}
				s, err := load.Closed(t.Context(), to, 30*time.Millisecond)
				if err != nil || s.Failed > 0 || s.Bytes != s.Operations*size {
					t.Errorf("%+v, %v", s, err)
				}
				if connections.Load() != 1 {
					t.Errorf("%d connections", connections.Load())
				}
			})
		}
	}
}
