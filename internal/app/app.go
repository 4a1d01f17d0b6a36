// Package app assembles the archive: the engine, the source of identifiers, the
// API and the pages, behind one listener. It is the only package that knows the
// engines by name. Tests use it to start a complete archive in their own
// process.
package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"oda"
	"oda/archive"
	"oda/calls"
	"oda/internal/admission"
	"oda/internal/auditlog"
	"oda/internal/auth"
	"oda/internal/auth/oidc"
	"oda/internal/engine"
	"oda/internal/engine/migrate"
	"oda/internal/feed"
	"oda/internal/httpapi"
	"oda/internal/metrics"
	"oda/internal/moving"
	"oda/internal/postgres"
	"oda/internal/serving"
	"oda/internal/skuid"
	"oda/internal/sqlite"
	"oda/internal/web"
	"oda/naming"
	"oda/night"
	"oda/progress"
	"oda/provenance"
	"oda/search"
)

// Config configures an archive.
type Config struct {
	Listen      string
	AdminListen string // loopback address for metrics and profiles; if empty, metrics are on the main one
	Database    string // sqlite:PATH or postgres://...
	BasePath    string
	ReadOnly    bool // nothing may be stored

	TLSCertificate string // file; if empty, the archive does not speak TLS
	TLSKey         string

	SkuidURL   string // identifier service; if empty, the archive mints itself
	SkuidTypes string
	Generator  uint16 // generator number for minting

	Auth           auth.Config // who may call
	OIDC           oidc.Config // the OpenID provider, if it has an issuer
	PublicURL      string      // where browsers find the archive
	SessionKeyFile string      // the key of sessions; if empty, a random one

	Bounds         httpapi.Bounds
	HeaderTimeout  time.Duration
	ReadTimeout    time.Duration
	WriteTimeout   time.Duration
	IdleTimeout    time.Duration
	MaxConnections int
	MaxPerAddress  int              // connections of one address; 0 means a quarter of all
	MaxFollowers   int              // of the feed of changes
	Limits         admission.Limits // of one caller
	Origins        []string         // of web pages that may use the interface
	Zones          []string         // of nights: ZONE for all, TELESCOPE=ZONE for those of a telescope

	AuditLog     string // file; none if it is empty
	AuditMayFail bool   // writes go on while it cannot be written

	Version string
	Log     *slog.Logger
}

// grace is how long running requests may take when the archive stops: less than
// the ten seconds in which it must be gone.
const grace = 8 * time.Second

// When a connection of HTTP/2 counts as dead.
const (
	pingAfter     = 30 * time.Second // without anything from the client
	pingTime      = 15 * time.Second // for its answer
	writeByteTime = 10 * time.Second // for the connection to take at least one byte
)

// App is a running archive.
type App struct {
	address net.Addr
	audit   *auditlog.Log
	hub     *feed.Hub
	api     *httpapi.API
	nights  *night.Reporter
	signIn  *web.SignIn // nil if people cannot sign in
	admin   net.Addr    // nil without one
	cancel  context.CancelFunc
	done    chan struct{}
	err     error // set when done is closed
}

// closers are functions to call when the archive stops, last one first.
type closers []func() error

func (c closers) close() error {
	var err error
	for _, one := range slices.Backward(c) {
		err = errors.Join(err, one())
	}
	return err
}

// patience is how long the archive may take to open before the server answers
// probes without it. Most open sooner, and their first requests wait.
const patience = 500 * time.Millisecond

