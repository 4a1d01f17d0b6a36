// Package web is what a person sees of the archive in a browser: the home page,
// the Swagger UI, and the documentation of the interface and of its problems.
// Everything they need is in the binary, so they work on a machine without a
// network.
//
// Start reading at Site: it has one handler per page and one for the files that
// the pages load. The handlers return an error before they have written
// anything, or write a whole answer. Every link is relative to
// {base}/api/v1/, so the pages also work under a base path and behind a proxy
// that strips one. The pages run under a strict Content-Security-Policy: no
// inline script, and nothing from another host.
package web

import (
	"bytes"
	"context"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"

	"oda"
)

// Config says what a Site shows.
type Config struct {
	// Counts returns the number of entities per kind. It must be cheap. Run
	// calls it in the background; a request never does.
	Counts func(ctx context.Context) (map[oda.Kind]int64, error)
	// Version is the version of the program, for the footer.
	Version string
	// Engine is the name of the storage engine, for the footer.
	Engine string
	// Logger reports when counting begins to fail and when it works again. Nil
	// means no log.
	Logger *slog.Logger
}

// Site serves the pages. It is made by New and safe for concurrent use.
type Site struct {
	cfg    Config
	log    *slog.Logger
	assets map[string]file
	home   *template.Template
	ui     file
	prose  func() map[string]file // by path, such as problems/not-found
	counts atomic.Pointer[map[oda.Kind]int64]
}

// New makes a Site. Its counts are unknown until Run has asked for them.
func New(cfg Config) *Site {
	s := &Site{cfg: cfg, log: cfg.Logger, assets: loadAssets()}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	pages := template.Must(template.New("").
		Funcs(template.FuncMap{"asset": s.assetLink}).
		ParseFS(embedded, "assets/*.html"))
	s.home = pages.Lookup("home.html")
	var ui bytes.Buffer
	if err := pages.ExecuteTemplate(&ui, "ui.html", nil); err != nil {
		panic(fmt.Sprintf("web: the embedded ui.html does not render: %v", err))
	}
	s.ui = newFile(htmlType, ui.Bytes())
	s.prose = sync.OnceValue(func() map[string]file { return renderProse(pages.Lookup("prose.html")) })
	return s
}

// assetLink is the link from a page to one of its files. It carries a part of
// the file's hash, so a page of a new release never uses a cached file of the
// old one.
func (s *Site) assetLink(name string) (string, error) {
	f, ok := s.assets[name]
	if !ok {
		return "", fmt.Errorf("there is no asset %q", name)
	}
	return "ui/" + name + "?v=" + f.hash[:8], nil
}

// Home serves the home page, GET {base}/api/v1/.
func (s *Site) Home(w http.ResponseWriter, r *http.Request) error {
	var page bytes.Buffer
	if err := s.home.Execute(&page, s.homeView(r)); err != nil {
		return fmt.Errorf("render the home page: %w", err)
	}
	newFile(htmlType, page.Bytes()).serve(w, r, pageCache, homePolicy)
	return nil
}

// UI serves the page of the Swagger UI, GET {base}/api/v1/ui. The page expects
// the API description beside it, as openapi.json.
func (s *Site) UI(w http.ResponseWriter, r *http.Request) error {
	s.ui.serve(w, r, pageCache, uiPolicy)
	return nil
}

// Asset serves a file that the pages load, GET {base}/api/v1/ui/{file}. The
// route names the file with the path value "file". An unknown file is an
// *oda.Error with the code NoSuchPath.
func (s *Site) Asset(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("file")
	f, ok := s.assets[name]
	if !ok {
		return oda.Errorf(oda.NoSuchPath, "The user interface has no file %q. Open the page itself, one level up, at \"ui\".", name)
	}
	f.serve(w, r, assetCache, homePolicy)
	return nil
}
