package serving

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// countingListener counts the writes to its connections.
type countingListener struct {
	net.Listener
	writes atomic.Int64
}

type countingConn struct {
	net.Conn
	writes *atomic.Int64
}

func (l *countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return countingConn{c, &l.writes}, err
}

func (c countingConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// TestASmallAnswerIsSentInOnePiece sends all requests over one connection, so that
// nothing of an answer can be left over unnoticed.
func TestASmallAnswerIsSentInOnePiece(t *testing.T) {
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		w.Header().Set("Content-Length", strconv.Itoa(size))
		w.Header().Set("Padding", strings.Repeat("p", len(r.URL.RawQuery)*100))
		if r.Method != http.MethodHead {
			Whole(r.Context(), size)
		}
		_, _ = w.Write(bytes.Repeat([]byte("x"), size))
	})}
	listener := listen(t, 1).(*Listener)
	counting := &countingListener{Listener: listener.inner}
	listener.inner = counting
	conn := connect(t, serve(t, listener, server))
	answers := bufio.NewReader(conn)
	for _, request := range []struct {
		method, target string
		body           int
		most           int64 // writes
	}{
		{"GET", "/0", 0, 1},
		{"GET", "/100", 100, 1},
		{"GET", "/3900", 3900, 1},
		{"GET", "/4096", 4096, 1},
		{"HEAD", "/5000", 0, 1},
		{"GET", "/5000", 5000, 1},
		{"GET", "/16000", 16000, 1},
		{"GET", "/16383", 16383, 2}, // with its head it does not fit
		{"GET", "/16384", 16384, 2},
		{"GET", "/1000000", 1000000, 2},
		{"GET", "/5000?" + strings.Repeat("q", 45), 5000, 3}, // the head itself is sent in pieces
		{"GET", "/5000", 5000, 1},
	} {
		before := counting.writes.Load()
		if _, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\n\r\n", request.method, request.target); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(answers, &http.Request{Method: request.method})
		if err != nil {
			t.Fatalf("%s %s: %v", request.method, request.target, err)
		}
		body, err := io.ReadAll(response.Body)
		if err != nil || string(body) != strings.Repeat("x", request.body) {
			t.Errorf("%s %s answered %d bytes, %v", request.method, request.target, len(body), err)
		}
		if writes := counting.writes.Load() - before; writes > request.most {
			t.Errorf("%s %s was sent in %d pieces, want %d", request.method, request.target, writes, request.most)
		}
	}
	if answers.Buffered() > 0 {
		t.Error("there are bytes behind the last answer")
	}
}

// TestAnAnswerThatIsNotCompletedEndsTheConnection has a handler that writes less
// than it has announced.
func TestAnAnswerThatIsNotCompletedEndsTheConnection(t *testing.T) {
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "9000")
		Whole(r.Context(), 9000)
		_, _ = w.Write(make([]byte, 6000))
	})}
	Refuse(server, func(net.Addr, string) []byte { return nil })
	listener := listen(t, 1)
	serving, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- Until(serving, server, listener, time.Second) }()
	defer func() { cancel(); <-served }()
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+listener.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err == nil {
		defer response.Body.Close()
		_, err = io.ReadAll(response.Body)
	}
	if err == nil || ctx.Err() != nil {
		t.Errorf("the client got %v, want the end of the connection", err)
	}
}
