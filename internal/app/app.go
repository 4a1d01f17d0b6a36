// Package app puts the parts of the archive together: the engine, the source of
// identifiers, the interface and the pages, behind one listener. It is the only
// place that knows an engine by name. A test can start a whole archive with it,
// in its own process.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"oda"
	"oda/internal/engine/migrate"
	"oda/internal/httpapi"
	"oda/internal/postgres"
	"oda/internal/serving"
	"oda/internal/skuid"
	"oda/internal/sqlite"
	"oda/internal/web"
)

// Config says how an archive runs.
type Config struct {
	Listen   string
	Database string // sqlite:PATH or postgres://...
	BasePath string

	SkuidURL   string // of the identifier service; empty: the archive mints itself
	SkuidTypes string
	Generator  uint16 // number under which the archive mints

	Bounds         httpapi.Bounds
	HeaderTimeout  time.Duration
	ReadTimeout    time.Duration
	WriteTimeout   time.Duration
	IdleTimeout    time.Duration
	MaxConnections int

	Version string
	Log     *slog.Logger
}

// grace is how long running requests may take to finish when the archive
// stops: less than the ten seconds in which it must be gone.
const grace = 8 * time.Second

// App is an archive that runs.
type App struct {
	address net.Addr
	cancel  context.CancelFunc
	done    chan struct{}
	err     error // set when done is closed
}

// closers are what must be put away when the archive stops, last one first.
type closers []func() error

func (c closers) close() error {
	var err error
	for i := len(c) - 1; i >= 0; i-- {
		err = errors.Join(err, c[i]())
	}
	return err
}

// patience is how long an archive may take to open before the probes are
// answered nevertheless. Most open at once, and their first requests wait.
const patience = 500 * time.Millisecond

// Start opens the archive and begins to serve. It stops when ctx ends or Stop
// is called. While opening the archive takes long, for its schema has to be
// brought up to date, the probes are answered already. Its errors are one sentence each, meant for the operator.
func Start(ctx context.Context, cfg Config) (_ *App, err error) {
	var opened closers
	defer func() {
		if err != nil {
			err = errors.Join(err, opened.close())
		}
	}()
	base, err := basePath(cfg.BasePath)
	if err != nil {
		return nil, err
	}
	minter, closeMinter, err := newMinter(cfg)
	if err != nil {
		return nil, err
	}
	opened = append(opened, closeMinter)
	// The file comes last: a start that fails for another reason leaves no new
	// archive behind, and no archive brought up to a newer schema.
	listener, err := serving.Listen(ctx, cfg.Listen, cfg.MaxConnections)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	a := &App{address: listener.Addr(), cancel: cancel, done: make(chan struct{})}
	front := newFront(cfg, base)
	serve := a.server(ctx, cfg, listener, front)
	defer func() {
		if err != nil {
			cancel()
			err = errors.Join(err, <-serve())
		}
	}()
	early := time.AfterFunc(patience, func() {
		cfg.Log.Info("opening the archive takes long", "address", "http://"+a.Addr()+base+"/readyz", "reason", front.reason())
		serve()
	})
	store, engine, err := openStore(ctx, cfg, front.tell)
	early.Stop()
	if err != nil {
		return nil, err
	}
	opened = append(opened, store.Close)
	archive := oda.NewArchive(store, minter)
	site := web.New(web.Config{Counts: archive.Counts, Version: cfg.Version, Engine: engine, Logger: cfg.Log})
	handler, err := httpapi.New(httpapi.Config{Archive: archive, Pages: site, BasePath: base, Bounds: cfg.Bounds, Log: cfg.Log})
	if err != nil {
		return nil, err
	}
	front.open(handler)
	cfg.Log.Info("serving the archive", "address", "http://"+a.Addr()+base+"/api/v1/", "database", shown(cfg.Database), "version", cfg.Version)
	go a.run(ctx, serve(), site, opened, cfg.Log)
	return a, nil
}

