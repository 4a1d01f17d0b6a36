package app

import (
	"net/http"
	"sync/atomic"

	"oda/internal/engine/migrate"
	"oda/internal/httpapi"
)

// front answers that the archive is not open yet, until it is.
type front struct {
	handler atomic.Pointer[http.Handler]
	status  atomic.Pointer[migrate.Status]
}

func newFront(cfg Config, base string) *front {
	f := &front{}
	f.open(httpapi.NotOpen(httpapi.Config{BasePath: base, Log: cfg.Log}, f.reason))
	return f
}

// open sets the handler of the open archive.
func (f *front) open(handler http.Handler) { f.handler.Store(&handler) }

// tell receives the progress of the schema upgrade.
func (f *front) tell(at migrate.Status) { f.status.Store(&at) }

// reason says why the archive is not open yet.
func (f *front) reason() string {
	if at := f.status.Load(); at != nil {
		return "its schema is being upgraded: " + at.String()
	}
	return "its database is being opened"
}

// ServeHTTP implements http.Handler.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	(*f.handler.Load()).ServeHTTP(w, r)
}
