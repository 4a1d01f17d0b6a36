package serving

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func listen(t *testing.T, n int) net.Listener {
	t.Helper()
	listener, err := Listen(t.Context(), "--listen", "127.0.0.1:0", n)
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// serve lets a server serve until the test ends.
func serve(t *testing.T, listener net.Listener, server *http.Server) net.Listener {
	t.Helper()
	Refuse(server, func(net.Addr, string) []byte { return nil })
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- Until(ctx, server, listener, time.Second) }()
	t.Cleanup(func() { cancel(); <-served })
	return listener
}

// connect connects to a listener, for ten seconds at most.
func connect(t *testing.T, to net.Listener) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", to.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	return conn
}

func TestAnAddressInUseIsReported(t *testing.T) {
	first := listen(t, 1)
	defer first.Close()
	_, err := Listen(t.Context(), "--listen", first.Addr().String(), 1)
	if err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("got %v", err)
	}
}

func TestAnEndlessRequestIsCutOffAfterTheGraceTime(t *testing.T) {
	started := make(chan struct{})
	var said strings.Builder
	server := &http.Server{ErrorLog: log.New(&said, "", 0), Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(started)
		<-r.Context().Done()
	})}
	listener := listen(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- Until(ctx, server, listener, 50*time.Millisecond) }()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-started
	cancel()
	// A requested stop is not a failure.
	if err := <-served; err != nil {
		t.Error(err)
	}
	if !strings.Contains(said.String(), "still in use after 50ms and was cut off") {
		t.Errorf("the log does not report the request that was cut off, but has %q", said.String())
	}
}

func TestRunningRequestsFinishWhenTheServiceStops(t *testing.T) {
	started, finish := make(chan struct{}), make(chan struct{})
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(started)
		<-finish
		w.Write([]byte("done"))
	})}
	listener := listen(t, 4)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- Until(ctx, server, listener, time.Second) }()
	answered := make(chan string, 1)
	go func() {
		response, err := http.Get("http://" + listener.Addr().String())
		if err != nil {
			answered <- err.Error()
			return
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		answered <- string(body)
	}()
	<-started
	cancel()
	select {
	case err := <-served:
		t.Fatalf("the server stopped while a request was running: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(finish)
	if got := <-answered; got != "done" {
		t.Errorf("the request got %q", got)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestConnectionsAreLimited(t *testing.T) {
	listener := listen(t, 1)
	accepted := make(chan net.Conn)
	ended := make(chan error, 1)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				ended <- err
				return
			}
			accepted <- conn
		}
	}()
	for range 2 {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	first := <-accepted
	select {
	case <-accepted:
		t.Fatal("a second connection was accepted")
	case <-time.After(30 * time.Millisecond):
	}
	first.Close()
	first.Close()
	second := <-accepted
	defer second.Close()
	// Close also ends an Accept that waits for a free slot.
	listener.Close()
	if err := <-ended; err == nil {
		t.Error("Accept returned no error")
	}
}

// A connection that comes back counts, also if others have taken all slots meanwhile.
func TestAConnectionThatWaitedAsideCountsAgain(t *testing.T) {
	listener := listen(t, 1).(*Listener)
	defer listener.Close()
	accept := func() net.Conn {
		client, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		conn, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	want := func(n int) {
		t.Helper()
		if got, _ := listener.Level(); got != n {
			t.Errorf("%d connections count, want %d", got, n)
		}
	}
	first := accept()
	about, _ := known(first)
	back := Aside(context.WithValue(t.Context(), connKey{}, about))
	want(0)
	second := accept()
	want(1)
	back()
	want(2)
	second.Close()
	want(1) // the only slot is still taken
	first.Close()
	want(0)
}
