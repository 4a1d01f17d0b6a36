package web

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	"oda"
	"oda/internal/auth"
)

// pagePolicy is what the pages about entities may load and do: their own
// stylesheet and scripts, what those ask and follow, and forms that lead back to them.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// handler answers with a page, or returns an error before it has written anything.
type handler = func(w http.ResponseWriter, r *http.Request) error

// Pages are the pages outside the interface, by their paths below the base path.
// Each answers GET.
func (s *Site) Pages() map[string]handler {
	pages := map[string]handler{
		"/{$}":       s.Home,
		"/calls":     s.calls,
		"/calls.csv": s.callTable,
		"/changes":   s.changes,
		"/compare":   s.compare,
		"/night":     s.night,
		"/night/log": s.nightLog,
		"/now":       s.now,
		"/search":    s.search,

		"/ebs/{id}/timeline":        s.timeline,
		"/ebs/{id}/timeline/{part}": s.timelinePart,
	}
	for _, kind := range oda.Kinds {
		pages["/"+kind.Collection()] = func(w http.ResponseWriter, r *http.Request) error { return s.list(w, r, kind) }
		pages["/"+kind.Collection()+"/{id}"] = func(w http.ResponseWriter, r *http.Request) error { return s.entity(w, r, kind) }
		pages["/"+kind.Collection()+"/{id}/status"] = func(w http.ResponseWriter, r *http.Request) error { return s.statusPart(w, r, kind) }
	}
	return pages
}

// frame is what every page has: its place, and links to others.
type frame struct {
	Root    string // the relative path to the base, such as ../
	Title   string
	Here    string // the place in the navigation, empty if it is in none
	Crumbs  []crumb
	Wall    bool   // the page has a screen for itself, and nobody who uses it
	Query   string // in the search box
	Version string
	Engine  string

	Closed      bool   // the visitor is not signed in, so there is no way to other pages
	User        string // who is signed in; empty if the archive is open
	SessionEnds string // when the session ends; empty without one
}

// crumb is a page on the way to this one.
type crumb struct{ Name, Href string }

// newFrame returns the frame of the page that was asked for.
func (s *Site) newFrame(r *http.Request, title, here string) frame {
	f := frame{Root: s.root(r), Title: title, Here: here, Version: s.cfg.Version, Engine: s.cfg.Engine}
	c := auth.Of(r.Context())
	f.Closed = c == nil && s.cfg.Closed
	if c != nil && c.Means != auth.Open {
		f.User = c.User
		if c.Means == auth.BySession {
			f.SessionEnds = c.Ends.UTC().Format(time.RFC3339Nano)
		}
	}
	return f
}

// Files is where the files are that the page loads, below the base path. Without
// signing in one gets only those of the page to sign in.
func (f frame) Files() string {
	if f.Closed {
		return "sign-in/"
	}
	return "api/v1/"
}

// Kinds lists the kinds for the navigation, the most looked at first.
func (frame) Kinds() []oda.Kind {
	return []oda.Kind{oda.ExecutionBlock, oda.SBInstance, oda.SBDefinition, oda.Project, oda.Note}
}

// EntityHref is the address of an entity.
func (f frame) EntityHref(ref oda.Ref) string {
	return f.Root + ref.Kind.Collection() + "/" + ref.ID
}

// root returns the relative path from a request to the base. Behind a proxy that
// strips a prefix only relative paths are right.
func (s *Site) root(r *http.Request) string {
	path := r.URL.EscapedPath()
	below, inside := strings.CutPrefix(path, s.cfg.BasePath+"/")
	if !inside {
		below = strings.TrimPrefix(path, "/")
	}
	root := "./" + strings.Repeat("../", strings.Count(below, "/"))
	if !inside {
		root += strings.TrimPrefix(s.cfg.BasePath, "/") + "/"
	}
	return root
}

// loadPages parses the templates of the pages. Each fills the layout.
func loadPages(asset func(string) (string, error)) map[string]*template.Template {
	layout := template.Must(template.New("layout.html").Funcs(funcs).Funcs(template.FuncMap{"asset": asset}).
		ParseFS(embedded, "assets/pages/layout.html", "assets/pages/parts.html", "assets/pages/calls.html", "assets/pages/running.html"))
	pages := make(map[string]*template.Template)
	for _, name := range []string{"home", "list", "found", "entity", "compare", "night", "now", "callpage", "instant", "changes", "failed", "opening", "prose", "signin", "signedout"} {
		pages[name] = template.Must(template.Must(layout.Clone()).ParseFS(embedded, "assets/pages/"+name+".html"))
	}
	// The Swagger UI has a layout of its own.
	pages["ui"] = template.Must(template.New("ui.html").Funcs(template.FuncMap{"asset": asset}).ParseFS(embedded, "assets/ui.html"))
	return pages
}

// page answers with a page, or with 304 if the browser has it as it is.
func (s *Site) page(w http.ResponseWriter, r *http.Request, name string, view any) error {
	text, err := s.render(name, view)
	if err != nil {
		return err
	}
	// The view is not needed any more.
	if err := oda.RoomIn(r.Context()).Keep(r.Context(), int64(len(text))); err != nil {
		return err
	}
	newFile(htmlType, text).serve(w, r, privateCache, pagePolicy)
	return nil
}

// unkept answers with a page that no browser keeps.
func (s *Site) unkept(w http.ResponseWriter, status int, name string, view any) error {
	text, err := s.render(name, view)
	if err != nil {
		return err
	}
	s.send(w, text, status)
	return nil
}

func (s *Site) render(name string, view any) ([]byte, error) {
	var page bytes.Buffer
	if err := s.pages[name].Execute(&page, view); err != nil {
		return nil, fmt.Errorf("render the page %s: %w", name, err)
	}
	return unmaskedPage(page.Bytes()), nil
}

// renderPart renders a part of the page of an entity.
func (s *Site) renderPart(name string, view any) ([]byte, error) {
	var part bytes.Buffer
	if err := s.pages["entity"].ExecuteTemplate(&part, name, view); err != nil {
		return nil, fmt.Errorf("render the part %s: %w", name, err)
	}
	return unmaskedPage(part.Bytes()), nil
}

// seeOther leads to another page of this archive, relative to this one. Whatever it is
// given, it does not lead to another host.
func seeOther(w http.ResponseWriter, to string) {
	redirect(w, "./"+strings.TrimPrefix(to, "./"))
}

// redirect leads to any address.
func redirect(w http.ResponseWriter, to string) {
	w.Header().Set("Location", to)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusSeeOther)
}
