// Package serving runs HTTP servers within bounds: a listener with a maximum
// number of connections, which may speak TLS, and a server that stops
// gracefully. The archive and the identifier service share it.
package serving

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"syscall"
	"time"
)

// Listen opens a TCP listener with at most n connections. Further ones take the places of
// those that have sent no request for a second, or wait. An error is a sentence for the
// operator and names the flag of the address.
func Listen(ctx context.Context, flag, address string, n int) (*Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("cannot listen on %s: the address is in use; stop the other program, or choose another address with %s", address, flag)
	case err != nil:
		return nil, fmt.Errorf("cannot listen on %s (set it with %s, as HOST:PORT): %w", address, flag, err)
	}
	return &Listener{inner: listener, slots: make(chan struct{}, n), closed: make(chan struct{}), all: make(map[*slot]struct{}), bySource: make(map[string]int)}, nil
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
