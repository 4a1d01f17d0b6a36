package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"oda"
	"oda/api"
	"oda/archive"
	"oda/calls"
	"oda/internal/admission"
	"oda/internal/auditlog"
	"oda/internal/auth"
	"oda/internal/contract"
	"oda/internal/feed"
	"oda/night"
	"oda/progress"
	"oda/provenance"
	"oda/search"
)

// Bounds limits what requests may take. Time-outs and the number of connections
// are up to the server that runs the handler.
type Bounds struct {
	Body     int64 // bytes of one body
	InFlight int64 // bytes of all bodies in progress
	Depth    int   // nesting of a document

	Answers    int64         // bytes of all answers under way, without small ones; 0 means 256 MiB
	AnswerWait time.Duration // that a large answer waits for room; 0 means 5 seconds
	StuckTime  time.Duration // after which a client that takes nothing is cut off if others wait; 0 means 10 seconds
}

// Page answers with a page, or returns an error before it has written anything.
type Page = func(w http.ResponseWriter, r *http.Request) error

// Pages serves the parts of the interface that are for people, and the other pages.
type Pages interface {
	// Pages gives the pages outside the interface by their paths below the base
	// path. Failed is the page about an error on one of them.
	Pages() map[string]Page
	Failed(w http.ResponseWriter, r *http.Request, e *oda.Error, status int, title, requestID string)

	Home(w http.ResponseWriter, r *http.Request) error
	UI(w http.ResponseWriter, r *http.Request) error
	Asset(w http.ResponseWriter, r *http.Request) error
	Guide(w http.ResponseWriter, r *http.Request) error
	Problems(w http.ResponseWriter, r *http.Request) error
	Problem(w http.ResponseWriter, r *http.Request) error
}

// Exports writes exports.
type Exports interface {
	// Choose decides what an export has, and returns what writes it.
	Choose(ctx context.Context, scope oda.Scope) (write func(context.Context, io.Writer) error, err error)
}

// Config is what the interface needs.
type Config struct {
	Archive    *archive.Archive
	Searcher   *search.Searcher
	Provenance *provenance.Tracer
	Nights     *night.Reporter
	Calls      *calls.Finder
	Progress   *progress.Reporter
	Exports    Exports

	Gate     *auth.Gate
	Audit    *auditlog.Log  // nil without one
	Proxies  []netip.Prefix // that tell where requests come from
	Feed     *feed.Hub
	Pages    Pages
	Metrics  http.Handler    // answers /metrics; nil if that is elsewhere
	SignIn   map[string]Page // pages to sign in and out, by method and path; open to everybody
	BasePath string          // the prefix of all paths: empty, or /like/this
	Origin   string          // where browsers find the archive, as https://HOST; empty if that is not known
	Local    bool            // only for this machine, so it must be called by a name that can be its own
	Bounds   Bounds
	Log      *slog.Logger

	WriteTimeout time.Duration // for an answer, once there is something to send
	ReadOnly     bool          // nothing may be stored

	Backup func(context.Context, io.Writer) error // writes a copy of the archive; nil if its engine leaves that to other tools

	Limits  admission.Limits // of one caller
	Origins []string         // of web pages that may use the interface; * may read
}

// API answers requests. It is an http.Handler.
type API struct {
	cfg      Config
	contract *contract.Description
	mux      *http.ServeMux
	inFlight budget
	answers  *admission.Answers
	exports  chan struct{} // places for exports
	control  *admission.Control
	access   atomic.Pointer[access] // what may change while it serves

	operations []*operation // the first counts what is not an operation
	problems   problemCounts
	recorders  recorders
}

// New compiles the API description and sets up the routes.
func New(cfg Config) (*API, error) {
	// Only whole records are needed, not their members.
	description, err := contract.Load(api.JSON(), "Record")
	if err != nil {
		return nil, fmt.Errorf("compile the API description: %w", err)
	}
	a := &API{
		cfg: cfg, contract: description, mux: http.NewServeMux(), inFlight: newBudget(cfg.Bounds), answers: admission.NewAnswers(cfg.Bounds.answers()),
		exports: make(chan struct{}, exportsAtOnce), control: admission.New(), problems: newProblemCounts(),
	}
	a.operationNamed(otherRequests)
	if err := a.Reload(cfg.Limits, cfg.Origins); err != nil {
		return nil, err
	}
	return a, a.register()
}

