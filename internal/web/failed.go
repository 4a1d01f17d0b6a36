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

// Failed serves the page that tells a person what went wrong, and where to go on.
func (s *Site) Failed(w http.ResponseWriter, r *http.Request, e *oda.Error, status int, title, requestID string) {
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
	text, err := s.render("failed", view)
	if err != nil {
		s.log.Error("a page could not be rendered", "error", err)
		text = []byte(title)
	}
	s.send(w, text, status)
}
