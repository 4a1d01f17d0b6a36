package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
)

// http1Conn is a connection of HTTP/1.1. It can replace the answers that net/http
// writes itself. A malformed request never reaches a handler: net/http writes its
// answer directly to the connection. So anything written while no handler has the
// connection is such an answer.
type http1Conn struct {
	net.Conn // TCP or TLS
	slot     *slot

	answer  Refusal
	handled atomic.Bool // a handler has the connection
	late    bool        // the last read ended by its deadline
	refused bool

	unwatched atomic.Bool // nobody need notice that the client leaves

	body  int // bytes in the body of the answer that is sent next, if it may be sent in one piece
	piece piece
}

// A Refusal makes the complete response to a request that no handler sees. The
// reason is net/http's, such as "431 Request Header Fields Too Large". It is "408
// Request Timeout" if the header did not arrive in time; net/http would mistake the
// part that arrived for a malformed request. The connection ends afterwards.
type Refusal func(client net.Addr, reason string) []byte

// Refuse lets answer make the response to a request that net/http itself refuses, on
// connections of a Listener.
func Refuse(server *http.Server, answer Refusal) {
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		conn, ok := known(c)
		if !ok {
			return ctx
		}
		if conn.http1 != nil {
			conn.http1.answer = answer
		}
		return context.WithValue(ctx, connKey{}, conn)
	}
	server.ConnState = func(c net.Conn, state http.ConnState) {
		conn, ok := known(c)
		if !ok {
			return
		}
		conn.slot.rest(state)
		if conn.http1 != nil && state == http.StateIdle {
			_ = conn.http1.release() // net/http will notice if the connection is broken
			conn.http1.handled.Store(false)
			conn.http1.unwatched.Store(false)
			conn.http1.late = false // net/http itself ended the read, after the handler
		}
	}
	next := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(conn); ok && c.http1 != nil {
			c.http1.handled.Store(true)
		}
		next.ServeHTTP(w, r)
	})
}

// Read notes whether the deadline ended the read. Only whoever waits for the client to
// leave reads a single byte; reading nothing ends that. The tests of Unwatched fail if
// net/http waits in another way (connReader.backgroundRead).
func (c *http1Conn) Read(p []byte) (int, error) {
	if len(p) == 1 && c.unwatched.Load() {
		return 0, nil
	}
	n, err := c.Conn.Read(p)
	c.late = errors.Is(err, os.ErrDeadlineExceeded)
	return n, err
}

// Write sends a handler's answer, or replaces a refusal by net/http.
func (c *http1Conn) Write(p []byte) (int, error) {
	switch {
	case c.answer == nil || c.handled.Load():
		return c.send(p)
	case c.refused:
		return len(p), nil
	}
	c.refused = true
	line, _, _ := strings.Cut(string(p), "\r\n")
	_, reason, _ := strings.Cut(line, " ")
	if c.late {
		reason = "408 Request Timeout"
	}
	if _, err := c.Conn.Write(c.answer(c.RemoteAddr(), reason)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close closes the connection and gives up its place.
func (c *http1Conn) Close() error {
	defer c.slot.close()
	return c.Conn.Close()
}

// CloseWrite lets net/http end a connection in a way that delivers its last
// answer.
func (c *http1Conn) CloseWrite() error {
	if err := c.release(); err != nil {
		return err
	}
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// NetConn returns the connection under TLS, or the connection itself.
func (c *http1Conn) NetConn() net.Conn {
	under := c.Conn
	if t, ok := under.(*tls.Conn); ok {
		under = t.NetConn()
	}
	if s, ok := under.(*slottedConn); ok {
		under = s.Conn
	}
	return under
}