// ServeHTTP gives a request its ID, makes the checks that all paths share, has
// it handled, and logs one line.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := newCall(a, w, r)
	defer c.finish()
	switch {
	case c.access.cors.mark(c):
	case r.URL.Path == "*" || r.Method == http.MethodConnect && r.URL.Path == "":
		a.wholeServer(c)
	case !normal(r.URL.EscapedPath()):
		c.problem(a.notNormal(r))
	default:
		if r.URL.Path == "" { // the target was http://HOST, as for a proxy
			r.URL.Path = "/"
		}
		a.mux.ServeHTTP(c, r)
	}
}

// wholeServer answers requests that have no path: OPTIONS *, and CONNECT, which
// is for proxies only.
func (a *API) wholeServer(c *call) {
	switch {
	case c.r.Method == http.MethodOptions:
		c.head("Allow", serverMethods)
		c.head("Content-Length", "0")
		c.WriteHeader(http.StatusOK)
	case c.r.Method == http.MethodConnect:
		c.head("Allow", serverMethods)
		c.problem(oda.Errorf(oda.WrongMethod, "This server is not a proxy and does not support CONNECT. It supports: %s.", serverMethods))
	default:
		c.problem(oda.Errorf(oda.InvalidRequest, "The target * is for OPTIONS only. Send a path."))
	}
}

// serverMethods lists the methods that at least one path supports.
const serverMethods = "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT"

// normal reports whether a path has no "." or ".." segments and begins with a
// slash, so that everything on its way interprets it the same way. An empty path
// is the root.
func normal(path string) bool {
	if path == "" {
		return true
	}
	if !strings.HasPrefix(path, "/") {
		return false
	}
	if !strings.Contains(path, "/.") {
		return true
	}
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return false
		}
	}
	return true
}

// notNormal returns the error for a path that is not normal. The client may have
// tried to store an entity under the identifier "." or "..".
func (a *API) notNormal(r *http.Request) error {
	for _, kind := range oda.Kinds {
		id, ok := strings.CutPrefix(r.URL.EscapedPath(), a.cfg.BasePath+"/api/v1/"+kind.Collection()+"/")
		if ok && (id == "." || id == "..") && r.Method == http.MethodPut {
			return errNoIdentifier()
		}
	}
	return a.errNoSuchPath()
}

func errNoIdentifier() error {
	return oda.Errorf(oda.InvalidIdentifier, "The path has no identifier. Write it after the slash.")
}

func (a *API) errNoSuchPath() error {
	return oda.Errorf(oda.NoSuchPath, "There is nothing at this path. The interface is at %s/api/v1/ and described in %s/api/v1/openapi.json.", a.cfg.BasePath, a.cfg.BasePath)
}

// pingTime is how long ready waits for the engine.
const pingTime = 2 * time.Second

func (a *API) live(c *call) error { return c.text("ok\n") }

// ready tells a load balancer whether to send requests here.
func (a *API) ready(c *call) error {
	if err := a.Ready(c.r.Context()); err != nil {
		return err
	}
	return c.text("ready\n")
}

// Ready returns an error that says why the archive cannot be read or written.
func (a *API) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	err := a.cfg.Archive.Ping(ctx)
	if e, ok := errors.AsType[*oda.Error](err); ok && e.Code == oda.Unavailable {
		return e // says why
	}
	if err != nil {
		return oda.Errorf(oda.Unavailable, "The archive's storage does not answer.").Because(err)
	}
	if err := a.cfg.Audit.Err(); err != nil {
		return oda.Errorf(oda.Unaudited, "The audit log cannot be written, and without it nothing is stored.").Because(err)
	}
	return nil
}

// showMetrics answers with the metrics.
func (a *API) showMetrics(c *call) error {
	c.head("Cache-Control", "no-store")
	a.cfg.Metrics.ServeHTTP(c, c.r)
	return nil
}
