package peers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Commands by which the measuring program runs itself as a server.
const (
	serveBare      = "serve-bare"
	serveRewriting = "serve-rewriting"
)

// RunChild runs one of the servers that the measuring program has within
// itself, if the arguments (those after the program's name) ask for one, until
// SIGTERM. A main function, also that of a test, calls it before anything else.
func RunChild(args []string) (handled bool, err error) {
	if len(args) == 0 {
		return false, nil
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	switch {
	case args[0] == serveBare && len(args) == 2:
		return true, serve(ctx, args[1], bareHandler())
	case args[0] == serveRewriting && len(args) == 3:
		return true, runRewriting(ctx, args[1], args[2])
	case args[0] == serveOda && len(args) > 2:
		return true, runOda(args[1], args[2:])
	}
	return false, nil
}

// startChild starts the measuring program as one of its servers.
func (l *Lab) startChild(ctx context.Context, name, serve string, args ...string) (*Server, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return l.start(ctx, command{
		name: name, path: path, ready: "/readyz",
		args: append([]string{serve, "{addr}"}, args...),
	})
}

// serve serves until the context ends.
func serve(ctx context.Context, addr string, handler http.Handler) error {
	server := &http.Server{Addr: addr, Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		late, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		stopped <- server.Shutdown(late)
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve on %s: %w", addr, err)
	}
	return <-stopped
}
