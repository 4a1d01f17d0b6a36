package httpapi

import (
	"net/http"
	"strings"

	"oda"
)

// NotOpen returns a handler for the time while the archive is being opened: the
// server is alive, but not ready. Reason returns a part of a sentence.
func NotOpen(cfg Config, reason func() string) http.Handler {
	a := &API{base: cfg.BasePath, log: cfg.Log}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := newCall(a, w, r)
		defer c.finish()
		if strings.TrimPrefix(r.URL.Path, a.base) == "/livez" {
			c.probe = true
			if err := a.live(c); err != nil {
				c.problem(err)
			}
			return
		}
		c.problem(oda.Errorf(oda.Unavailable, "The archive is not open yet: %s. Nothing was stored. Try again later.", reason()))
	})
}
