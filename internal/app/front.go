package app

import (
	"net/http"
	"sync"
	"sync/atomic"

	"oda/internal/engine/migrate"
	"oda/internal/httpapi"
	"oda/internal/web"
)

// front answers that the archive is not open yet, until it is.
type front struct {
	handler atomic.Pointer[http.Handler]
	status  atomic.Pointer[migrate.Status]
}

func newFront(cfg Config, base string) *front {
	f := &front{}
	// Most archives open before anybody needs a page.
	page := sync.OnceValue(func() http.Handler {
		return web.OpeningHandler(web.Config{BasePath: base, Version: cfg.Version, Logger: cfg.Log}, f.progress)
	})
	f.open(httpapi.NotOpen(httpapi.Config{BasePath: base, Log: cfg.Log}, f.reason,
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { page().ServeHTTP(w, r) })))
	return f
}

// open sets the handler of the open archive.
func (f *front) open(handler http.Handler) { f.handler.Store(&handler) }

// tell receives the progress of the steps of the schema.
func (f *front) tell(at migrate.Status) { f.status.Store(&at) }

// reason says why the archive is not open yet.
func (f *front) reason() string {
	switch at := f.status.Load(); {
	case at == nil:
		return "its database is being opened"
	case at.New:
		return "its tables are being made: " + at.String()
	default:
		return "its schema is being upgraded: " + at.String()
	}
}

// progress says why the archive is not open yet, and how many of the steps are
// done: every step counts the same.
func (f *front) progress() (reason string, share float64) {
	at := f.status.Load()
	if at == nil {
		return f.reason(), -1
	}
	done := float64(at.Number - 1)
	if at.Total > 0 {
		done += float64(at.Done) / float64(at.Total)
	}
	return f.reason(), done / float64(at.Last)
}

// ServeHTTP implements http.Handler.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	(*f.handler.Load()).ServeHTTP(w, r)
}
