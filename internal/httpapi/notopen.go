package httpapi

import (
	"net/http"
	"strings"

	"oda"
)

// NotOpen answers while the archive is being opened: it is alive, but not
// ready. The reason is part of a sentence.
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
