// Package serving runs HTTP servers within bounds: a listener with a maximum
// number of connections, and a server that stops gracefully. The archive and
// the identifier service share it.
package serving

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Listen opens a TCP listener with at most n connections; further ones wait in
// the queue of the operating system. An error is a sentence for the operator.
func Listen(ctx context.Context, address string, n int) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("cannot listen on %s: the address is in use; stop the other program, or choose another address with --listen", address)
	case err != nil:
		return nil, fmt.Errorf("cannot listen on %s (set it with --listen): %w", address, err)
	}
	return &limited{Listener: listener, slots: make(chan struct{}, n), closed: make(chan struct{})}, nil
}

// Until serves until ctx ends or the listener fails. When ctx ends, it accepts
// no new connections and gives running requests the grace time to finish; those
// that are cut off are logged to the server's ErrorLog.
func Until(ctx context.Context, server *http.Server, listener net.Listener, grace time.Duration) error {
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return errors.Join(fmt.Errorf("serving: %w", err), server.Close())
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := server.Shutdown(stopping)
	if errors.Is(err, context.DeadlineExceeded) {
		// A slow client must not turn a requested stop into a failure.
		logger := server.ErrorLog
		if logger == nil {
			logger = log.Default()
		}
		logger.Printf("stopping: a connection was still in use after %v and was cut off", grace)
		err = server.Close()
	}
	<-failed
	return err
}

// limited is a listener with a slot for each connection.
type limited struct {
	net.Listener
	slots  chan struct{}
	once   sync.Once
	closed chan struct{}
}

func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	c := &limitedConn{Conn: conn, slots: l.slots}
	c.counted.Store(true)
	return c, nil
}

func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type limitedConn struct {
	net.Conn
	slots    chan struct{}
	counted  atomic.Bool // it has a slot
	refusals refusals
}

func (c *limitedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// SetWriteBuffer bounds what the operating system keeps of what is sent.
func (c *limitedConn) SetWriteBuffer(bytes int) error {
	if b, ok := c.Conn.(interface{ SetWriteBuffer(bytes int) error }); ok {
		return b.SetWriteBuffer(bytes)
	}
	return nil
}

// leave gives up the slot.
func (c *limitedConn) leave() {
	if c.counted.CompareAndSwap(true, false) {
		<-c.slots
	}
}

// Aside stops counting the connection of a request that waits for something and
// meanwhile asks for nothing. The caller bounds how many there are. Back counts it
// again, unless others have taken all slots.
func Aside(ctx context.Context) (back func()) {
	c, ok := ctx.Value(connKey{}).(*limitedConn)
	if !ok {
		return func() {}
	}
	c.leave()
	return func() {
		select {
		case c.slots <- struct{}{}:
			c.counted.Store(true)
		default:
		}
	}
}
