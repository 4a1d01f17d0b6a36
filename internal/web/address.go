package web

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"oda"
)

// readAddress takes apart what may be an address: the parts of its path, its
// parameters, and the place on the page. It does not matter how much of the address
// there is.
func readAddress(text string) (parts []string, params url.Values, place string) {
	text, place, _ = strings.Cut(strings.TrimSpace(text), "#")
	path, query, _ := strings.Cut(text, "?")
	params, err := url.ParseQuery(query)
	if err != nil {
		params = url.Values{}
	}
	for part := range strings.SplitSeq(path, "/") {
		if plain, err := url.PathUnescape(part); err == nil {
			part = plain
		}
		if part != "" {
			parts = append(parts, part)
		}
	}
	return parts, params, place
}

// pageNamed returns the page that a text names, relative to the base path: an identifier,
// with a version if need be, the address of a page or of the interface, a date, which
// names a night, or a time. It is empty if the text names none.
func (s *Site) pageNamed(ctx context.Context, text string) (string, error) {
	refs, err := s.identified(ctx, text)
	if err != nil {
		return "", err
	}
	if len(refs) == 1 {
		return refs[0].Kind.Collection() + "/" + refs[0].ID, nil
	}
	if at, err := oda.ParseAsOf(text); err == nil && len(text) == len(time.DateOnly) {
		return "night" + question(url.Values{"date": {at.Time().Format(time.DateOnly)}}), nil
	}
	if at, ok := readWhen(text, time.Now().In(s.zone())); ok {
		return callsHref(url.Values{"at": {inAddress(at)}}), nil
	}
	if !strings.ContainsAny(text, "/?@") {
		return "", nil
	}
	if page := pageAt(text); page != "" {
		return page, nil
	}
	return s.entityAt(ctx, text)
}

// pageAt returns the page at an address, if it is not one of an entity. Words with a
// slash between them are no address.
func pageAt(text string) string {
	parts, params, _ := readAddress(text)
	n := len(parts)
	if n == 0 || !strings.HasPrefix(text, "/") && !strings.Contains(text, "://") && len(params) == 0 {
		return ""
	}
	page := parts[n-1]
	if page == "search" && n > 1 { // of the interface, in a collection
		if _, ok := oda.KindOf(parts[n-2]); ok {
			page = parts[n-2]
		}
	}
	if _, list := oda.KindOf(page); list || slices.Contains([]string{"calls", "changes", "compare", "night", "search"}, page) {
		return page + question(params)
	}
	return ""
}

// entityAt returns the page of the entity at an address. An address that says which
// kind it is names an entity even if that is not stored.
func (s *Site) entityAt(ctx context.Context, text string) (string, error) {
	n := readSide(text)
	if !oda.ValidID(n.id) {
		return "", nil
	}
	if n.kind == 0 {
		refs, err := s.identified(ctx, n.id)
		if err != nil || len(refs) == 0 {
			return "", err
		}
		n.kind = refs[0].Kind
	}
	parts, params, place := readAddress(text)
	if slices.Contains(parts, "api") { // has other parameters
		params = url.Values{"at": params["at"]}
	}
	if n.version != "" {
		params.Set("version", n.version)
	}
	to := url.URL{Path: n.kind.Collection() + "/" + n.id, RawQuery: strings.TrimPrefix(question(withoutEmpty(params)), "?"), Fragment: place}
	return to.String(), nil
}
