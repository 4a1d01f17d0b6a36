package oda

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"reflect"
)

// cursor is what the opaque text holds: the query, so that a cursor cannot be
// used with another one, and the place where the previous page ended.
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

// Cursor returns the cursor with which the listing continues after a place.
func (q Query) Cursor(behind Place) string {
	return writeCursor(cursor{
		q.Kind.Collection(), q.Order, q.User, q.Match, q.After, q.Before, behind.At, behind.ID,
	})
}

// writeCursor encodes what a cursor carries as an opaque text.
func writeCursor(carried any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // the < of a condition would take six bytes
	if err := encoder.Encode(carried); err != nil {
		panic("oda: encode a cursor: " + err.Error())
	}
	return base64.RawURLEncoding.EncodeToString(bytes.TrimSpace(text.Bytes()))
}

// readCursor decodes what writeCursor wrote. It reports whether the text is a
// cursor.
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

// cursor reads a cursor into the query. A request with a cursor may leave the
// query fields out; if it has any, they must be those of the cursor.
func (p *Params) cursor(q *Query, text string) {
	var c cursor
	if !readCursor(text, &c) || !c.valid() {
		p.Fault("cursor", wrongCursor)
		return
	}
	carried := Query{Order: c.Order, User: c.User, Match: c.Match, After: c.After, Before: c.Before}
	asked := Query{Order: q.Order, User: q.User, Match: q.Match, After: q.After, Before: q.Before}
	if c.Collection != q.Kind.Collection() || q.Order != 0 && !reflect.DeepEqual(carried, asked) {
		p.Fault("cursor", "belongs to another query; send it with the query it came from, or alone")
		return
	}
	q.Order, q.User, q.Match, q.After, q.Before = c.Order, c.User, c.Match, c.After, c.Before
	q.Start = &Place{c.At, c.ID}
}

// valid reports whether Query.Cursor can have made the cursor.
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
