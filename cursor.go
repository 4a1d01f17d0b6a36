package oda

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"strings"

	"oda/internal/rawjson"
)

// Place is a position in a listing.
type Place struct {
	At Instant
	ID string
}

// Compare orders places by their instants, then by the bytes of identifiers.
func (p Place) Compare(other Place) int {
	return cmp.Or(cmp.Compare(p.At, other.At), strings.Compare(p.ID, other.ID))
}

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

// CallCursor is where the next page of a question about calls begins. It carries the
// parameters of the question.
type CallCursor struct {
	Params map[string][]string `json:"q"`
	Behind CallPlace           `json:"b"`
}

// String returns the cursor as an opaque text.
func (c CallCursor) String() string { return writeCursor(c) }

// ParseCallCursor reads what String wrote. It reports whether the text is a cursor. The
// parameters may be those of any question.
func ParseCallCursor(text string) (c CallCursor, ok bool) {
	ok = readCursor(text, &c) && ValidID(c.Behind.Block)
	return c, ok
}

// writeCursor encodes what a cursor carries as an opaque text.
func writeCursor(carried any) string {
	text, err := rawjson.Marshal(carried)
	if err != nil {
		panic("oda: encode a cursor: " + err.Error())
	}
	return base64.RawURLEncoding.EncodeToString(text)
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

// countedCursor is what a cursor of the versions or the statuses of an entity carries:
// the entity, and the number with which the previous page ended.
type countedCursor struct {
	Collection string `json:"c"`
	ID         string `json:"i"`
	Of         string `json:"o"`
	Before     int64  `json:"b"`
}

// The lists of an entity that are numbered from 1, and read from their end.
const (
	OfVersions = "versions"
	OfStatuses = "statuses"
)

// CountedCursor returns the cursor of the page of a list before a number.
func CountedCursor(ref Ref, of string, before int64) string {
	return writeCursor(countedCursor{ref.Kind.Collection(), ref.ID, of, before})
}

// ParseCountedCursor returns the number before which a page begins.
func ParseCountedCursor(ref Ref, of, text string) (before int64, err error) {
	var c countedCursor
	detail := ""
	switch {
	case !readCursor(text, &c) || c.Before < 2:
		detail = wrongCursor
	case c.Collection != ref.Kind.Collection() || c.ID != ref.ID || c.Of != of:
		detail = "belongs to another list; send it with the path it came from"
	default:
		return c.Before, nil
	}
	return 0, &Error{Code: InvalidQuery, Detail: "Invalid query: cursor " + detail + ".", Faults: []Fault{{"query:cursor", detail}}}
}