// Start opens the archive and begins to serve. The archive stops when ctx ends
// or Stop is called. If opening takes long, because the schema must be
// upgraded, probes are already answered. An error is one sentence for the
// operator.
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
	zones, err := night.NewZones(cfg.Zones)
	if err != nil {
		return nil, err
	}
	minter, closeMinter, err := newMinter(cfg)
	if err != nil {
		return nil, err
	}
	opened = append(opened, closeMinter)
	public, err := publicURL(cfg.PublicURL, base)
	if err != nil {
		return nil, err
	}
	gate, signIn, err := newGate(cfg, public)
	if err != nil {
		return nil, err
	}
	certificate, err := loadCertificate(cfg)
	if err != nil {
		return nil, err
	}
	// The database is opened last: a start that fails for another reason
	// neither creates an archive nor upgrades its schema.
	listener, err := serving.Listen(ctx, "--listen", cfg.Listen, cfg.MaxConnections)
	if err != nil {
		return nil, err
	}
	listener.Expect(serving.Crowd{PerAddress: cmp.Or(cfg.MaxPerAddress, max(1, cfg.MaxConnections/4)), Source: sources(cfg.Auth.Proxies), Spare: spareConnections})
	if err := exposed(listener.Addr(), gate.IsOpen(), cfg); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	front := newFront(cfg, base)
	serve := newServer(ctx, cfg, listener, certificate, front)
	defer func() {
		if err != nil {
			cancel()
			err = errors.Join(err, <-serve()) // which closes the listener
		}
	}()
	a := &App{address: listener.Addr(), signIn: signIn, cancel: cancel, done: make(chan struct{})}
	if cfg.AuditLog != "" {
		if a.audit, err = auditlog.Open(cfg.AuditLog, cfg.AuditMayFail, cfg.Log); err != nil {
			return nil, err
		}
		opened = append(opened, a.audit.Close)
	}
	figures := metrics.New(cfg.Version, engineName(cfg.Database), cfg.Log)
	onMain := figures.Handler()
	if cfg.AdminListen != "" {
		admin, err := listenAdmin(ctx, cfg.AdminListen)
		if err != nil {
			return nil, err
		}
		a.admin = admin.Addr()
		cfg.Log.Info("serving metrics and profiles", "address", "http://"+a.admin.String()+"/metrics")
		ended := serveAdmin(ctx, admin, onMain, cfg.Log)
		opened = append(opened, func() error { cancel(); return <-ended })
		onMain = nil
	}
	origin := "http://" + a.Addr() + base
	if certificate != nil {
		origin = "https://" + a.Addr() + base
	}
	early := time.AfterFunc(patience, func() {
		cfg.Log.Info("opening the archive takes long", "address", origin+"/readyz", "reason", front.reason())
		serve()
	})
	store, name, err := openStore(ctx, cfg, front.tell)
	early.Stop()
	if err != nil {
		return nil, err
	}
	opened = append(opened, store.Close)
	timed := metrics.NewMinter(minter, minterName(cfg))
	archive := archive.New(store, timed)
	searcher, tracer, names, finder := search.New(store), provenance.New(store), naming.New(store), calls.New(store)
	a.nights = night.New(store, names, searcher)
	a.nights.SetZones(zones)
	progress := progress.New(store, a.nights)
	site := web.New(web.Config{Archive: archive, Searcher: searcher, Names: names, Provenance: tracer, Nights: a.nights, Calls: finder, Progress: progress, BasePath: base, Closed: !gate.IsOpen(), SignIn: signIn, Version: cfg.Version, Engine: name, Logger: cfg.Log})
	a.hub = feed.New(ctx, archive, cfg.MaxFollowers, cfg.WriteTimeout)
	opened = append(opened, func() error { a.hub.Wait(); return nil }) // before the store is closed
	a.api, err = httpapi.New(httpapi.Config{
		Archive: archive, Searcher: searcher, Provenance: tracer, Nights: a.nights, Calls: finder, Progress: progress, Exports: moving.Exports{From: store}, Feed: a.hub, Pages: site, SignIn: site.SignInPages(), Metrics: onMain, Backup: backups(store, cfg.Version),
		BasePath: base, Origin: originOf(public), Origins: cfg.Origins, Proxies: cfg.Auth.Proxies,
		Gate: gate, Local: gate.IsOpen() && isLoopback(listener.Addr()) && !cfg.Auth.Insecure, ReadOnly: cfg.ReadOnly,
		Limits: cfg.Limits, Bounds: cfg.Bounds, WriteTimeout: cfg.WriteTimeout, Audit: a.audit, Log: cfg.Log,
	})
	if err != nil {
		return nil, err
	}
	figures.Open(metrics.Sources{
		Engine: store, Storage: store.Storage, Entities: archive.Counts, Ready: a.api.Ready,
		Interface: a.api, Feed: a.hub, Minter: timed, Connections: listener.Level,
	})
	front.open(a.api)
	cfg.Log.Info("serving the archive", "address", origin+"/api/v1/", "database", Shown(cfg.Database), "version", cfg.Version)
	go a.run(ctx, serve(), opened, cfg.Log, site.Run, gate.Run)
	return a, nil
}

