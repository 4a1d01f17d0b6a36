package oda

import (
	"bytes"
	"crypto/sha256"
	"io"
	"slices"
	"strconv"

	"oda/internal/rawjson"
)

// Body is a document as it is kept: the text as received, less the values that
// the server owns, and the slots at which an answer splices them in. Recording
// and versioning therefore never rewrite a text. The digest is kept with it, and
// tells whether the text is still the one that was stored.
type Body struct {
	Text   []byte
	Slots  []Slot
	Digest Digest
}

// Digest is the SHA-256 of a text as it is kept.
type Digest [sha256.Size]byte

// DigestOf works out the digest of a text.
func DigestOf(text []byte) Digest { return sha256.Sum256(text) }

// Slot is a place in a text where a value of the server's goes.
type Slot struct {
	Offset int
	Value  SlotValue
}

// SlotValue says which value a slot takes. The numbers are stored.
type SlotValue uint8

// The values of the server's.
const (
	SlotVersion SlotValue = iota + 1
	SlotCreatedBy
	SlotCreatedOn
	SlotLastModifiedBy
	SlotLastModifiedOn
	// SlotRecords is the list of records.
	SlotRecords
	// SlotRecordsMember is the whole member with the list of records, which is
	// left out as long as the ExecutionBlock has no such list.
	SlotRecordsMember
)

// edit replaces text[start:end] by a literal, and then by a slot if there is
// one. Edits at one place keep their order.
type edit struct {
	start, end int
	literal    string
	slot       SlotValue
}

// Body prepares the document for keeping under that identifier.
func (d *Document) Body(id string) Body {
	var room [12]edit
	edits := d.identifierEdits(room[:0], id)
	if d.Kind == ExecutionBlock {
		edits = d.recordsEdits(edits)
	}
	edits = d.metadataEdits(edits)
	slices.SortStableFunc(edits, func(a, b edit) int { return a.start - b.start })

	// White space around a document belongs to it where it came by itself.
	at, end := 0, len(d.text)
	if d.root != 0 {
		at, end = d.nodes[d.root].Start, d.nodes[d.root].End
	}
	body := Body{Text: make([]byte, 0, end-at+256), Slots: make([]Slot, 0, len(edits))}
	for _, e := range edits {
		body.Text = append(body.Text, d.text[at:e.start]...)
		body.Text = append(body.Text, e.literal...)
		if e.slot != 0 {
			body.Slots = append(body.Slots, Slot{len(body.Text), e.slot})
		}
		at = e.end
	}
	body.Text = append(body.Text, d.text[at:end]...)
	body.Digest = DigestOf(body.Text)
	return body
}

// Fits tells whether the slots can be those of a document of that kind: each value
// of the server's has one, in a place where JSON takes a value.
func (b Body) Fits(kind Kind) bool {
	seen, last := 0, -1
	for _, s := range b.Slots {
		if s.Offset <= last || s.Offset >= len(b.Text) || s.Value < SlotVersion || s.Value > SlotRecordsMember || seen&(1<<s.Value) != 0 {
			return false
		}
		before, after := bytes.TrimRight(b.Text[:s.Offset], white), bytes.TrimLeft(b.Text[s.Offset:], white)
		if len(before) == 0 || len(after) == 0 || s.Value != SlotRecordsMember && before[len(before)-1] != ':' || after[0] != ',' && after[0] != '}' {
			return false
		}
		seen |= 1 << s.Value
		last = s.Offset
	}
	const all = 1<<SlotVersion | 1<<SlotCreatedBy | 1<<SlotCreatedOn | 1<<SlotLastModifiedBy | 1<<SlotLastModifiedOn
	if seen&all == 0 { // a document without metadata takes nothing there
		return !bytes.Contains(b.Text, []byte(`"metadata"`))
	}
	if kind == ExecutionBlock {
		return seen == all|1<<SlotRecords || seen == all|1<<SlotRecordsMember
	}
	return seen == all
}

// white is the white space of JSON.
const white = " \t\r\n"

// identifierEdits puts the identifier in: in the place of the one that is
// there, or first.
func (d *Document) identifierEdits(edits []edit, id string) []edit {
	if d.ID == id {
		return edits
	}
	literal := string(rawjson.AppendQuoted(nil, id))
	if i := d.child(d.root, d.Kind.IDField()); i >= 0 {
		return append(edits, edit{d.nodes[i].Start, d.nodes[i].End, literal, 0})
	}
	literal = `"` + d.Kind.IDField() + `":` + literal
	start := d.nodes[d.root].Start + 1
	if d.lastByte(d.root) != start {
		literal += ","
	}
	return append(edits, edit{start, start, literal, 0})
}

