package suite

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"oda"
)

// This file has a second implementation of splicing, with another JSON parser and
// from the outside in, to compare the first with.

// part is the value of a member or element, and its place in the text.
type part struct {
	name       string
	start, end int
}

// parts returns the members of an object, or the elements of a list, and the
// offset after the last of them.
func parts(text string) (all []part, last int) {
	d := jsontext.NewDecoder(strings.NewReader(text))
	opening, err := d.ReadToken()
	if err != nil {
		panic(err)
	}
	last = int(d.InputOffset())
	for d.PeekKind() != '}' && d.PeekKind() != ']' {
		var p part
		if opening.Kind() == '{' {
			name, err := d.ReadToken()
			if err != nil {
				panic(err)
			}
			p.name = name.String()
		}
		value, err := d.ReadValue()
		if err != nil {
			panic(err)
		}
		p.end = int(d.InputOffset())
		p.start = p.end - len(value)
		last = p.end
		all = append(all, p)
	}
	return all, last
}

// elements returns the texts of a list.
func elements(text string) []string {
	all, _ := parts(text)
	texts := make([]string, len(all))
	for i, p := range all {
		texts[i] = text[p.start:p.end]
	}
	return texts
}

// textOf returns the text of a member.
func textOf(text, name string) (string, bool) {
	all, _ := parts(text)
	for _, p := range all {
		if p.name == name {
			return text[p.start:p.end], true
		}
	}
	return "", false
}

func quote(text string) string {
	value, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		panic(err)
	}
	return string(value)
}

// managedMembers returns the managed fields as the archive writes them.
func managedMembers(m oda.Metadata) [][2]string {
	return [][2]string{
		{"version", fmt.Sprint(m.Version)},
		{"created_by", quote(m.CreatedBy)},
		{"created_on", quote(m.CreatedOn.Time().Format("2006-01-02T15:04:05.000000Z"))},
		{"last_modified_by", quote(m.LastModifiedBy)},
		{"last_modified_on", quote(m.LastModifiedOn.Time().Format("2006-01-02T15:04:05.000000Z"))},
	}
}

// splicedMetadata puts the managed fields into the text of a metadata.
func splicedMetadata(text string, m oda.Metadata) string {
	if text[0] != '{' {
		text = "{}"
	}
	members, last := parts(text)
	var missing []string
	for _, f := range managedMembers(m) {
		if _, ok := textOf(text, f[0]); !ok {
			missing = append(missing, `"`+f[0]+`":`+f[1])
		}
	}
	tail := strings.Join(missing, ",")
	if tail != "" && len(members) > 0 {
		tail = "," + tail
	}
	text = text[:last] + tail + text[last:]
	for i := len(members) - 1; i >= 0; i-- {
		for _, f := range managedMembers(m) {
			if members[i].name == f[0] {
				text = text[:members[i].start] + f[1] + text[members[i].end:]
			}
		}
	}
	return text
}

// Spliced returns what the archive must answer for a stored document. The records
// are nil if the entity has no list of them.
func Spliced(kind oda.Kind, document []byte, id string, m oda.Metadata, records []string) string {
	const space = " \t\r\n"
	inner := strings.TrimLeft(string(document), space)
	lead := string(document)[:len(document)-len(inner)]
	text := strings.TrimRight(inner, space)
	return lead + splicedObject(kind, text, id, m, records) + inner[len(text):]
}

func splicedObject(kind oda.Kind, text, id string, m oda.Metadata, records []string) string {
	members, last := parts(text)
	list := "[" + strings.Join(records, ",") + "]"

	tail := ""
	if _, ok := textOf(text, "request_responses"); !ok && kind == oda.ExecutionBlock && records != nil {
		tail += `,"request_responses":` + list
	}
	if _, ok := textOf(text, "metadata"); !ok {
		tail += `,"metadata":` + splicedMetadata("{}", m)
	}
	_, named := textOf(text, kind.IDField())

	text = text[:last] + tail + text[last:]
	for i := len(members) - 1; i >= 0; i-- {
		p := members[i]
		value := text[p.start:p.end]
		switch {
		case p.name == "metadata":
			value = splicedMetadata(value, m)
		case p.name == "request_responses" && kind == oda.ExecutionBlock:
			value = list
		case p.name == kind.IDField():
			if said, err := jsontext.AppendUnquote(nil, value); err != nil || string(said) != id {
				value = quote(id)
			}
		}
		text = text[:p.start] + value + text[p.end:]
	}
	if named {
		return text
	}
	identifier := `"` + kind.IDField() + `":` + quote(id)
	if len(members) > 0 {
		identifier += ","
	}
	return text[:1] + identifier + text[1:]
}

// Listed returns the records of a document, nil if it has no list.
func Listed(kind oda.Kind, document []byte) []string {
	if kind != oda.ExecutionBlock {
		return nil
	}
	list, ok := textOf(string(document), "request_responses")
	if !ok {
		return nil
	}
	return elements(list)
}
