package audit

import (
	"bytes"

	"oda"
	"oda/internal/rawjson"
)

// document renders documents into memory that it reuses.
type document struct{ text bytes.Buffer }

// anything stands for the metadata of a version, which is checked elsewhere.
var anything = oda.Metadata{Version: 1}

// check returns why a version is not the document of its entity, as part of a
// sentence, or "" if it is.
func (d *document) check(ref oda.Ref, body oda.Body) string {
	d.text.Reset()
	if err := body.WriteTo(&d.text, anything, nil); err != nil {
		return "cannot be rendered: " + err.Error()
	}
	s := rawjson.NewScanner(d.text.Bytes(), oda.MaxDepth)
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

// notObject returns why a text is not a JSON object, or "" if it is one.
func notObject(text []byte) string {
	s := rawjson.NewScanner(text, oda.MaxDepth)
	return members(s, func([]byte) error {
		_, _, err := s.Skip()
		return err
	})
}

// members calls member for each member of an object, which must be all of the text.
// It returns why the text is not such an object, or "".
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
