package oda

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// searchCursor is what stands inside the opaque text: the search, so that the
// cursor cannot be used with another one, and the place where the page before
// ended.
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
	Cone       *Cone      `json:"co,omitempty"`
	Where      []string   `json:"wh,omitempty"`
	Sort       Sort       `json:"s,omitempty"`
	Limit      int        `json:"l"`
	Fields     ItemFields `json:"f,omitempty"`
	At         Instant    `json:"t"`
	ID         string     `json:"i"`
}

// Cursor is the text with which the search goes on behind a place.
func (q *Search) Cursor(behind Place) string {
	c := searchCursor{
		Collection: q.Kind.Collection(), User: q.User, Match: q.Match, Created: q.Created, Modified: q.Modified,
		Telescope: q.Telescope, Reference: q.Reference, Version: q.ReferenceVersion, Words: q.Words, Cone: q.Cone,
		Sort: q.Sort, Limit: q.Limit, Fields: q.Fields, At: behind.At, ID: behind.ID,
	}
	for _, w := range q.Where {
		c.Where = append(c.Where, w.Text)
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // a condition's < would take six bytes
	if err := encoder.Encode(c); err != nil {
		panic("oda: a cursor cannot be written: " + err.Error())
	}
	return base64.RawURLEncoding.EncodeToString(bytes.TrimSpace(text.Bytes()))
}

// searchCursor reads a cursor into the search. The filters may be left out
// beside it; where any is given, they must be those that it was made for.
func (p *queryParser) searchCursor(q *Search, text string) {
	carried, ok := readSearchCursor(text)
	if !ok {
		p.fault("cursor", "is not a cursor of this archive; take it from next, or from the Link header, of the previous page")
		return
	}
	asked := *q
	asked.Limit, asked.Fields, asked.Start = carried.Limit, carried.Fields, carried.Start
	if carried.Kind != q.Kind || slices.ContainsFunc(filters[:], p.has) && !reflect.DeepEqual(carried, asked) {
		p.fault("cursor", "belongs to another search; send it with the search it came from, or alone")
		return
	}
	*q = carried
}

// readSearchCursor takes what Cursor has written, and nothing else.
func readSearchCursor(text string) (Search, bool) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return Search{}, false
	}
	var c searchCursor
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if decoder.Decode(&c) != nil || decoder.InputOffset() != int64(len(raw)) || !c.valid() {
		return Search{}, false
	}
	kind, known := KindOf(c.Collection)
	q := Search{
		Kind: kind, User: c.User, Match: c.Match, Created: c.Created, Modified: c.Modified, Telescope: c.Telescope,
		Reference: c.Reference, ReferenceVersion: c.Version, Words: c.Words, Cone: c.Cone,
		Sort: c.Sort, Limit: c.Limit, Fields: c.Fields, Start: &Place{c.At, c.ID},
	}
	q.Where, err = parseAllWhere(c.Where)
	return q, known && err == nil
}

// valid tells whether a cursor can come from Search.Cursor.
func (c searchCursor) valid() bool {
	for _, text := range []string{c.User, c.Telescope, c.Reference} {
		if len(text) > maxSearchText || !utf8.ValidString(text) {
			return false
		}
	}
	switch {
	case !ValidID(c.ID), c.Match > UserContains, (c.Match == AnyUser) != (c.User == ""),
		c.Version < 0, c.Version > 0 && c.Reference == "",
		int(c.Sort) >= len(sortNames), int(c.Fields) >= len(fieldNames), c.Limit < 1, c.Limit > MaxSearchLimit,
		c.Cone != nil && !c.Cone.valid():
		return false
	}
	words := strings.Join(c.Words, " ")
	// In lower case, a few letters are longer than in upper case.
	return len(words) <= 2*maxSearchText && slices.Equal(c.Words, Words(words))
}

// valid tells whether parseCone can have read the cone.
func (c Cone) valid() bool {
	return c.RA >= 0 && c.RA <= 360 && math.Abs(c.Dec) <= 90 && c.Radius >= 0 && c.Radius <= 180
}
