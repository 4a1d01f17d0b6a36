package oda

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"slices"
	"strconv"

	"oda/internal/rawjson"
)

// Body is a document as it is stored: the text as received without the values
// that the server owns, and the slots where an answer splices them in. So
// recording and versioning never rewrite a text. The digest is stored with the
// text and shows whether it is still the text that was stored.
type Body struct {
	Text   []byte
	Slots  []Slot
	Digest Digest
}

// Digest is the SHA-256 of a text as it is stored.
type Digest [sha256.Size]byte

// DigestOf returns the digest of a text.
func DigestOf(text []byte) Digest { return sha256.Sum256(text) }

// Slot is a place in a text that takes a value owned by the server.
type Slot struct {
	Offset int
	Value  SlotValue
}

// SlotValue says which value a slot takes. Archives store these numbers.
type SlotValue uint8

// The values that the server owns.
const (
	SlotVersion SlotValue = iota + 1
	SlotCreatedBy
	SlotCreatedOn
	SlotLastModifiedBy
	SlotLastModifiedOn
	// SlotRecords is the list of records.
	SlotRecords
	// SlotRecordsMember is the whole member with the list of records. It is left
	// out while the ExecutionBlock has no list.
	SlotRecordsMember
)

// edit replaces text[start:end] by a literal, followed by a slot if there is
// one. Edits at the same place keep their order.
type edit struct {
	start, end int
	literal    string
	slot       SlotValue
}

// Body returns the document as it is stored under id.
func (d *Document) Body(id string) Body {
	var room [12]edit
	edits := d.identifierEdits(room[:0], id)
	if d.Kind == ExecutionBlock {
		edits = d.recordsEdits(edits)
	}
	edits = d.metadataEdits(edits)
	slices.SortStableFunc(edits, func(a, b edit) int { return a.start - b.start })

	// A document that is the whole body keeps the white space around it.
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

// ErrSlots says that the slots of a stored document are damaged.
var ErrSlots = errors.New("the slots of a stored document are damaged")

// Check returns an error if the body of a version is not the one that was stored: its text
// has another digest, or its slots do not make a document.
func (b Body) Check(ref Ref, version int64) error {
	switch {
	case DigestOf(b.Text) != b.Digest:
		return Damaged(ref, version, 0)
	case !b.Fits(ref.Kind):
		return Damaged(ref, version, 0).Because(ErrSlots)
	}
	return nil
}

// Fits reports whether the slots can be those of a document of that kind: each
// value that the server owns has one slot, where JSON takes a value.
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
	if seen&all == 0 { // a document without metadata has no such slots
		return !bytes.Contains(b.Text, []byte(`"metadata"`))
	}
	if kind == ExecutionBlock {
		return seen == all|1<<SlotRecords || seen == all|1<<SlotRecordsMember
	}
	return seen == all
}

// white is the white space of JSON.
const white = " \t\r\n"

// identifierEdits replaces the identifier in the document, or inserts it as the
// first member.
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
	if d.endOfMembers(d.root) != start {
		literal += ","
	}
	return append(edits, edit{start, start, literal, 0})
}

// recordsEdits takes the list of records out of the text.
func (d *Document) recordsEdits(edits []edit) []edit {
	if i := d.child(d.root, RecordsField); i >= 0 {
		return append(edits, edit{d.nodes[i].Start, d.nodes[i].End, "", SlotRecords})
	}
	end := d.endOfMembers(d.root)
	if d.Listed {
		return append(edits, edit{end, end, `,"` + RecordsField + `":`, SlotRecords})
	}
	return append(edits, edit{end, end, "", SlotRecordsMember})
}

// metadataEdits takes the managed fields out of the text, and adds those that
// are missing at the end of the metadata.
func (d *Document) metadataEdits(edits []edit) []edit {
	i := d.child(d.root, "metadata")
	if i >= 0 && d.nodes[i].Kind == rawjson.Object {
		end := d.endOfMembers(i)
		empty := end == d.nodes[i].Start+1
		for n, m := range managed {
			if j := d.child(i, m.name); j >= 0 {
				edits = append(edits, edit{d.nodes[j].Start, d.nodes[j].End, "", m.slot})
				continue
			}
			edits = append(edits, edit{end, end, member(n, empty), m.slot})
			empty = false
		}
		return edits
	}
	start, end, open := d.endOfMembers(d.root), d.endOfMembers(d.root), `,"metadata":{`
	if i >= 0 { // null: the object takes its place
		start, end, open = d.nodes[i].Start, d.nodes[i].End, "{"
	}
	// All edits have the same start, so that no other edit comes between them.
	edits = append(edits, edit{start, start, open, 0})
	for n, m := range managed {
		edits = append(edits, edit{start, start, member(n, n == 0), m.slot})
	}
	return append(edits, edit{start, end, "}", 0})
}

// members has the beginning of each managed field in an object that has others before it.
var members = func() (all [len(managed)]string) {
	for i, m := range managed {
		all[i] = `,"` + m.name + `":`
	}
	return all
}()

// member returns the beginning of a managed field, with a comma unless it is the first.
func member(i int, isFirst bool) string {
	if isFirst {
		return members[i][1:]
	}
	return members[i]
}

// endOfMembers returns the offset after the last member of an object, where one
// more can be added. White space before the closing brace follows it.
func (d *Document) endOfMembers(i int) int {
	return len(bytes.TrimRight(d.text[:d.nodes[i].End-1], white))
}

// WriteTo renders the document: the text with the server's values spliced in.
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
				buf = append(buf, `,"`+RecordsField+`":`...)
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

// WithoutRecords renders the document without its records.
func (b Body) WithoutRecords(m Metadata) ([]byte, error) {
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
		dst = append(dst, member(i, i == 0)...)
		dst = appendValue(dst, f.slot, m)
	}
	return append(dst, '}')
}

// Restated returns the document with other metadata, and otherwise as it was sent.
func (d *Document) Restated(id string, m Metadata) ([]byte, error) {
	var records Texts
	if d.Listed {
		records = TextsOf(d.Records)
	}
	var b bytes.Buffer
	err := d.Body(id).WriteTo(&b, m, records)
	return b.Bytes(), err
}
