package oda

import (
	"bytes"
	"slices"

	"oda/internal/rawjson"
)

// Document is one entity as received. Its form has been checked against the API
// description, and the values that the server owns have been located. Its text
// never changes.
type Document struct {
	Kind     Kind
	ID       string   // empty if the document has none, or null
	Metadata Received // as the caller sent it
	Records  [][]byte // of an ExecutionBlock, each as sent
	Listed   bool     // the ExecutionBlock has a list of records, even if empty
	Pointer  string   // leads to the document in the body of the request

	text  []byte
	nodes []rawjson.Node
	notes rawjson.Notes
	root  int
}

// NewDocument reads the values that matter to the archive from a body that was
// scanned with what package summary watches. The node at root is the document; the index has its
// declared members. Pointer leads to the document in the body.
func NewDocument(kind Kind, text []byte, index rawjson.Index, root int, pointer string) *Document {
	nodes := index.Nodes
	d := &Document{Kind: kind, Pointer: pointer, text: text, nodes: nodes, notes: index.Notes, root: root}
	if i := d.child(root, kind.IDField()); i >= 0 && nodes[i].Kind == rawjson.String {
		d.ID = d.str(i)
	}
	if i := d.child(root, "metadata"); i >= 0 {
		d.Metadata = d.received(i)
	}
	if kind != ExecutionBlock {
		return d
	}
	if i := d.child(root, RecordsField); i >= 0 && nodes[i].Kind == rawjson.Array {
		d.Listed = true
		for j := i + 1; j < nodes[i].Next; j = nodes[j].Next {
			d.Records = append(d.Records, text[nodes[j].Start:nodes[j].End])
		}
	}
	return d
}

// Noted returns what the scan noted of the document, and where the document is in the
// text.
func (d *Document) Noted() (text []byte, notes rawjson.Notes, start, end int) {
	at := d.nodes[d.root]
	return d.text, d.notes, at.Start, at.End
}

func (d *Document) child(i int, name string) int { return rawjson.Child(d.nodes, i, name) }

func (d *Document) value(i int) []byte { return d.text[d.nodes[i].Start:d.nodes[i].End] }

func (d *Document) str(i int) string { return rawjson.Unquote(d.value(i)) }

// received reads the managed fields. Their form has been checked; a field that
// still does not parse counts as missing.
func (d *Document) received(metadata int) Received {
	var r Received
	for _, m := range managed {
		i := d.child(metadata, m.name)
		if i < 0 || d.nodes[i].Kind == rawjson.Null {
			continue
		}
		var err error
		switch m.field {
		case FieldVersion:
			r.Version = integer(d.value(i))
		case FieldCreatedBy:
			r.CreatedBy = d.str(i)
		case FieldCreatedOn:
			r.CreatedOn, err = ParseTime(d.str(i))
		case FieldLastModifiedBy:
			r.LastModifiedBy = d.str(i)
		case FieldLastModifiedOn:
			r.LastModifiedOn, err = ParseTime(d.str(i))
		}
		if err == nil {
			r.Has |= m.field
		}
	}
	return r
}

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

// endOfMembers returns the offset after the last member of an object, where one
// more can be added. White space before the closing brace follows it.
func (d *Document) endOfMembers(i int) int {
	return len(bytes.TrimRight(d.text[:d.nodes[i].End-1], white))
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
