package web

import (
	"net/http"
	"strconv"
)

// openingView is the data for the page while the archive is being opened.
type openingView struct {
	frame
	Reason string
	Share  float64 // of the work that is done; negative if that is not known
}

// Percent is how much of the work is done, for people.
func (v openingView) Percent() int { return int(100 * v.Share) }

// OpeningHandler serves the page that says that the archive is not open yet, and
// the files that it loads. It needs no archive. Progress returns why, as a part of
// a sentence, and the share of the work that is done, negative if that is not known.
// The page looks again by itself.
func OpeningHandler(cfg Config, progress func() (reason string, share float64)) http.Handler {
	s := New(cfg)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("file") != "" {
			if s.Asset(w, r) != nil {
				w.WriteHeader(http.StatusNotFound)
			}
			return
		}
		view := openingView{frame: s.newFrame(r, "Being opened", "")}
		view.Reason, view.Share = progress()
		text, err := s.render("opening", view)
		if err != nil {
			s.log.Error("a page could not be rendered", "error", err)
			text = []byte(view.Reason)
		}
		s.send(w, text, http.StatusServiceUnavailable)
	})
}

// send answers with a page that is not the one that was asked for.
func (s *Site) send(w http.ResponseWriter, text []byte, status int) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("Content-Type", htmlType)
	h.Set("Content-Length", strconv.Itoa(len(text)))
	h.Set("Referrer-Policy", referrerPolicy)
	w.WriteHeader(status)
	_, _ = w.Write(text) // fails only if the client has gone
}
