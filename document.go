package oda

import (
	"math"
	"strconv"

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

// RecordsField is the member of an ExecutionBlock that lists its records.
const RecordsField = "request_responses"

// MaxDepth is the deepest nesting that an archive can be told to accept. Documents are
// read recursively, and the stack is limited.
const MaxDepth = 10_000

// NewDocument reads the values that matter to the archive from a body that was
// scanned with Watched. The node at root is the document; the index has its
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

// integer parses a JSON number that is known to be whole: 2, 2.0 or 2e0. It
// returns the largest int64 for a number that is too large; no version has it.
func integer(number []byte) int64 {
	if n, err := strconv.ParseInt(string(number), 10, 64); err == nil {
		return n
	}
	f, err := strconv.ParseFloat(string(number), 64)
	if err != nil || f >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(f)
}
