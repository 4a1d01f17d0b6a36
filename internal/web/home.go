package web

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"oda"
	"oda/archive"
)

// fallbackHost appears in the examples if the request has no usable host. It is
// the server's default address.
const fallbackHost = "127.0.0.1:8080"

// The examples are pasted into a shell, so an address is shown only if all its
// characters are harmless there. HTML escaping alone is not enough.
var (
	safeHost = regexp.MustCompile(`^([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?$`)
	safePath = regexp.MustCompile(`^(/[A-Za-z0-9._~%-]+)*$`)
)

// homeView is the data for the home page.
type homeView struct {
	*nowView
	Cards   []card
	API     string // the absolute address of the API, for the examples
	Usage   *oda.Usage
	End     int64 // the last position of the log of changes
	Changes []changeRow
}

// lowDisk is how much free room is so little that somebody should know.
const lowDisk = 2 << 30

// Low reports whether the disk is nearly full.
func (v *homeView) Low() bool { return v.Usage.Free != nil && *v.Usage.Free < lowDisk }

// card is one kind of entity on the home page.
type card struct {
	Name       string
	Collection string
	Meaning    string
	Count      string
}

// Bounds of the home page.
const (
	newestBlocks = 8
	healthTime   = 500 * time.Millisecond
)

// Home serves the home page, GET {base}/ and GET {base}/api/v1/.
func (s *Site) Home(w http.ResponseWriter, r *http.Request) error {
	now, err := s.newNow(r)
	if err != nil {
		return err
	}
	view := &homeView{nowView: now, API: apiAddress(r), Usage: s.usage.Load()}
	if err := s.fillHome(r.Context(), view); err != nil {
		return err
	}
	return s.page(w, r, "home", view)
}

// cards are the kinds with their counts.
func cards(counts map[oda.Kind]int64) []card {
	var cards []card
	for _, k := range oda.Kinds {
		c := card{Name: k.String(), Collection: k.Collection(), Meaning: meaning(k), Count: thousands(counts[k])}
		if counts[k] != 1 {
			c.Name += "s"
		}
		cards = append(cards, c)
	}
	return cards
}

// fillHome asks the archive what is new in it, and how much there is.
func (s *Site) fillHome(ctx context.Context, view *homeView) (err error) {
	if view.Newest, err = s.rows(ctx, view.found[:min(len(view.found), newestBlocks)]); err != nil {
		return err
	}
	page, err := s.cfg.Archive.Recent(ctx, archive.RecentQuery{Limit: changesOnHome, Within: changesTime})
	if err != nil {
		return err
	}
	view.End = int64(page.End)
	counts, err := s.cfg.Archive.Counts(ctx)
	if err != nil {
		return err
	}
	view.Cards = cards(counts)
	view.Changes, err = s.changeRows(ctx, page.Changes)
	return err
}

// troubleOf says in a sentence why the archive cannot be used fully, empty if it can.
func troubleOf(err error) string {
	if e, ok := errors.AsType[*oda.Error](err); ok {
		return e.Detail
	}
	if err != nil {
		return "Its storage does not answer."
	}
	return ""
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
// trailing slash. The request was for {base}/ or {base}/api/v1/, so its path
// contains the base.
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
	path := strings.TrimSuffix(strings.TrimRight(r.URL.EscapedPath(), "/"), "/api/v1") + "/api/v1"
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