// exposed returns an error if others than the programs of this machine could call an
// archive that does not know its callers, unless the operator wants that.
func exposed(addr net.Addr, open bool, cfg Config) error {
	if isLoopback(addr) || !open {
		return nil
	}
	if !cfg.Auth.Insecure {
		return fmt.Errorf("%s is not a loopback address, and the archive has no way to know who is calling; "+
			"give it one with --tokens, --oidc-issuer or --trust-proxy, or let everybody in with --insecure", cfg.Listen)
	}
	cfg.Log.Warn("everybody who can reach this address may read and write: the archive has no way to know who is calling", "address", addr.String())
	return nil
}

// spareConnections are those on which probes are answered when all others are in use.
const spareConnections = 16

// sources names the address that has opened a connection. Those of this machine and of
// proxies, which speak for many, have no name.
func sources(proxies []netip.Prefix) func(net.Addr) string {
	return func(client net.Addr) string {
		tcp, ok := client.(*net.TCPAddr)
		if !ok {
			return ""
		}
		ip := tcp.AddrPort().Addr().Unmap().WithZone("")
		if ip.IsLoopback() || slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(ip) }) {
			return ""
		}
		return admission.Address(ip.String())
	}
}

// isLoopback reports whether only programs of this machine can reach the address.
func isLoopback(addr net.Addr) bool {
	at, ok := addr.(*net.TCPAddr)
	return ok && at.IP.IsLoopback()
}

// loadCertificate returns the certificate, or nil if the archive does not speak TLS.
func loadCertificate(cfg Config) (*serving.Certificate, error) {
	if cfg.TLSCertificate == "" {
		return nil, nil
	}
	return serving.LoadCertificate(cfg.TLSCertificate, cfg.TLSKey)
}

// newServer returns a function that begins to serve, once, and returns a channel
// with the outcome.
func newServer(ctx context.Context, cfg Config, bounded *serving.Listener, certificate *serving.Certificate, handler http.Handler) func() <-chan error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: cfg.HeaderTimeout,
		ReadTimeout:       cfg.ReadTimeout,
		WriteTimeout:      cfg.WriteTimeout,
		IdleTimeout:       cfg.IdleTimeout,
		MaxHeaderBytes:    httpapi.MaxHeader,
		ErrorLog:          slog.NewLogLogger(cfg.Log.Handler(), slog.LevelWarn),
		// All answers come from the handler, even to OPTIONS *.
		DisableGeneralOptionsHandler: true,
		// Within one connection, a request that is slow only delays itself. These
		// bounds are for connections on which nothing moves any more.
		HTTP2: &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTime, WriteByteTimeout: min(cfg.WriteTimeout, writeByteTime)},
	}
	refuse := httpapi.Refusals(cfg.Log)
	serving.Refuse(server, refuse)
	var listener net.Listener = bounded
	if certificate != nil {
		listener = bounded.Secure(certificate.Config(), cfg.HeaderTimeout, refuse)
		go certificate.Follow(ctx, cfg.Log)
	}
	return sync.OnceValue(func() <-chan error {
		ended := make(chan error, 1)
		go func() { ended <- serving.Until(ctx, server, listener, grace) }()
		return ended
	})
}

func (a *App) run(ctx context.Context, served <-chan error, opened closers, log *slog.Logger, beside ...func(context.Context)) {
	defer close(a.done)
	defer a.cancel()
	var background sync.WaitGroup
	for _, work := range beside {
		background.Go(func() { work(ctx) })
	}
	err := <-served
	a.cancel()
	background.Wait()
	a.err = errors.Join(err, opened.close())
	log.Info("the archive has stopped")
}

// Addr returns the address that the archive listens on.
func (a *App) Addr() string { return a.address.String() }

// AdminAddr returns the address for operators, nil if there is none.
func (a *App) AdminAddr() net.Addr { return a.admin }

// Followers returns how many clients follow the changes.
func (a *App) Followers() int { return a.hub.Followers() }

// Reopen begins a new file of the audit log, after the old one was renamed.
func (a *App) Reopen() error { return a.audit.Reopen() }

