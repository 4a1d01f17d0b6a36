package serving

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// unwatchedServer serves a handler that answers with the body of the request. For
// /unwatched it says that it finishes whether the client stays or not. Then it sends the
// request's context and waits, until it is told to answer.
func unwatchedServer(t *testing.T) (net.Conn, <-chan context.Context, chan<- struct{}) {
	handling, answer := make(chan context.Context), make(chan struct{})
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/unwatched" {
			Unwatched(r.Context())
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		handling <- r.Context()
		<-answer
		_, _ = w.Write(body)
	})}
	return connect(t, serve(t, listen(t, 1), server)), handling, answer
}

func TestOnlyAWatchedRequestEndsWithItsClient(t *testing.T) {
	for path, ends := range map[string]bool{"/watched": true, "/unwatched": false} {
		conn, handling, answer := unwatchedServer(t)
		if _, err := io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody"); err != nil {
			t.Fatal(err)
		}
		ctx := <-handling
		_ = conn.Close()
		select {
		case <-ctx.Done():
			if !ends {
				t.Errorf("%s: the request ended with its client", path)
			}
		case <-time.After(200 * time.Millisecond):
			if ends {
				t.Errorf("%s: the request did not end with its client", path)
			}
		}
		answer <- struct{}{}
	}
}

// Requests follow each other on one connection, some before the answer to the last one
// has come, so nothing may be lost or taken for a part of another.
func TestRequestsFollowUnwatchedOnes(t *testing.T) {
	conn, handling, answer := unwatchedServer(t)
	answers := bufio.NewReader(conn)
	chunked := "Transfer-Encoding: chunked\r\n\r\n3\r\nbod\r\n1\r\ny\r\n0\r\n\r\n"
	plain := "Content-Length: 4\r\n\r\nbody"
	for _, requests := range [][]string{
		{"/unwatched", plain},
		{"/unwatched", chunked},
		{"/watched", plain},
		{"/unwatched", plain, "/watched", plain, "/unwatched", chunked, "/unwatched", plain},
		{"/watched", chunked},
		{"/unwatched", "Content-Length: 0\r\n\r\n"}, // net/http waits at the connection already
	} {
		text := ""
		for i := 0; i < len(requests); i += 2 {
			text += "POST " + requests[i] + " HTTP/1.1\r\nHost: a\r\n" + requests[i+1]
		}
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(requests); i += 2 {
			ctx := <-handling
			if ctx.Err() != nil {
				t.Errorf("%q: the context of request %d has ended", requests, i/2)
			}
			answer <- struct{}{}
			response, err := http.ReadResponse(answers, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := "body"
			if strings.HasPrefix(requests[i+1], "Content-Length: 0") {
				want = ""
			}
			if body, err := io.ReadAll(response.Body); err != nil || string(body) != want {
				t.Fatalf("%q: request %d was answered with %q, %v", requests, i/2, body, err)
			}
		}
	}
}
