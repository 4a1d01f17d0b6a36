package oda

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
)

// Cursor is where the next page of a query begins. It carries the parameters of the
// query, so that it cannot be used with another one.
type Cursor struct {
	Kind   Kind
	Params map[string][]string
	After  Place // where the previous page ended
}

// carried is the form of a cursor.
type carried struct {
	Collection string              `json:"c"`
	Params     map[string][]string `json:"p"`
	At         Instant             `json:"t"`
	ID         string              `json:"i"`
}

// String returns the cursor as an opaque text.
func (c Cursor) String() string {
	return writeCursor(carried{c.Kind.Collection(), c.Params, c.After.At, c.After.ID})
}

// ParseCursor reads what String wrote. It reports whether the text is a cursor. The
// parameters may be those of any query.
func ParseCursor(text string) (Cursor, bool) {
	var c carried
	if !readCursor(text, &c) || !ValidID(c.ID) {
		return Cursor{}, false
	}
	kind, known := KindOf(c.Collection)
	return Cursor{kind, c.Params, Place{c.At, c.ID}}, known
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

// Cursor returns the cursor with which the listing continues after a place.
func (q Query) Cursor(after Place) string {
	q.Limit = 0
	return Cursor{q.Kind, q.Params(), after}.String()
}

// cursor reads a cursor into the query. A request with a cursor may leave the
// query fields out; if it has any, they must be those of the cursor.
func (p *Params) cursor(q *Query, text string) {
	c, ok := ParseCursor(text)
	inside := Params{Values: c.Params}
	carried := inside.field(c.Kind)
	switch {
	case !ok || carried.Order == 0 || inside.Faults != nil || carried.Cursor(c.After) != text:
		p.Fault("cursor", wrongCursor)
	case carried.Kind != q.Kind || q.Order != 0 && q.Cursor(c.After) != text:
		p.Fault("cursor", "belongs to another query; send it with the query it came from, or alone")
	default:
		carried.Limit, carried.Start = q.Limit, &c.After
		*q = carried
	}
}
