package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"oda"
)

// crossOrigin says which web pages of other origins may use the interface.
type crossOrigin struct {
	base    string
	origins []string
	any     bool // may read
}

// newCrossOrigin returns nil if there are no origins. Pages of origins that are named may
// also write.
func newCrossOrigin(base string, origins []string, protection *http.CrossOriginProtection) (*crossOrigin, error) {
	if len(origins) == 0 {
		return nil, nil
	}
	o := &crossOrigin{base: base, origins: origins}
	for _, origin := range origins {
		if origin == "*" {
			o.any = true
		} else if err := protection.AddTrustedOrigin(origin); err != nil {
			return nil, fmt.Errorf("the origin %q is not valid; write it as https://HOST or https://HOST:PORT, or * to let pages of any origin read", origin)
		}
	}
	return o, nil
}

// The headers of requests and answers that pages of other origins may use.
const (
	sentHeaders  = "Accept, Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, Recorder-Lag, X-Forwarded-User, X-Request-Id"
	shownHeaders = "ETag, Link, Location, Retry-After, X-Request-Id"
)

// mark tells a browser that the page of another origin may see the answer. It reports
// whether that is all that the browser asked for.
func (o *crossOrigin) mark(c *call) (answered bool) {
	if o == nil || !strings.HasPrefix(c.r.URL.Path, o.base+"/api/") {
		return false
	}
	c.head("Vary", "") // depends on the origin
	origin := c.r.Header.Get("Origin")
	if origin == "" || !o.any && !slices.Contains(o.origins, origin) {
		return false
	}
	c.head("Access-Control-Allow-Origin", origin)
	if c.r.Method != http.MethodOptions || c.r.Header.Get("Access-Control-Request-Method") == "" {
		c.head("Access-Control-Expose-Headers", shownHeaders)
		return false
	}
	methods := "GET, HEAD"
	if slices.Contains(o.origins, origin) {
		methods = serverMethods
	}
	c.head("Access-Control-Allow-Methods", methods)
	c.head("Access-Control-Allow-Headers", sentHeaders)
	c.head("Access-Control-Max-Age", "600")
	c.WriteHeader(http.StatusNoContent)
	return true
}

// checkOrigin returns an error if the page of another origin may not send the request.
func (c *call) checkOrigin() error {
	if c.access.origins.Check(c.r) == nil {
		return nil
	}
	return oda.Errorf(oda.CrossOrigin, "A web page of another origin may not write to this archive. "+
		"Use this archive's own pages or a program, or ask the operator to allow the origin (--cors-origin).")
}

// vary returns the value of the header Vary for answers that depend on these headers.
func (o *crossOrigin) vary(headers string) string {
	switch {
	case o == nil:
		return headers
	case headers == "":
		return "Origin"
	}
	return headers + ", Origin"
}

// secureYear lets browsers use only HTTPS for a year.
const secureYear = "max-age=31536000"

// protectPage sets headers that keep other sites from framing or reaching into a
// page. What a page may load, it says itself.
func (c *call) protectPage() {
	c.head("X-Frame-Options", "DENY")
	c.head("Cross-Origin-Opener-Policy", "same-origin")
	c.head("Cross-Origin-Resource-Policy", "same-origin")
	if c.r.TLS != nil {
		c.head("Strict-Transport-Security", secureYear)
	}
}
