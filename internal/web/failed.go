package web

import (
	"net/http"
	"path"

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
	List      *oda.Kind // whose list is the way on
}

// Failed serves the page that tells a person what went wrong, and where to go on. Who
// must sign in is asked to on the spot, and does not lose where they were.
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
		frame: s.newFrame(r, title, ""), Heading: title, Detail: e.Detail, Faults: e.Faults, Code: e.Code, RequestID: requestID,
	}
	if e.Code == oda.NoSuchPath {
		view.Heading, view.Detail = "There is no such page", "The address may be misspelt. Look for it, or go on from one of these pages."
	}
	if id := r.PathValue("id"); id != "" {
		view.Query = clip(id)
		if kind, ok := oda.KindOf(path.Base(path.Dir(r.URL.Path))); ok {
			view.List, view.Here = &kind, kind.Collection()
		}
	}
	return s.unkept(w, status, "failed", view)
}
