package httpapi

import (
	"net/http"
	"strings"

	"oda"
	"oda/internal/content"
)

// NotOpen returns a handler for the time while the archive is being opened: the
// server is alive, but not ready. Reason returns a part of a sentence. Page answers
// browsers, and serves the files of that page, whose name is the path value "file".
func NotOpen(cfg Config, reason func() string, page http.Handler) http.Handler {
	a := &API{cfg: Config{BasePath: cfg.BasePath, Log: cfg.Log}}
	a.access.Store(&access{})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := newCall(a, w, r)
		defer c.finish()
		below := strings.TrimPrefix(r.URL.Path, a.cfg.BasePath)
		if file, ok := strings.CutPrefix(below, "/api/v1/ui/"); ok && isRead(r) {
			r.SetPathValue("file", file)
			page.ServeHTTP(c, r)
			return
		}
		if isRead(r) && isPage(below) && content.Preferred(r.Header, problemType, htmlType) == htmlType {
			c.head("Vary", "Accept")
			c.head("Retry-After", retryAfter[oda.Unavailable])
			page.ServeHTTP(c, r)
			return
		}
		if below == "/livez" {
			c.probe = true
			if err := a.live(c); err != nil {
				c.problem(err)
			}
			return
		}
		c.problem(oda.Errorf(oda.Unavailable, "The archive is not open yet: %s. Nothing was stored. Try again later.", reason()))
	})
}

func isRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// isPage reports whether a path below the base may be a page: the pages are outside the
// interface and at its root.
func isPage(below string) bool {
	switch below {
	case "/api/v1/", "/api/v1/ui", "/api/v1/guide":
		return true
	case "/livez", "/readyz", "/metrics":
		return false
	}
	return !strings.HasPrefix(below, "/api/")
}
