package oda

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Telescopes are those for which a caller may write, if the caller's role is bound
// to telescopes. Nil means that it is not. They must not be changed.
type Telescopes struct {
	role  string
	names []string // sorted, each once
}

// NewTelescopes returns the telescopes for which a caller has a role.
func NewTelescopes(role string, names []string) *Telescopes {
	names = append([]string{}, names...)
	slices.Sort(names)
	return &Telescopes{role, slices.Compact(names)}
}

// Names returns the names of the telescopes, sorted.
func (t *Telescopes) Names() []string { return t.names }

// has reports whether a caller may write for a telescope.
func (t *Telescopes) has(name string) bool {
	_, found := slices.BinarySearch(t.names, name)
	return found
}

// refuse returns the error for a document that the caller may not write. What names
// the document; its telescope is empty if it has none.
func (t *Telescopes) refuse(what, telescope string) *Error {
	where := "has no telescope"
	if telescope != "" {
		where = "is of the telescope " + Clip(telescope)
	}
	return Errorf(Forbidden, "This needs the role %s for the telescope of the document. The caller has it for %s, and %s %s. "+
		"Nothing was stored. Ask the operator for the role.", t.role, strings.Join(t.names, ", "), what, where)
}

// admitNew returns an error if the caller may not write the new document, whatever
// is stored. A document without a telescope may be a Project or a new block.
func (p *Put) admitNew() error {
	if p.Telescopes == nil {
		return nil
	}
	telescope := p.Extract.Telescope()
	if telescope == "" && (p.Kind == Project || p.Kind == ExecutionBlock) || telescope != "" && p.Telescopes.has(telescope) {
		return nil
	}
	e := p.Telescopes.refuse("the new document", telescope)
	e.Faults = []Fault{{p.Pointer + "/telescope", "is not a telescope of the caller's role"}}
	return e
}

// ValidTelescope reports whether the name of a telescope is one that documents are
// found by, and that a role can be bound to.
func ValidTelescope(name string) bool { return utf8.ValidString(name) && isPlainText(name) }

// Admit returns an error if the caller may not write over a stored document with
// that telescope, which is empty if it has none. The engine asks within the
// compare-and-set. The new document has been judged already, except that a block
// without a telescope must be new.
func (p *Put) Admit(stored string) error {
	switch {
	case p.Telescopes == nil:
		return nil
	case stored != "" && !p.Telescopes.has(stored), stored == "" && p.Kind != Project:
		e := p.Telescopes.refuse(fmt.Sprintf("the stored %s %s", p.Kind, p.ID), stored)
		if p.Pointer != "" {
			e.Faults = []Fault{{p.Pointer, "is stored with a telescope that is not one of the caller's role"}}
		}
		return e
	case !p.MayUpdate():
		return p.Telescopes.refuse("the new document", "")
	}
	return nil
}

// MayUpdate reports whether the caller may write the new document over a stored one
// at all. A bound role may open a block without a telescope, but not make one of a
// stored block.
func (p *Put) MayUpdate() bool {
	return p.Telescopes == nil || p.Kind != ExecutionBlock || p.Extract.Telescope() != ""
}

// Admit returns an error if the caller may not record into a block with that
// telescope. Everyone who may record may do it into a block that has none. The
// engine asks within the transaction that adds the records.
func (a *Append) Admit(stored string) error {
	if a.Telescopes == nil || stored == "" || a.Telescopes.has(stored) {
		return nil
	}
	return a.Telescopes.refuse("the block "+a.Block, stored)
}
