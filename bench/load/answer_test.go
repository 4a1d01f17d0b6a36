package load_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"oda/bench/load"
)

// script answers every request on every connection with the same bytes, in
// pieces of the given size, and closes the connection where asked to. It is a
// server for answers that net/http would not send.
func script(t *testing.T, answer string, piece int, closes bool) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go play(c, answer, piece, closes)
		}
	}()
	return listener.Addr().String()
}

func play(c net.Conn, answer string, piece int, closes bool) {
	defer c.Close()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	for requests := bufio.NewReader(c); ; {
		if _, err := http.ReadRequest(requests); err != nil {
			return
		}
		for rest := answer; rest != ""; {
			n := min(piece, len(rest))
			if _, err := c.Write([]byte(rest[:n])); err != nil {
				return
			}
			if rest = rest[n:]; rest != "" {
				// Time to be read: what is written at once arrives as one.
				time.Sleep(50 * time.Microsecond)
			}
		}
		if closes {
			return
		}
	}
}

func TestAnswersOfEveryForm(t *testing.T) {
	for name, c := range map[string]struct {
		method, answer string
		closes         bool
		status         int
		body           string
	}{
		"a length": {
			answer: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", status: 200, body: "hello",
		},
		"names in any case": {
			answer: "HTTP/1.1 200 OK\r\ncontent-LENGTH:5\r\n\r\nhello", status: 200, body: "hello",
		},
		"an empty body": {
			answer: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", status: 200,
		},
		"chunks": {
			answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nC;x=y\r\n, wide world\r\n0\r\n\r\n",
			status: 200, body: "hello, wide world",
		},
		"chunks with a trailer": {
			answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\n[]\r\n0\r\nX-Sum: 1\r\nX-Two: 2\r\n\r\n",
			status: 200, body: "[]",
		},
		"no content": {
			answer: "HTTP/1.1 204 No Content\r\n\r\n", status: 204,
		},
		"not modified, with the length of what is not sent": {
			answer: "HTTP/1.1 304 Not Modified\r\nContent-Length: 5000\r\nETag: \"1-2\"\r\n\r\n", status: 304,
		},
		"to HEAD": {
			method: "HEAD", answer: "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n", status: 200,
		},
		"after an interim answer": {
			answer: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}",
			status: 201, body: "{}",
		},
		"announced end": {
			answer: "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}", closes: true,
			status: 200, body: "{}",
		},
		"a body that ends with the connection": {
			answer: "HTTP/1.1 200 OK\r\n\r\nto the end", closes: true, status: 200, body: "to the end",
		},
		"HTTP/1.0": {
			answer: "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", closes: true, status: 200, body: "{}",
		},
		"HTTP/1.0 kept alive": {
			answer: "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n{}",
			status: 200, body: "{}",
		},
	} {
		for _, piece := range []int{1 << 20, 7, 1} {
			t.Run(fmt.Sprintf("%s, %d bytes at a time", name, piece), func(t *testing.T) {
				addr := script(t, c.answer, piece, c.closes)
				method := c.method
				if method == "" {
					method = "GET"
				}
				judge := func(a *load.Answer) error {
					if a.Status != c.status || string(a.Body) != c.body || a.Size != int64(len(c.body)) {
						return fmt.Errorf("status %d, body %q, size %d", a.Status, a.Body, a.Size)
					}
					return nil
				}
				s, err := load.Closed(t.Context(), load.Target{
					Addr: addr, Connections: 1, New: func(int) load.Worker {
						return &asker{load.Request(nil, method, "/", nil, nil), judge}
					},
				}, 2*time.Millisecond)
				if err != nil || s.Failed > 0 || s.Operations < 1 {
					t.Errorf("%+v, %v", s, err)
				}
			})
		}
	}
}

func TestBrokenAnswersAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ answer, want string }{
		"not HTTP":           {"SSH-2.0-OpenSSH\r\n\r\n", "not HTTP"},
		"no status":          {"HTTP/1.1 OK\r\n\r\n", "no status"},
		"no number":          {"HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello", "no length"},
		"a negative length":  {"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello", "no length"},
		"another encoding":   {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "not known"},
		"no size":            {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "size of a chunk"},
		"a wrong chunk":      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n0\r\n\r\n", "longer than it says"},
		"an endless line":    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1", 5000), "longer than"},
		"an endless header":  {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 20000), "header is longer"},
		"too much to keep":   {"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n", "discard it"},
		"two answers":        {strings.Repeat("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 2), "more bytes"},
		"half a header":      {"HTTP/1.1 200 OK\r\nContent-Le", "unexpected EOF"},
		"half a body":        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", "unexpected EOF"},
		"half a chunk":       {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", "unexpected EOF"},
		"no last chunk":      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "unexpected EOF"},
		"nothing":            {"", "unexpected EOF"},
		"an unended trailer": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: 1\r\n", "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			addr := script(t, c.answer, 1<<20, true)
			a, err := load.Once(t.Context(), addr, get("/"))
			if err == nil {
				t.Fatalf("taken as status %d, body %q", a.Status, a.Body)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q, want one that says %q", err, c.want)
			}
		})
	}
}
