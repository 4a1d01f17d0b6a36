package oda

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"oda/internal/words"
	"oda/sky"
)

// searchCursor is what the opaque text holds: the search, so that the cursor
// cannot be used with another one, and the place where the previous page ended.
type searchCursor struct {
	Collection string     `json:"c"`
	User       string     `json:"u,omitempty"`
	Match      MatchType  `json:"m,omitempty"`
	Created    Span       `json:"cr"`
	Modified   Span       `json:"mo"`
	Telescope  string     `json:"te,omitempty"`
	Reference  string     `json:"r,omitempty"`
	Version    int64      `json:"v,omitempty"`
	Words      []string   `json:"w,omitempty"`
	Cone       *sky.Cone  `json:"co,omitempty"`
	Where      []string   `json:"wh,omitempty"`
	Sort       Sort       `json:"s,omitempty"`
	Limit      int        `json:"l"`
	Fields     ItemFields `json:"f,omitempty"`
	At         Instant    `json:"t"`
	ID         string     `json:"i"`
}

// Cursor returns the cursor with which the search continues after a place.
func (q *Search) Cursor(behind Place) string {
	c := searchCursor{
		Collection: q.Kind.Collection(), User: q.User, Match: q.Match, Created: q.Created, Modified: q.Modified,
		Telescope: q.Telescope, Reference: q.Reference, Version: q.ReferenceVersion, Words: q.Words, Cone: q.Cone,
		Sort: q.Sort, Limit: q.Limit, Fields: q.Fields, At: behind.At, ID: behind.ID,
	}
	for _, w := range q.Where {
		c.Where = append(c.Where, w.Text)
	}
	return writeCursor(c)
}

// searchCursor reads a cursor into the search. A request with a cursor may leave
// the filters out; if it has any, they must be those of the cursor.
func (p *Params) searchCursor(q *Search, text string) {
	carried, ok := readSearchCursor(text)
	if !ok {
		p.Fault("cursor", "is not a cursor of this archive; take it from next, or from the Link header, of the previous page")
		return
	}
	asked := *q
	asked.Limit, asked.Fields, asked.Start = carried.Limit, carried.Fields, carried.Start
	if carried.Kind != q.Kind || slices.ContainsFunc(filters[:], p.Has) && !reflect.DeepEqual(carried, asked) {
		p.Fault("cursor", "belongs to another search; send it with the search it came from, or alone")
		return
	}
	*q = carried
}

// readSearchCursor decodes what Cursor wrote, and nothing else.
func readSearchCursor(text string) (Search, bool) {
	var c searchCursor
	if !readCursor(text, &c) || !c.valid() {
		return Search{}, false
	}
	kind, known := KindOf(c.Collection)
	q := Search{
		Kind: kind, User: c.User, Match: c.Match, Created: c.Created, Modified: c.Modified, Telescope: c.Telescope,
		Reference: c.Reference, ReferenceVersion: c.Version, Words: c.Words, Cone: c.Cone,
		Sort: c.Sort, Limit: c.Limit, Fields: c.Fields, Start: &Place{c.At, c.ID},
	}
	var err error
	q.Where, err = parseAllWhere(c.Where)
	return q, known && err == nil
}

// valid reports whether Search.Cursor can have made the cursor.
func (c searchCursor) valid() bool {
	for _, text := range []string{c.User, c.Telescope, c.Reference} {
		if len(text) > MaxParam || !utf8.ValidString(text) {
			return false
		}
	}
	switch {
	case !ValidID(c.ID), c.Match > UserContains, (c.Match == AnyUser) != (c.User == ""),
		c.Version < 0, c.Version > 0 && c.Reference == "",
		int(c.Sort) >= len(sortNames), int(c.Fields) >= len(fieldNames), c.Limit < 1, c.Limit > MaxSearchLimit,
		c.Cone != nil && !validCone(*c.Cone):
		return false
	}
	text := strings.Join(c.Words, " ")
	// A few letters are longer in lower case than in upper case. No words are nil, never
	// an empty list.
	return len(text) <= 2*MaxParam && reflect.DeepEqual(c.Words, words.Of(text))
}

// validCone reports whether sky.ParseCone can have returned the cone.
func validCone(c sky.Cone) bool {
	return c.RA >= 0 && c.RA <= 360 && math.Abs(c.Dec) <= 90 && c.Radius >= 0 && c.Radius <= 180
}
