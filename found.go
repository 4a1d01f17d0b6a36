package oda

import (
	"context"
	"slices"
	"strconv"

	"oda/internal/rawjson"
)

// Summary is what search, lists and provenance know about the content of a
// document. The bounds below limit its size.
type Summary struct {
	Telescope  string // empty: none
	Name       string // empty: none
	Status     string // that the document has; empty: none
	Targets    []Target
	References []Reference
	Words      []string // folded, sorted, each once; without those of the identifier
	Blocks     []string // the obs_block_ids of a Project; an ob_ref may name it by one
	Remark     *Remark  // of a note; nil for other kinds
}

// Size returns roughly how many bytes of memory the summary takes.
func (s *Summary) Size() int {
	n := len(s.Telescope) + len(s.Name) + len(s.Status)
	for _, word := range s.Words {
		n += 16 + len(word)
	}
	for i := range s.Targets {
		n += 32 + len(s.Targets[i].Name)
	}
	for i := range s.References {
		n += 48 + len(s.References[i].ID) + len(s.References[i].Field)
	}
	for _, block := range s.Blocks {
		n += 16 + len(block)
	}
	if s.Remark != nil {
		n += 128 + len(s.Remark.Text)
		for _, tag := range s.Remark.Tags {
			n += 16 + len(tag)
		}
	}
	return n
}

// Full reports whether the document may have more references or blocks than the
// summary, which is then at its bounds.
func (s *Summary) Full() bool {
	references, blocks := 0, 0
	for i := range s.References {
		references += len(s.References[i].ID)
	}
	for _, block := range s.Blocks {
		blocks += len(block)
	}
	return len(s.References) == MaxReferences || references+MaxName > MaxReferenceBytes ||
		len(s.Blocks) == MaxBlocks || blocks+MaxName > MaxBlockBytes
}

// Target is a position on the sky that a document gives, in degrees, ICRS.
type Target struct {
	Name    string // empty: none
	RA, Dec float64
}

// Reference is a field of a document that names another entity, which need not
// be stored. A reference names a Project by its identifier or by one of its
// blocks.
type Reference struct {
	Kind    Kind
	ID      string // as written
	Version int64  // 0: none is named
	Field   string // as in the document, such as sbd_ref or obs_blocks/0/sbd_ids/1
}

// Found is an entity as search and provenance see it: its current version.
type Found struct {
	Ref
	Metadata Metadata
	Summary  Summary
	Standing Standing
	Damage   error // why the summary, or the body beside it, cannot be read
}

// lookAtOnce is how many blocks are looked up at a time.
const lookAtOnce = 1000

// LookBlocks looks up ExecutionBlocks, and leaves out those that are not stored. It fails
// if one is damaged: then nobody knows its telescope.
func LookBlocks(ctx context.Context, from Finder, ids []string) ([]*Found, error) {
	var blocks []*Found
	for some := range slices.Chunk(ids, lookAtOnce) {
		refs := make([]Ref, len(some))
		for i, id := range some {
			refs[i] = Ref{Kind: ExecutionBlock, ID: id}
		}
		found, err := from.Look(ctx, refs)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			switch {
			case f == nil:
			case f.Damage != nil:
				return nil, f.Damage
			default:
				blocks = append(blocks, f)
			}
		}
	}
	return blocks, nil
}

// Bounds of a summary. The document is stored and returned in full, but search
// does not know what exceeds these bounds.
const (
	MaxTargets        = 1_000
	MaxReferences     = 10_000
	MaxReferenceBytes = 256 << 10
	MaxWords          = 10_000
	MaxWordBytes      = 128 << 10
	MaxBlocks         = 1_000
	MaxBlockBytes     = 64 << 10
)

// MarshalJSON writes the reference with the collection as its kind, and null for
// a version that it does not name.
func (r Reference) MarshalJSON() ([]byte, error) {
	text := append(append([]byte(`{"kind":"`), r.Kind.Collection()...), `","id":`...)
	text = append(rawjson.AppendQuoted(text, r.ID), `,"version":`...)
	if r.Version == 0 {
		text = append(text, "null"...)
	} else {
		text = strconv.AppendInt(text, r.Version, 10)
	}
	text = rawjson.AppendQuoted(append(text, `,"field":`...), r.Field)
	return append(text, '}'), nil
}

// CatalogueEntry is what the catalogue has about a version, as engines store it.
type CatalogueEntry struct {
	Hash      int64
	Telescope string // empty: none
	Status    string // empty: none
	Summary   []byte // packed
	Terms     string // with a space before and after each
}
