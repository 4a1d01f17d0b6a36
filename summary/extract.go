package summary

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"oda"
	"oda/internal/rawjson"
)

// Extract holds what the scan of a document noted for its summary. The summary
// itself is made only when it is needed. It implements oda.Extract.
type Extract struct {
	kind oda.Kind
	text []byte
	rawjson.Notes
	root int32 // the container of the document; -1 if nothing was noted
	note *note // nil for other kinds
	hash int64
}

// OfDocument returns what the scan noted for the summary of a document.
func OfDocument(d *oda.Document) *Extract {
	text, notes, start, end := d.Noted()
	return newExtract(d.Kind, text, notes, start, end)
}

// OfBody returns the extract of a stored document. It has the same hash as
// the extract that was made when the document was stored.
func OfBody(kind oda.Kind, body oda.Body) (*Extract, error) {
	var b bytes.Buffer
	b.Grow(len(body.Text) + 256)
	// No summary depends on the server's values or on the records.
	if err := body.WriteTo(&b, oda.Metadata{}, nil); err != nil {
		return nil, err
	}
	return extractOf(kind, b.Bytes())
}

func extractOf(kind oda.Kind, text []byte) (*Extract, error) {
	scan := rawjson.NewScanner(text, oda.MaxStoredDepth)
	scan.Watch(Watched)
	start, end, err := scan.Skip()
	if err != nil {
		return nil, fmt.Errorf("scan a stored document: %w", err)
	}
	return newExtract(kind, text, scan.Notes(), start, end), nil
}

// OfEntity returns the summary of a version.
func OfEntity(e *oda.Entity) (*oda.Summary, error) {
	text, err := e.WithoutRecords()
	if err != nil {
		return nil, err
	}
	x, err := extractOf(e.Kind, text)
	if err != nil {
		return nil, err
	}
	return x.Summary(), nil
}

// Prepare checks an entry of the log by itself, and works out what search knows of a
// version. An error says what is wrong with it. It is called once, before the entry is
// loaded, and may be called for many entries at a time.
func Prepare(e *oda.LogEntry) error {
	document, err := e.Checked()
	if err != nil || !e.Stored() {
		return err
	}
	x, err := extractOf(e.Kind, document)
	if err != nil {
		return errors.New("its document is not valid JSON")
	}
	e.Entry = x.Entry(e.Ref)
	return nil
}

// newExtract returns the extract of the document text[start:end].
func newExtract(kind oda.Kind, text []byte, notes rawjson.Notes, start, end int) *Extract {
	x := &Extract{kind: kind, text: text, Notes: notes, root: -1}
	before := func(n rawjson.Note, at int) int { return cmp.Compare(int(n.Start), at) }
	first, _ := slices.BinarySearchFunc(notes.Notes, start, before)
	last, _ := slices.BinarySearchFunc(notes.Notes, end, before)
	if x.Notes.Notes = notes.Notes[first:last]; first < last {
		x.root = notes.Notes[first].In
		for int(x.Containers[x.root].Start) != start {
			x.root = x.Containers[x.root].In
		}
		// The containers of a document are adjacent, its own first.
		x.Containers = x.Containers[:x.lastContainer()+1]
	}
	if kind == oda.Note {
		x.note = readNote(text[start:end])
	}
	x.hash = x.digest()
	return x
}

func (x *Extract) lastContainer() int32 {
	last := x.root
	for _, n := range x.Notes.Notes {
		last = max(last, n.In)
	}
	return last
}

// Hash returns a hash of the summary. Documents of one kind with the same hash
// have the same summary.
func (x *Extract) Hash() int64 { return x.hash }

// Telescope returns the telescope that the document names, empty if it names none. It
// may be one that the summary leaves out, because nobody could look for it.
func (x *Extract) Telescope() string {
	for i := range x.Notes.Notes {
		if n := &x.Notes.Notes[i]; n.Of == ofTelescope && n.Kind == rawjson.String && x.counts(n) {
			return rawjson.Unquote(x.text[n.Start:n.End])
		}
	}
	return ""
}

// Summary makes the summary. It may be far larger than the document, so the
// extract does not keep it.
func (x *Extract) Summary() *oda.Summary {
	s := x.summarize()
	return &s
}

// Entry returns what the catalogue has about the document of an entity.
func (x *Extract) Entry(ref oda.Ref) *oda.CatalogueEntry {
	s := x.Summary()
	return &oda.CatalogueEntry{Hash: x.Hash(), Telescope: s.Telescope, Status: s.Status, Summary: s.Pack(), Terms: s.TermList(ref)}
}

// digest hashes every value that the summary is made of, as it is written, and
// its place in the document. Programmes are told from blocks.
func (x *Extract) digest() int64 {
	var room [4 << 10]byte
	all := room[:0]
	for i := range x.Notes.Notes {
		n := &x.Notes.Notes[i]
		if !x.counts(n) {
			continue
		}
		all = append(all, byte(n.Of))
		all = binary.AppendVarint(all, int64(n.In-x.root))
		all = binary.AppendVarint(all, int64(n.Index))
		all = append(all, x.text[n.Start:n.End]...)
		all = append(all, 0) // occurs in no value
	}
	if x.root >= 0 {
		for _, p := range x.Containers[x.root+1:] {
			all = binary.AppendVarint(all, int64(p.In-x.root))
			all = binary.AppendVarint(all, int64(p.Index))
			if p.Of == ofObsProgrammes {
				all = append(all, byte(p.Of))
			}
		}
	}
	if x.note != nil {
		all = x.note.append(all)
	}
	sum := sha256.Sum256(all)
	return int64(binary.BigEndian.Uint64(sum[:]))
}

// counts reports whether a note matters at its place in a document of this kind.
func (x *Extract) counts(n *rawjson.Note) bool {
	atTop := n.In == x.root && n.Index < 0
	switch n.Of {
	case ofTelescope, ofStatus:
		return atTop
	case ofSBDRef, ofSBDID, ofSBDVersion:
		return atTop && (x.kind == oda.SBInstance || x.kind == oda.ExecutionBlock)
	case ofEBRef:
		return atTop && x.kind == oda.SBInstance
	case ofSBIRef:
		return atTop && x.kind == oda.ExecutionBlock
	case ofPRJRef, ofOBRef:
		return atTop && x.kind == oda.SBDefinition
	case ofSBDIDs:
		return x.kind == oda.Project && x.group(n) != nil
	case ofObsBlockID:
		return x.kind == oda.Project && n.Index < 0
	case ofObsBlocks, ofObsProgrammes:
		return false
	}
	return true
}

// group returns the object whose list of SBDefinitions the note is in: one of the
// obs_blocks or obs_programmes of a Project. It returns nil for any other note.
func (x *Extract) group(n *rawjson.Note) *rawjson.Container {
	list := &x.Containers[n.In]
	if n.Index < 0 || list.Index >= 0 || list.In < 0 {
		return nil
	}
	object := &x.Containers[list.In]
	if object.Index < 0 || object.In < 0 {
		return nil
	}
	groups := &x.Containers[object.In]
	if groups.In != x.root || groups.Of != ofObsBlocks && groups.Of != ofObsProgrammes {
		return nil
	}
	return object
}
