package audit

import (
	"bytes"

	"oda"
	"oda/internal/rawjson"
)

// maxDepth is the deepest nesting that any server can have accepted.
const maxDepth = 10_000

// document renders documents into memory that is used again.
type document struct{ text bytes.Buffer }

// anything stands for the metadata of a version: it is checked elsewhere.
var anything = oda.Metadata{Version: 1}

// check tells why a version would not be answered as the document of its entity,
// as part of a sentence; "" if it would.
func (d *document) check(ref oda.Ref, body oda.Body) string {
	d.text.Reset()
	if err := body.WriteTo(&d.text, anything, nil); err != nil {
		return "cannot be rendered: " + err.Error()
	}
	s := rawjson.NewScanner(d.text.Bytes(), maxDepth)
	id := ""
	if fault := members(s, func(key []byte) error {
		start, end, err := s.Skip()
		if err == nil && string(key) == ref.Kind.IDField() && d.text.Bytes()[start] == '"' {
			id = rawjson.Unquote(d.text.Bytes()[start:end])
		}
		return err
	}); fault != "" {
		return fault
	}
	if id != ref.ID {
		return "is the document of " + ref.Kind.String() + " " + id
	}
	return ""
}

// isObject tells why a text is not a JSON object.
func isObject(text []byte) string {
	s := rawjson.NewScanner(text, maxDepth)
	return members(s, func([]byte) error {
		_, _, err := s.Skip()
		return err
	})
}

// members goes through the members of an object, which is all of a text.
func members(s *rawjson.Scanner, member func(key []byte) error) string {
	_, err := s.BeginObject()
	for err == nil {
		var key []byte
		var more bool
		if key, more, err = s.NextKey(); !more || err != nil {
			break
		}
		err = member(key)
	}
	if err == nil {
		err = s.End()
	}
	if err != nil {
		return "is not a JSON object: " + err.Error()
	}
	return ""
}
