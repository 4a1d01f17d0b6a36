package serving

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// from connects from an address of this machine, for ten seconds at most.
func from(t *testing.T, address string, to net.Listener) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	conn, err := dialer.Dial("tcp", to.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	return conn
}

// status asks for a path and returns the status.
func status(conn net.Conn, path string) (int, error) {
	if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		return 0, err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, nil
}

// crowded serves n connections. On spare ones it answers only probes; requests for /slow
// last until the client leaves or the test ends.
func crowded(t *testing.T, n int, crowd Crowd) net.Listener {
	t.Helper()
	end := make(chan struct{})
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if IsSpare(r.Context()) {
			w.Header().Set("Connection", "close")
			if r.URL.Path != "/livez" {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			return
		}
		if r.URL.Path == "/slow" {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-end:
			case <-r.Context().Done():
			}
		}
	})}
	listener := listen(t, n).(*Listener)
	listener.Expect(crowd)
	serve(t, listener, server)
	t.Cleanup(func() { close(end) })
	return listener
}

func bySource(client net.Addr) string { return client.(*net.TCPAddr).IP.String() }

func isOpen(conn net.Conn) bool {
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	_, err := conn.Read(make([]byte, 1))
	netErr, ok := err.(net.Error)
	return ok && netErr.Timeout()
}

// awaitClosed waits until the server has closed a connection.
func awaitClosed(t *testing.T, name string, conn net.Conn) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := conn.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("%s was not closed: %v", name, err)
	}
}

func TestTheOldestConnectionWithoutARequestIsGivenUpFirst(t *testing.T) {
	t.Parallel()
	listener := crowded(t, 3, Crowd{})
	idle := connect(t, listener)
	if got, err := status(idle, "/"); got != 200 {
		t.Fatal(got, err)
	}
	oldest := connect(t, listener)
	time.Sleep(10 * time.Millisecond)
	younger := connect(t, listener)
	if _, err := io.WriteString(younger, "GET / HTT"); err != nil { // no request yet
		t.Fatal(err)
	}
	for i, victim := range []net.Conn{oldest, younger, idle} {
		busy := connect(t, listener)
		if got, err := status(busy, "/slow"); got != 200 {
			t.Fatalf("connection %d got %d, %v", i, got, err)
		}
		awaitClosed(t, fmt.Sprint("connection ", i), victim)
	}
}

func TestAnAddressHasSoManyConnections(t *testing.T) {
	t.Parallel()
	listener := crowded(t, 10, Crowd{PerAddress: 2, Source: bySource})
	var busy []net.Conn
	for i := range 2 {
		busy = append(busy, from(t, "127.0.0.2", listener))
		if got, err := status(busy[i], "/slow"); got != 200 {
			t.Fatal(got, err)
		}
	}
	awaitClosed(t, "a third connection", from(t, "127.0.0.2", listener))
	if got, err := status(from(t, "127.0.0.3", listener), "/"); got != 200 {
		t.Errorf("another address got %d, %v", got, err)
	}
	_ = busy[0].Close()
	last := time.Now().Add(10 * time.Second)
	for { // the server must notice
		conn := from(t, "127.0.0.2", listener)
		got, err := status(conn, "/")
		_ = conn.Close()
		if got == 200 {
			break
		}
		if time.Now().After(last) {
			t.Fatalf("after one has ended, another gets %d, %v", got, err)
		}
	}
	if !isOpen(busy[1]) {
		t.Error("a connection with a request was closed")
	}
}

// An address that has as many as it may gives up one of its own without a request.
func TestAnAddressGivesUpItsOwnConnections(t *testing.T) {
	t.Parallel()
	listener := crowded(t, 10, Crowd{PerAddress: 2, Source: bySource})
	other := from(t, "127.0.0.3", listener)
	first, second := from(t, "127.0.0.2", listener), from(t, "127.0.0.2", listener)
	time.Sleep(idleLeast + idleLook)
	if got, err := status(from(t, "127.0.0.2", listener), "/slow"); got != 200 {
		t.Errorf("the third one got %d, %v", got, err)
	}
	awaitClosed(t, "the first one", first)
	for _, conn := range []net.Conn{second, other} {
		if !isOpen(conn) {
			t.Error("another connection was closed too")
		}
	}
}

func TestProbesAreAnsweredWhenAllPlacesAreTaken(t *testing.T) {
	t.Parallel()
	listener := crowded(t, 2, Crowd{Spare: 2})
	for range 2 {
		if got, err := status(connect(t, listener), "/slow"); got != 200 {
			t.Fatal(got, err)
		}
	}
	for range 5 {
		connect(t, listener) // asks for nothing
	}
	for i := range 5 {
		if got, err := status(connect(t, listener), "/livez"); got != 200 {
			t.Errorf("probe %d got %d, %v", i, got, err)
		}
		if got, err := status(connect(t, listener), "/"); got != 503 {
			t.Errorf("request %d got %d, %v", i, got, err)
		}
	}
}
