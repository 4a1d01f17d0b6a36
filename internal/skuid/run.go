package skuid

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"oda/internal/serving"
)

// DefaultListen is the default address of an identifier service.
const DefaultListen = "127.0.0.1:9870"

// The bounds of the service are small, since a request is a line and an answer
// fits in one packet.
const (
	readTimeout    = 5 * time.Second
	writeTimeout   = 5 * time.Second
	idleTimeout    = 60 * time.Second
	stopTimeout    = 5 * time.Second
	headerBound    = 16 << 10
	maxConnections = 1024
)

// Config configures an identifier service.
type Config struct {
	Listen    string       // host:port; "" is DefaultListen, and port 0 any free port
	Generator uint16       // DefaultGenerator() if the operator gave none
	StateFile string       // if "", identifiers may repeat after a restart
	Twice     bool         // encode JSON answers twice
	Logger    *slog.Logger // if nil, nothing is logged

	clock func() time.Time // nil except in tests
}

// Running is an identifier service that is listening.
type Running struct {
	addr net.Addr
	done chan struct{}
	err  error // set when done is closed
}

// Run serves identifiers until ctx ends, and then lets running requests finish.
func Run(ctx context.Context, config Config) error {
	running, err := Listen(ctx, config)
	if err != nil {
		return err
	}
	return running.Wait()
}

// Listen starts an identifier service, which stops when ctx ends. If it returns
// no error, the service is listening, and the caller must call Wait.
func Listen(ctx context.Context, config Config) (*Running, error) {
	logger := config.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	generator, err := config.generator()
	if err != nil {
		return nil, err
	}
	address := config.Listen
	if address == "" {
		address = DefaultListen
	}
	listener, err := serving.Listen(ctx, "--listen", address, maxConnections)
	if err != nil {
		return nil, errors.Join(err, generator.Close())
	}
	server := &http.Server{
		Handler:           NewService(generator, config.Twice, logger),
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    headerBound,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	logger.Info("the identifier service listens",
		"address", listener.Addr().String(), "generator", config.Generator, "state", config.StateFile)
	running := &Running{addr: listener.Addr(), done: make(chan struct{})}
	go func() {
		defer close(running.done)
		running.err = errors.Join(serving.Until(ctx, server, listener, stopTimeout), generator.Close())
		logger.Info("the identifier service has stopped")
	}()
	return running, nil
}

// Addr returns the address that the service listens on.
func (r *Running) Addr() net.Addr { return r.addr }

// Wait waits until the service has stopped. It returns nil if the service
// stopped because its context ended and everything was closed.
func (r *Running) Wait() error {
	<-r.done
	return r.err
}

func (c Config) generator() (*Generator, error) {
	generator, err := NewGenerator(c.Generator)
	if err == nil && c.clock != nil {
		generator.clock = c.clock
	}
	if err != nil || c.StateFile == "" {
		return generator, err
	}
	state, err := OpenState(c.StateFile)
	if err != nil {
		return nil, err
	}
	generator.keep(state)
	return generator, nil
}
