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

// refusals lets a connection replace the answers that net/http writes itself. A
// malformed request never reaches a handler: net/http writes its answer
// directly to the connection. So anything written while no handler has the
// connection is such an answer.
type refusals struct {
	answer  func(client net.Addr, reason string) []byte
	handled atomic.Bool // a handler has the connection
	late    bool        // the last read ended by its deadline
	refused bool
}

// connKey is the key of the connection in the context of a request.
type connKey struct{}

// Refuse lets answer make the complete response to a request that net/http
// itself refuses, on connections of Listen. The reason is net/http's, such as
// "431 Request Header Fields Too Large". It is "408 Request Timeout" if the
// header did not arrive in time; net/http would mistake the part that arrived
// for a malformed request. The connection ends afterwards.
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
			c.refusals.late = false // net/http itself ended the read, after the handler
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

// Read notes whether the deadline ended the read.
func (c *limitedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.refusals.late = errors.Is(err, os.ErrDeadlineExceeded)
	return n, err
}

// Write sends a handler's answer, or replaces a refusal by net/http.
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

// CloseWrite lets net/http end a connection in a way that delivers its last
// answer.
func (c *limitedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