// recordsEdits takes the list of records out of the text.
func (d *Document) recordsEdits(edits []edit) []edit {
	if i := d.child(d.root, recordsField); i >= 0 {
		return append(edits, edit{d.nodes[i].Start, d.nodes[i].End, "", SlotRecords})
	}
	end := d.lastByte(d.root)
	if d.Listed {
		return append(edits, edit{end, end, `,"` + recordsField + `":`, SlotRecords})
	}
	return append(edits, edit{end, end, "", SlotRecordsMember})
}

// metadataEdits takes the managed fields out of the text, and adds those that
// are missing at the end of the metadata.
func (d *Document) metadataEdits(edits []edit) []edit {
	i := d.child(d.root, "metadata")
	if i >= 0 && d.nodes[i].Kind == rawjson.Object {
		end := d.lastByte(i)
		empty := end == d.nodes[i].Start+1
		for _, m := range managed {
			if j := d.child(i, m.name); j >= 0 {
				edits = append(edits, edit{d.nodes[j].Start, d.nodes[j].End, "", m.slot})
				continue
			}
			edits = append(edits, edit{end, end, separated(m.name, empty), m.slot})
			empty = false
		}
		return edits
	}
	start, end, open := d.lastByte(d.root), d.lastByte(d.root), `,"metadata":{`
	if i >= 0 { // null: the object takes its place
		start, end, open = d.nodes[i].Start, d.nodes[i].End, "{"
	}
	// All of it goes to one place, so that no other edit comes in between.
	edits = append(edits, edit{start, start, open, 0})
	for n, m := range managed {
		edits = append(edits, edit{start, start, separated(m.name, n == 0), m.slot})
	}
	return append(edits, edit{start, end, "}", 0})
}

// separated writes a key behind the member before it.
func separated(name string, isFirst bool) string {
	if isFirst {
		return `"` + name + `":`
	}
	return `,"` + name + `":`
}

// lastByte is the offset behind the last member of an object: where one more
// goes. White space before the closing brace stays behind it.
func (d *Document) lastByte(i int) int {
	end := d.nodes[i].End - 1
	for {
		switch d.text[end-1] {
		case ' ', '\t', '\r', '\n':
			end--
		default:
			return end
		}
	}
}

// WriteTo renders the document: the text with the values spliced in.
func (b Body) WriteTo(w io.Writer, m Metadata, records Texts) error {
	at := 0
	buf := make([]byte, 0, 64)
	for _, s := range b.Slots {
		if _, err := w.Write(b.Text[at:s.Offset]); err != nil {
			return err
		}
		at, buf = s.Offset, buf[:0]
		if s.Value < SlotRecords {
			buf = appendValue(buf, s.Value, m)
		} else if s.Value == SlotRecords || records != nil {
			if s.Value == SlotRecordsMember {
				buf = append(buf, `,"`+recordsField+`":`...)
			}
			if _, err := w.Write(append(buf, '[')); err != nil {
				return err
			}
			if err := writeRecords(w, records); err != nil {
				return err
			}
			buf = append(buf[:0], ']')
		}
		if _, err := w.Write(buf); err != nil {
			return err
		}
	}
	_, err := w.Write(b.Text[at:])
	return err
}

// withoutRecords renders the document without its records.
func (b Body) withoutRecords(m Metadata) ([]byte, error) {
	text := bytes.NewBuffer(make([]byte, 0, len(b.Text)+256))
	err := b.WriteTo(text, m, nil)
	return text.Bytes(), err
}

func writeRecords(w io.Writer, records Texts) error {
	if records == nil {
		return nil
	}
	comma := false
	for r, err := range records {
		if err != nil {
			return err
		}
		if comma {
			if _, err := w.Write([]byte{','}); err != nil {
				return err
			}
		}
		comma = true
		if _, err := w.Write(r); err != nil {
			return err
		}
	}
	return nil
}

func appendValue(dst []byte, v SlotValue, m Metadata) []byte {
	switch v {
	case SlotVersion:
		return strconv.AppendInt(dst, m.Version, 10)
	case SlotCreatedBy:
		return rawjson.AppendQuoted(dst, m.CreatedBy)
	case SlotLastModifiedBy:
		return rawjson.AppendQuoted(dst, m.LastModifiedBy)
	case SlotCreatedOn:
		dst = m.CreatedOn.AppendTo(append(dst, '"'))
	default:
		dst = m.LastModifiedOn.AppendTo(append(dst, '"'))
	}
	return append(dst, '"')
}

// AppendJSON appends the metadata as an object of its own.
func (m Metadata) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	for i, f := range managed {
		dst = append(dst, separated(f.name, i == 0)...)
		dst = appendValue(dst, f.slot, m)
	}
	return append(dst, '}')
}
