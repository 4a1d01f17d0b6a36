package web

import (
	"net/http"
	"path"
	"slices"
	"strings"

	"oda"
)

// failedView is the data for the page of an error.
type failedView struct {
	frame
	Heading   string
	Detail    string
	Faults    []oda.Fault
	Code      oda.Code
	RequestID string
	List      *oda.Kind        // whose list is the way on
	Current   *oda.VersionInfo // of the entity, if another state of it was asked for
	ID        string           // of this entity
	At        string           // as of when it was asked for
}

// Failed serves the page that tells a person what went wrong, and where to go on. Whoever
// must sign in first can do it there, and comes back to the same page.
func (s *Site) Failed(w http.ResponseWriter, r *http.Request, e *oda.Error, status int, title, requestID string) {
	err := s.failed(w, r, e, status, title, requestID)
	if err != nil {
		s.log.Error("a page could not be rendered", "error", err)
		http.Error(w, title, status)
	}
}

func (s *Site) failed(w http.ResponseWriter, r *http.Request, e *oda.Error, status int, title, requestID string) error {
	if e.Code == oda.Unauthenticated && s.cfg.SignIn != nil {
		message := ""
		if s.cfg.SignIn.Sessions.Has(r) {
			message = e.Detail
		}
		return s.signInPage(w, r, status, message, s.below(r))
	}
	view := failedView{
		frame: s.newFrame(r, title, ""), Heading: title, Detail: e.Detail, Faults: untold(e), Code: e.Code, RequestID: requestID,
	}
	view.Detail = strings.TrimPrefix(view.Detail, title+": ") // which stands above it
	if e.Code == oda.NoSuchPath {
		view.Heading, view.Detail = "There is no such page", "The address may be misspelt. Look for it, or go on from one of these pages."
	}
	if id := r.PathValue("id"); id != "" {
		view.Query = oda.Clip(id)
		if kind, ok := oda.KindOf(path.Base(path.Dir(r.URL.Path))); ok {
			view.List, view.Here = &kind, kind.Collection()
			s.offerCurrent(r, &view, oda.Ref{Kind: kind, ID: id}, e.Code)
		}
	}
	return s.unkept(w, status, "failed", view)
}

// untold are the faults that the detail of an error does not mention.
func untold(e *oda.Error) []oda.Fault {
	return slices.DeleteFunc(slices.Clone(e.Faults), func(f oda.Fault) bool { return strings.Contains(e.Detail, f.Detail) })
}

// offerCurrent leads to an entity as it is now, if somebody asked for a state that it
// never had.
func (s *Site) offerCurrent(r *http.Request, view *failedView, ref oda.Ref, code oda.Code) {
	params := r.URL.Query()
	if code != oda.NotFound && code != oda.InvalidQuery || params.Get("at") == "" && params.Get("version") == "" {
		return
	}
	current, err := s.cfg.Archive.VersionInfo(r.Context(), ref, 0)
	if err != nil {
		return // what went wrong is told already
	}
	view.Current, view.ID, view.At = &current, ref.ID, params.Get("at")
}