// server gives what begins to serve, once, and then tells how serving ended.
func (a *App) server(ctx context.Context, cfg Config, listener net.Listener, handler http.Handler) func() <-chan error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: cfg.HeaderTimeout,
		ReadTimeout:       cfg.ReadTimeout,
		WriteTimeout:      cfg.WriteTimeout,
		IdleTimeout:       cfg.IdleTimeout,
		MaxHeaderBytes:    httpapi.MaxHeader,
		ErrorLog:          slog.NewLogLogger(cfg.Log.Handler(), slog.LevelWarn),
		// All answers come from one place, also that to OPTIONS *.
		DisableGeneralOptionsHandler: true,
	}
	serving.Refuse(server, httpapi.Refusals(cfg.Log))
	return sync.OnceValue(func() <-chan error {
		ended := make(chan error, 1)
		go func() { ended <- serving.Until(ctx, server, listener, grace) }()
		return ended
	})
}

func (a *App) run(ctx context.Context, served <-chan error, site *web.Site, opened closers, log *slog.Logger) {
	defer close(a.done)
	defer a.cancel()
	var background sync.WaitGroup
	background.Go(func() { site.Run(ctx) })
	err := <-served
	a.cancel()
	background.Wait()
	a.err = errors.Join(err, opened.close())
	log.Info("the archive has stopped")
}

// Addr is the address that the archive listens on.
func (a *App) Addr() string { return a.address.String() }

// Wait waits until the archive has stopped, and tells how it went.
func (a *App) Wait() error {
	<-a.done
	return a.err
}

// Stop ends the archive: no new connections, running requests finish.
func (a *App) Stop() error {
	a.cancel()
	return a.Wait()
}

// basePath normalises the prefix before all paths.
func basePath(path string) (string, error) {
	trimmed := strings.Trim(path, "/")
	if trimmed == "" {
		return "", nil
	}
	for segment := range strings.SplitSeq(trimmed, "/") {
		if !oda.ValidID(segment) {
			return "", fmt.Errorf("the base path %q is not valid; write it as /name or /name/name, with letters, digits, dots, hyphens and underscores", path)
		}
	}
	return "/" + trimmed, nil
}

// openStore opens the engine that the database asks for, and names it.
func openStore(ctx context.Context, cfg Config, tell func(migrate.Status)) (oda.Engine, string, error) {
	if path, ok := strings.CutPrefix(cfg.Database, "sqlite:"); ok && path != "" {
		store, err := sqlite.Open(ctx, path, cfg.Log, tell)
		if err != nil {
			return nil, "", err
		}
		return store, "embedded (SQLite)", nil
	}
	if strings.HasPrefix(cfg.Database, "postgres://") || strings.HasPrefix(cfg.Database, "postgresql://") {
		store, err := postgres.Open(ctx, cfg.Database, cfg.Log, tell)
		if err != nil {
			return nil, "", err
		}
		return store, "PostgreSQL", nil
	}
	return nil, "", fmt.Errorf("unknown database %q; write it as sqlite:PATH or postgres://USER@HOST/NAME", shown(cfg.Database))
}

// shown is the database as it may stand in a log: without a password.
func shown(database string) string {
	if strings.HasPrefix(database, "sqlite:") {
		return database
	}
	u, err := url.Parse(database)
	if err != nil {
		return "(not valid)"
	}
	u.RawQuery = "" // may hold a password, too
	return u.Redacted()
}

// newMinter gives the source of identifiers.
func newMinter(cfg Config) (oda.Minter, func() error, error) {
	types, err := skuid.ParseTypes(cfg.SkuidTypes)
	if err != nil {
		return nil, nil, err
	}
	if cfg.SkuidURL != "" {
		client, err := skuid.NewClient(cfg.SkuidURL, types)
		if err != nil {
			return nil, nil, err
		}
		return client, func() error { client.Close(); return nil }, nil
	}
	generator, err := skuid.NewGenerator(cfg.Generator)
	if err != nil {
		return nil, nil, err
	}
	return generator, generator.Close, nil
}
