package oda

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"reflect"
)

// cursor is what stands inside the opaque text: the query, so that a cursor
// cannot be used with another one, and the place where the page before ended.
type cursor struct {
	Collection string    `json:"c"`
	Order      Order     `json:"o"`
	User       string    `json:"u,omitempty"`
	Match      MatchType `json:"m,omitempty"`
	After      *Instant  `json:"a,omitempty"`
	Before     *Instant  `json:"b,omitempty"`
	At         Instant   `json:"t"`
	ID         string    `json:"i"`
}

// Cursor is the text with which the listing goes on behind a place.
func (q Query) Cursor(behind Place) string {
	return writeCursor(cursor{
		q.Kind.Collection(), q.Order, q.User, q.Match, q.After, q.Before, behind.At, behind.ID,
	})
}

// writeCursor makes an opaque text of what a cursor carries.
func writeCursor(carried any) string {
	text, err := json.Marshal(carried)
	if err != nil {
		panic("oda: a cursor cannot be written: " + err.Error())
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// readCursor reads what writeCursor wrote, and says whether it can be that.
func readCursor(text string, carried any) bool {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return false
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	return decoder.Decode(carried) == nil && decoder.InputOffset() == int64(len(raw))
}

const wrongCursor = "is not a cursor of this archive; take it from the Link header of the previous page"

// cursor reads a cursor into the query. The query fields may be left out
// beside it; where they are given, they must be those that it was made for.
func (p *queryParser) cursor(q *Query, text string) {
	var c cursor
	if !readCursor(text, &c) || !c.valid() {
		p.fault("cursor", wrongCursor)
		return
	}
	carried := Query{Order: c.Order, User: c.User, Match: c.Match, After: c.After, Before: c.Before}
	asked := Query{Order: q.Order, User: q.User, Match: q.Match, After: q.After, Before: q.Before}
	if c.Collection != q.Kind.Collection() || q.Order != 0 && !reflect.DeepEqual(carried, asked) {
		p.fault("cursor", "belongs to another query; send it with the query it came from, or alone")
		return
	}
	q.Order, q.User, q.Match, q.After, q.Before = c.Order, c.User, c.Match, c.After, c.Before
	q.Start = &Place{c.At, c.ID}
}

// valid tells whether a cursor can come from Query.Cursor.
func (c cursor) valid() bool {
	switch {
	case !ValidID(c.ID):
		return false
	case c.Order == ByModification:
		return c.Match == AnyUser && c.User == ""
	case c.Order != ByCreation || c.Match > UserContains:
		return false
	}
	return (c.Match == AnyUser) == (c.User == "")
}
