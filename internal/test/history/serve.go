package history

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"oda"
	"oda/archive"
	"oda/calls"
	"oda/internal/auth"
	"oda/internal/feed"
	"oda/internal/httpapi"
	"oda/internal/moving"
	"oda/internal/web"
	"oda/naming"
	"oda/night"
	"oda/progress"
	"oda/provenance"
	"oda/search"
)

// Serve serves an archive on an engine with the real API, in this process,
// until the test ends.
func Serve(tb testing.TB, engine oda.Engine) Target {
	tb.Helper()
	server := NewServer(tb, engine)
	tb.Cleanup(server.Close)
	return At(tb, server.URL+"/api/v1")
}

// Server serves an archive on an engine until it is closed.
type Server struct {
	*httptest.Server
	stop func()
}

// Host returns the address that the server listens on, as host:port.
func (s *Server) Host() string { return s.Listener.Addr().String() }

// Close lets requests in progress end, and followers go.
func (s *Server) Close() {
	s.stop()
	s.Server.Close()
}

// NewServer returns a server that serves an archive on an engine with the real API.
func NewServer(tb testing.TB, engine oda.Engine) *Server {
	tb.Helper()
	archive := archive.New(engine, random{})
	searcher, tracer, names, finder := search.New(engine), provenance.New(engine), naming.New(engine), calls.New(engine)
	nights := night.New(engine, names, searcher)
	progress := progress.New(engine, nights)
	following, stop := context.WithCancel(context.Background())
	hub := feed.New(following, archive, 64, time.Minute)
	api, err := httpapi.New(httpapi.Config{
		Archive: archive, Gate: auth.NewGate(), Feed: hub, Searcher: searcher, Provenance: tracer, Nights: nights, Calls: finder, Progress: progress, Exports: moving.Exports{From: engine},
		Pages:  web.New(web.Config{Archive: archive, Searcher: searcher, Names: names, Provenance: tracer, Nights: nights, Calls: finder, Progress: progress}),
		Bounds: httpapi.Bounds{Body: 1 << 20, InFlight: 64 << 20, Depth: 100}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		tb.Fatal(err)
	}
	return &Server{httptest.NewServer(api), func() {
		stop()
		hub.Wait()
	}}
}

// random makes up identifiers.
type random struct{}

func (random) Mint(_ context.Context, kind oda.Kind) (string, error) {
	return kind.Prefix() + "-" + strings.ToLower(rand.Text()), nil
}

// At returns the archive whose API is at this address.
func At(tb testing.TB, url string) Target {
	return Target{URL: func(context.Context) (string, error) { return url, nil }, HTTP: newClient(tb)}
}

// newClient returns an HTTP client with enough connections for all players.
func newClient(tb testing.TB) *http.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	tb.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}
