package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"net/http"
	"os"
	"strings"
	"syscall"

	"oda"
	"oda/archive"
	"oda/internal/auth"
	"oda/internal/engine/migrate"
	"oda/internal/httpapi"
	"oda/internal/moving"
	"oda/internal/postgres"
	"oda/internal/skuid"
	"oda/internal/sqlite"
)

// Export writes an export of a database: its name is that of Config.Database. It calls
// begin with how many positions there are to read, and progress with how many more
// were written.
func Export(ctx context.Context, database string, scope oda.Scope, to io.Writer, log *slog.Logger, begin, progress func(int64)) (*moving.Manifest, error) {
	store, err := openExisting(ctx, database, log)
	if errors.Is(err, syscall.EROFS) {
		err = fmt.Errorf("%w; copy the archive to another disk with \"oda backup\" and \"oda restore\", and export the copy", err)
	}
	if err != nil {
		return nil, err
	}
	defer store.Close()
	until, wanted, err := moving.Choose(ctx, store, scope)
	if err != nil {
		return nil, err
	}
	begin(int64(until))
	return moving.Export(ctx, store, until, wanted, to, progress)
}

// openExisting opens the engine for a database that has an archive.
func openExisting(ctx context.Context, database string, log *slog.Logger) (oda.Engine, error) {
	if path, ok := sqlitePath(database); ok {
		return sqlite.OpenExisting(ctx, path, log)
	}
	if isPostgres(database) {
		return postgres.OpenExisting(ctx, database, log)
	}
	return nil, unknownDatabase(database)
}

// Preserve brings sources into a database as they were, but no documents of more than
// maxDocument bytes. No other process may have the database open.
func Preserve(ctx context.Context, database string, sources []string, maxDocument int64, report *moving.Report, log *slog.Logger) error {
	return loaded(ctx, database, log, func(into moving.Loader) error {
		return moving.Preserve(ctx, sources, maxDocument, into, report)
	})
}

// loaded opens a database for somebody who loads entries into it.
func loaded(ctx context.Context, database string, log *slog.Logger, load func(moving.Loader) error) (err error) {
	into := &opening{open: func() (store, error) {
		s, _, err := openStore(ctx, Config{Database: database, Log: log}, func(migrate.Status) {})
		if shared, ok := s.(*postgres.Store); ok && err == nil {
			if err := shared.Alone(ctx); err != nil {
				return nil, errors.Join(err, s.Close())
			}
		}
		return s, err
	}}
	if !IsNew(database) {
		if _, err := into.opened(); err != nil {
			return err
		}
	}
	defer func() { err = errors.Join(err, into.close()) }()
	if err := load(into); err != nil {
		return err
	}
	// Everything has its position once the end is known.
	s, err := into.opened()
	if err == nil {
		_, err = s.End(ctx)
	}
	return err
}

// IsNew reports whether an archive of the embedded engine would be created. An import opens
// it only when there is something to store, so that one that fails before leaves none behind.
func IsNew(database string) bool {
	path, embedded := strings.CutPrefix(database, "sqlite:")
	_, err := os.Lstat(path)
	return embedded && errors.Is(err, fs.ErrNotExist)
}

// opening is an archive that is opened when it is needed.
type opening struct {
	open  func() (store, error)
	store store // nil until then
}

func (o *opening) opened() (_ store, err error) {
	if o.store == nil {
		o.store, err = o.open()
	}
	return o.store, err
}

func (o *opening) close() error {
	if o.store == nil {
		return nil
	}
	return o.store.Close()
}

// Load implements moving.Loader.
func (o *opening) Load(ctx context.Context, entries []oda.LogEntry) ([]error, error) {
	s, err := o.opened()
	if err != nil {
		return nil, err
	}
	return s.Load(ctx, entries)
}

// Sync implements moving.Loader.
func (o *opening) Sync(ctx context.Context) error {
	if o.store == nil {
		return nil
	}
	return o.store.Sync(ctx)
}

// Interface opens a database, and returns its interface to be called within this
// process, with bodies of at most maxBody bytes. Done closes the database.
func Interface(ctx context.Context, database string, maxBody int64, log *slog.Logger) (transport http.RoundTripper, done func() error, err error) {
	store, _, err := openStore(ctx, Config{Database: database, Log: log}, func(migrate.Status) {})
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, store.Close())
		}
	}()
	minter, err := skuid.NewGenerator(0)
	if err != nil {
		return nil, nil, err
	}
	gate, err := auth.New(auth.Config{}, log)
	if err != nil {
		return nil, nil, err
	}
	api, err := httpapi.New(httpapi.Config{
		Archive: archive.New(store, minter), Gate: gate, Log: slog.New(slog.DiscardHandler),
		Bounds: httpapi.Bounds{Body: maxBody, InFlight: math.MaxInt64, Depth: oda.MaxDepth}, // an import sends few at once
	})
	if err != nil {
		return nil, nil, err
	}
	return inProcess{api}, func() error { return errors.Join(store.Close(), minter.Close()) }, nil
}

// inProcess sends requests to a handler, without a network.
type inProcess struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	// A handler expects what a server makes of a request.
	r = r.Clone(r.Context())
	r.RequestURI, r.RemoteAddr = r.URL.RequestURI(), "127.0.0.1:0"
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w := &answer{header: make(http.Header), status: http.StatusOK}
	p.handler.ServeHTTP(w, r)
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: w.header, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()),
	}, nil
}

// answer keeps the answer of a handler.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }
func (a *answer) WriteHeader(status int)      { a.status = status }
