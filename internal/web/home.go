package web

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"oda"
)

// fallbackHost appears in the examples if the request has no usable host. It is
// the server's default address.
const fallbackHost = "127.0.0.1:8080"

// unknownCount is shown until the first count is available.
const unknownCount = "–"

// The examples are pasted into a shell, so an address is shown only if all its
// characters are harmless there. HTML escaping alone is not enough.
var (
	safeHost = regexp.MustCompile(`^([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?$`)
	safePath = regexp.MustCompile(`^(/[A-Za-z0-9._~%-]+)*$`)
)

// homeView is the data for the template of the home page.
type homeView struct {
	Cards   []card
	API     string // the absolute address of the API, for the examples
	Version string
	Engine  string
}

// card is one kind of entity on the home page.
type card struct {
	Name       string
	Collection string
	Meaning    string
	Count      string
}

// homeView builds the home page for one request, from memory only.
func (s *Site) homeView(r *http.Request) homeView {
	view := homeView{API: apiAddress(r), Version: s.cfg.Version, Engine: s.cfg.Engine}
	counts := s.counts.Load()
	for _, k := range oda.Kinds {
		c := card{Name: k.String(), Collection: k.Collection(), Meaning: meaning(k), Count: unknownCount}
		if counts != nil {
			c.Count = thousands((*counts)[k])
		}
		view.Cards = append(view.Cards, c)
	}
	return view
}

// meaning describes a kind in a few words.
func meaning(k oda.Kind) string {
	switch k {
	case oda.SBDefinition:
		return "How to make an observation"
	case oda.SBInstance:
		return "One use of a definition"
	case oda.ExecutionBlock:
		return "What the telescope was told, and its answers"
	case oda.Project:
		return "The science that the blocks serve"
	}
	return ""
}

// apiAddress returns the address of the API as the client sees it, without a
// trailing slash. The request was for {base}/api/v1/, so its path contains the
// base.
func apiAddress(r *http.Request) string {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	forwarded, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",")
	switch forwarded = strings.ToLower(strings.TrimSpace(forwarded)); forwarded {
	case "http", "https":
		scheme = forwarded
	}
	host := r.Host
	if !safeHost.MatchString(host) {
		host = fallbackHost
	}
	path := strings.TrimRight(r.URL.EscapedPath(), "/")
	if !safePath.MatchString(path) {
		path = "/api/v1"
	}
	return scheme + "://" + host + path
}

// thousands formats a count in groups of three digits, separated by a narrow
// no-break space, which is unambiguous everywhere.
func thousands(n int64) string {
	digits := strconv.FormatInt(n, 10)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteRune('\u202f')
		}
		b.WriteRune(d)
	}
	return b.String()
}
