// Package web serves the archive's pages for people. Below {base}/api/v1/ are the
// home page of the interface, the Swagger UI, and the documentation of the API
// and its problems; the pages about what is in the archive are at {base}/ itself.
// Everything they need is in the binary, so they work without a network.
//
// Start reading at Site: it has one handler per page and one for the files that
// the pages load. A handler either returns an error before it has written
// anything, or writes a complete answer. All links are relative, so the pages
// also work under a base path and behind a proxy that strips one. A strict
// Content-Security-Policy allows no inline script and nothing from another host.
//
// The pages about entities are in pages.go, which has their table and what they
// have in common, and in a file each: list.go, entity.go, ... They ask the
// archive itself, not its interface, and need no JavaScript.
package web

import (
	"bytes"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"sync/atomic"

	"oda"
	"oda/archive"
	"oda/calls"
	"oda/naming"
	"oda/night"
	"oda/progress"
	"oda/provenance"
	"oda/search"
)

// Config configures a Site.
type Config struct {
	// Archive is what the pages are about. The page that says that it is being
	// opened does without.
	Archive *archive.Archive
	// Searcher finds what the pages list.
	Searcher *search.Searcher
	// Names says what things were called.
	Names *naming.Namer
	// Provenance follows references for the drawings.
	Provenance *provenance.Tracer
	// Nights reports on nights.
	Nights *night.Reporter

	// Calls finds calls.
	Calls *calls.Finder
	// Progress reports on how far Projects are.
	Progress *progress.Reporter
	// BasePath is the prefix of all paths: empty, or /like/this.
	BasePath string
	// Closed says that the archive must know who is calling.
	Closed bool
	// SignIn is how people sign in; nil if nobody does on the pages.
	SignIn *SignIn
	// Version is the version of the program, for the footer.
	Version string
	// Engine is the name of the storage engine, for the footer.
	Engine string
	// Logger reports what fails outside of requests. If nil, nothing is logged.
	Logger *slog.Logger
}

// Site serves the pages. It is safe for concurrent use.
type Site struct {
	cfg     Config
	log     *slog.Logger
	assets  map[string]file
	pages   map[string]*template.Template
	ui      file
	usage   atomic.Pointer[oda.Usage]
	tonight *tonight

	compares chan struct{} // a place for each comparison under way
	indexes  callIndexes
	tallies  tallies
}

// New returns a Site.
func New(cfg Config) *Site {
	s := &Site{cfg: cfg, log: cfg.Logger, assets: loadAssets(), tonight: newTonight(), compares: make(chan struct{}, maxCompares)}
	s.indexes.using = make(chan struct{}, indexesInUse)
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.pages = loadPages(s.assetLink)
	var ui bytes.Buffer
	if err := s.pages["ui"].Execute(&ui, nil); err != nil {
		panic(fmt.Sprintf("web: the embedded ui.html does not render: %v", err))
	}
	s.ui = newFile(htmlType, ui.Bytes())
	return s
}

// assetLink returns the link from a page to one of its files. It contains a
// part of the file's hash, so that a page of a new release never uses a cached
// file of an old one.
func (s *Site) assetLink(name string) (string, error) {
	f, ok := s.assets[name]
	if !ok {
		return "", fmt.Errorf("there is no asset %q", name)
	}
	return "ui/" + name + "?v=" + f.hash[:8], nil
}

// UI serves the Swagger UI, GET {base}/api/v1/ui. The page expects the API
// description next to it, as openapi.json.
func (s *Site) UI(w http.ResponseWriter, r *http.Request) error {
	s.ui.serve(w, r, pageCache, uiPolicy)
	return nil
}

// Asset serves a file that the pages load, GET {base}/api/v1/ui/{file}. The
// path value "file" is its name. For an unknown file it returns an *oda.Error
// with the code NoSuchPath.
func (s *Site) Asset(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("file")
	f, ok := s.assets[name]
	if !ok {
		return oda.Errorf(oda.NoSuchPath, "The user interface has no file %q. Open the page itself, one level up, at \"ui\".", name)
	}
	f.serve(w, r, assetCache, filePolicy)
	return nil
}
