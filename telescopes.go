package oda

import (
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

// admitAbout returns an error if a caller may not add something to a document of that
// telescope. Everyone may who is bound to any, if the document has none.
func (t *Telescopes) admitAbout(what, stored string) error {
	if t == nil || stored == "" || t.has(stored) {
		return nil
	}
	return t.refuse(what, stored)
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

// ValidTelescope reports whether the name of a telescope is one that documents are
// found by, and that a role can be bound to.
func ValidTelescope(name string) bool { return utf8.ValidString(name) && isPlainText(name) }