// Reload changes what can be changed while the archive runs: the limits of one
// caller, the origins of web pages that may use the interface, the time zones of nights,
// and the secret of the archive at its OpenID provider. If one of them is not valid,
// nothing changes.
func (a *App) Reload(limits admission.Limits, origins, zones []string, clientSecret string) error {
	nights, err := night.NewZones(zones)
	if err != nil {
		return err
	}
	if err := a.api.Reload(limits, origins); err != nil {
		return err
	}
	a.nights.SetZones(nights)
	if a.signIn != nil && a.signIn.Provider != nil {
		a.signIn.Provider.UseSecret(clientSecret)
	}
	return nil
}

// Wait waits until the archive has stopped, and returns its error.
func (a *App) Wait() error {
	<-a.done
	return a.err
}

// Stop stops the archive: it accepts no new connections, and running requests
// finish.
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

// store is an engine that also tells how it does.
type store interface {
	oda.Engine
	Stats() engine.Stats
	Storage(ctx context.Context) (engine.Storage, error)
}

// openStore opens the engine for the database, and returns it with its name.
func openStore(ctx context.Context, cfg Config, tell func(migrate.Status)) (store, string, error) {
	if path, ok := sqlitePath(cfg.Database); ok {
		store, err := sqlite.Open(ctx, path, cfg.Log, tell)
		if err != nil {
			return nil, "", err
		}
		return store, "embedded (SQLite)", nil
	}
	if isPostgres(cfg.Database) {
		store, err := postgres.Open(ctx, cfg.Database, cfg.Log, tell)
		if err != nil {
			return nil, "", err
		}
		return store, "PostgreSQL", nil
	}
	return nil, "", unknownDatabase(cfg.Database)
}

// sqlitePath returns the file of a database of the embedded engine.
func sqlitePath(database string) (path string, ok bool) {
	path, ok = strings.CutPrefix(database, "sqlite:")
	return path, ok && path != ""
}

func isPostgres(database string) bool {
	return strings.HasPrefix(database, "postgres://") || strings.HasPrefix(database, "postgresql://")
}

func unknownDatabase(database string) error {
	return fmt.Errorf("unknown database %q; write it as sqlite:PATH or postgres://USER@HOST/NAME", Shown(database))
}

// Shown returns a database as people may see it: without a password.
func Shown(database string) string {
	if strings.HasPrefix(database, "sqlite:") {
		return database
	}
	u, err := url.Parse(database)
	if err != nil || u.Scheme == "" && strings.Contains(database, "password") || u.User == nil && strings.Contains(database, "@") {
		return "(not valid)"
	}
	if parameters, err := url.ParseQuery(u.RawQuery); err != nil || parameters.Has("password") || parameters.Has("sslpassword") {
		u.RawQuery = "..."
	}
	return u.Redacted()
}

// engineName returns the engine of a database in one word.
func engineName(database string) string {
	if strings.HasPrefix(database, "sqlite:") {
		return "sqlite"
	}
	return "postgres"
}

// minterName says in one word where identifiers come from.
func minterName(cfg Config) string {
	if cfg.SkuidURL != "" {
		return "service"
	}
	return "archive"
}

// newMinter returns the source of identifiers.
func newMinter(cfg Config) (oda.Minter, func() error, error) {
	types, err := skuid.ParseTypes(cfg.SkuidTypes)
	if err != nil {
		return nil, nil, err
	}
	generator, err := skuid.NewGenerator(cfg.Generator)
	if err != nil || cfg.SkuidURL == "" {
		return generator, generator.Close, err
	}
	client, err := skuid.NewClient(cfg.SkuidURL, types)
	if err != nil {
		return nil, nil, err
	}
	return minters{client, generator, types}, func() error { client.Close(); return generator.Close() }, nil
}

// minters takes the identifiers of those kinds from a service that have a type there, and
// makes the others itself.
type minters struct {
	service *skuid.Client
	own     *skuid.Generator
	types   map[oda.Kind]string
}

// Mint implements oda.Minter.
func (m minters) Mint(ctx context.Context, kind oda.Kind) (string, error) {
	if m.types[kind] == "" {
		return m.own.Mint(ctx, kind)
	}
	return m.service.Mint(ctx, kind)
}
