package serving

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
)

// refusals is what a connection needs to answer, in the server's own way, what
// net/http itself refuses: a request that is not well-formed never reaches a
// handler, and net/http writes its answer straight to the connection. So what
// is written while no handler has the connection is one of these answers.
type refusals struct {
	answer  func(client net.Addr, reason string) []byte
	handled atomic.Bool // a handler has the connection
	late    bool        // the last read ended by its deadline
	refused bool
}

// connKey is the key of the connection in the context of a request.
type connKey struct{}

// Refuse lets answer make the whole response to a request that net/http refuses
// itself, on connections of Listen. The reason is net/http's, such as
// "431 Request Header Fields Too Large", or "408 Request Timeout" where the
// header did not arrive in time: net/http takes the part of a line that arrived
// for the whole, and finds it wrong. The connection ends after it.
func Refuse(server *http.Server, answer func(client net.Addr, reason string) []byte) {
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		c, ok := conn.(*limitedConn)
		if !ok {
			return ctx
		}
		c.refusals.answer = answer
		return context.WithValue(ctx, connKey{}, c)
	}
	server.ConnState = func(conn net.Conn, state http.ConnState) {
		if c, ok := conn.(*limitedConn); ok && state == http.StateIdle {
			c.refusals.handled.Store(false)
			c.refusals.late = false // it was net/http that ended the read, behind the handler
		}
	}
	next := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*limitedConn); ok {
			c.refusals.handled.Store(true)
		}
		next.ServeHTTP(w, r)
	})
}

// Read notes whether the read ended by its deadline.
func (c *limitedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.refusals.late = errors.Is(err, os.ErrDeadlineExceeded)
	return n, err
}

// Write sends what a handler answers, and instead of net/http's own
// refusals the answer of the server.
func (c *limitedConn) Write(p []byte) (int, error) {
	r := &c.refusals
	switch {
	case r.answer == nil || r.handled.Load():
		return c.Conn.Write(p)
	case r.refused:
		return len(p), nil
	}
	r.refused = true
	line, _, _ := strings.Cut(string(p), "\r\n")
	_, reason, _ := strings.Cut(line, " ")
	if r.late {
		reason = "408 Request Timeout"
	}
	if _, err := c.Conn.Write(r.answer(c.RemoteAddr(), reason)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// CloseWrite lets net/http end a connection so that its last answer arrives.
func (c *limitedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
