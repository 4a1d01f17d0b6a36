package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"
)

// secureListener speaks TLS on the connections of a Listener.
type secureListener struct {
	*Listener
	config *tls.Config
	within time.Duration
	refuse Refusal

	begin    sync.Once
	accepted chan accepted
}

type accepted struct {
	conn net.Conn
	err  error
}

// Secure returns a listener that speaks TLS. It hands out connections after their
// handshake, which must take no longer than within. A client that speaks no TLS is
// refused in plain text.
func (l *Listener) Secure(config *tls.Config, within time.Duration, refuse Refusal) net.Listener {
	return &secureListener{Listener: l, config: config, within: within, refuse: refuse, accepted: make(chan accepted)}
}

// Accept waits for a connection that has completed its handshake.
func (l *secureListener) Accept() (net.Conn, error) {
	l.begin.Do(func() { go l.acceptAll() })
	select {
	case a := <-l.accepted:
		return a.conn, a.err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// acceptAll accepts connections, so that one that is slow in its handshake holds up
// no other. They take places, which bounds their number.
func (l *secureListener) acceptAll() {
	for {
		tcp, slot, err := l.accept()
		if err != nil {
			if !l.hand(accepted{err: err}) {
				return
			}
			continue // net/http tries again after a while, unless the listener is closed
		}
		go l.shake(&slottedConn{Conn: tcp, slot: slot})
	}
}

// hand hands the outcome to Accept, unless the listener is closed.
func (l *secureListener) hand(a accepted) bool {
	select {
	case l.accepted <- a:
		return true
	case <-l.closed:
		return false
	}
}

// shake does the handshake. If that fails, the client is at fault or gone, and its
// connection ends. net/http takes connections of HTTP/2 as they are.
func (l *secureListener) shake(under *slottedConn) {
	conn := tls.Server(under, l.config)
	ctx, cancel := context.WithTimeout(context.Background(), l.within)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = under.SetDeadline(time.Now()) }) // also ends the answer to one without TLS
	defer stop()
	if err := conn.HandshakeContext(ctx); err != nil {
		if plain, ok := errors.AsType[tls.RecordHeaderError](err); ok && plain.Conn != nil && likeHTTP(plain.RecordHeader) {
			_, _ = under.Write(l.refuse(under.RemoteAddr(), "400 this address speaks HTTPS; write https:// in front of it"))
		}
		_ = under.Close() // the client is at fault or gone
		return
	}
	state := conn.ConnectionState()
	var secure net.Conn = conn
	if state.NegotiatedProtocol != "h2" {
		secure = &secureConn{&http1Conn{Conn: conn, slot: under.slot}, state}
	}
	stop()
	if !l.hand(accepted{conn: secure}) {
		_ = under.Close()
	}
}

// likeHTTP reports whether the first bytes of a connection begin a request of HTTP/1.1.
func likeHTTP(start [5]byte) bool {
	switch string(start[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "PATCH", "OPTIO":
		return true
	}
	return false
}

// secureConn is a connection of HTTP/1.1 over TLS.
type secureConn struct {
	*http1Conn
	state tls.ConnectionState
}

// ConnectionState lets net/http tell handlers that the connection is secure.
func (c *secureConn) ConnectionState() tls.ConnectionState { return c.state }
