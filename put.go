package oda

import (
	"fmt"
	"strings"
)

// Put is one entity to be stored: as a new entity if its identifier is new, else
// as the next version, provided that the stored metadata is the expected one.
type Put struct {
	Ref
	Body      Body
	Expected  Received  // the metadata that the caller read
	Compare   Fields    // the fields of it that must match
	Condition Condition // what else the stored state must meet
	Creator   string    // the user of a first store
	Modifier  string    // the user of an update
	At        Instant
	Pointer   string  // leads to the document in the request
	Extract   Extract // for the summary of the new version

	// Telescopes are those for which the caller may write, nil if any.
	Telescopes *Telescopes

	// Own says that the caller may only change what the caller has created.
	Own bool

	// The records of the new version of an ExecutionBlock: those in Records if
	// Listed, those of the previous version if KeepRecords, else none.
	Records     [][]byte
	Listed      bool
	KeepRecords bool
}

// Extract is what was noted of a document, so that its summary can be made. Most
// updates do not need the summary, because the hash shows that it has not changed.
type Extract interface {
	// Hash returns a hash of the summary. Documents of one kind with the same hash
	// have the same summary.
	Hash() int64

	// Entry returns what the catalogue has about the document of an entity.
	Entry(ref Ref) *CatalogueEntry

	// Telescope returns the telescope that the document names, empty if it names
	// none. It may be one that the summary leaves out, because nobody could look for
	// it.
	Telescope() string
}

// First returns the new metadata if the identifier is new.
func (p *Put) First() Metadata { return first(p.Creator, p.At) }

// Next returns the new metadata if the stored state is the expected one.
func (p *Put) Next(stored Metadata) Metadata { return stored.next(p.Modifier, p.At) }

// MaxListed is how many entities a problem lists.
const MaxListed = 100

// Listed returns a note for a problem that cannot list all n entities.
func Listed(n int) string {
	if n <= MaxListed {
		return ""
	}
	return fmt.Sprintf("; the first %d are listed", MaxListed)
}

// Judge is the rule of the compare-and-set. It returns the new metadata of each
// entity, given the stored one, which is nil if the identifier is new. If any
// entity does not match, none may be written; the error says how many do not
// match and lists the first of them.
func Judge(puts []Put, stored []*Metadata) ([]Metadata, error) {
	next := make([]Metadata, len(puts))
	var faults []Fault
	refused := 0
	for i := range puts {
		p := &puts[i]
		if p.Own && stored[i] != nil && stored[i].CreatedBy != p.Modifier {
			return nil, notOwn(p.Ref, "change", p.Pointer)
		}
		if err := p.Condition.Check(p.Ref, stored[i]); err != nil {
			return nil, err
		}
		if stored[i] == nil {
			next[i] = p.First()
			continue
		}
		if f := p.Expected.faults(*stored[i], p.Compare, p.Pointer); f != nil {
			if refused++; refused <= MaxListed {
				faults = append(faults, f...)
			}
			continue
		}
		next[i] = p.Next(*stored[i])
	}
	switch {
	case refused == 0:
		return next, nil
	case len(puts) == 1:
		return nil, &Error{Code: MetadataMismatch, Faults: faults, Detail: fmt.Sprintf(
			"The metadata sent does not match the current version of %s %s: %s. Nothing was stored. "+
				"Read the entity, apply your change again, and store it with the metadata as read.",
			puts[0].Kind, puts[0].ID, describe(faults))}
	default:
		return nil, &Error{Code: MetadataMismatch, Faults: faults, Detail: fmt.Sprintf(
			"The metadata of %d of %d entities does not match their current version%s. Nothing was stored. "+
				"Read these entities, apply your changes again, and store all with the metadata as read.",
			refused, len(puts), Listed(refused))}
	}
}

// describe writes faults as part of a sentence.
func describe(faults []Fault) string {
	words := make([]string, len(faults))
	for i, f := range faults {
		words[i] = f.Pointer[strings.LastIndexByte(f.Pointer, '/')+1:] + " " + f.Detail
	}
	return strings.Join(words, "; ")
}

// AdmitNew returns an error if the caller may not write the new document, whatever
// is stored. A document without a telescope may be of a kind that needs none, or a new block.
func (p *Put) AdmitNew() error {
	if p.Telescopes == nil {
		return nil
	}
	telescope := p.Extract.Telescope()
	if telescope == "" && (p.Kind.rules().anywhere || p.Kind == ExecutionBlock) || telescope != "" && p.Telescopes.has(telescope) {
		return nil
	}
	e := p.Telescopes.refuse("the new document", telescope)
	e.Faults = []Fault{{p.Pointer + "/telescope", "is not a telescope of the caller's role"}}
	return e
}

// Admit returns an error if the caller may not write over a stored document with
// that telescope, which is empty if it has none. The engine asks within the
// compare-and-set. The new document has been judged already, except that a block
// without a telescope must be new.
func (p *Put) Admit(stored string) error {
	switch {
	case p.Telescopes == nil:
		return nil
	case stored != "" && !p.Telescopes.has(stored), stored == "" && !p.Kind.rules().anywhere:
		e := p.Telescopes.refuse(fmt.Sprintf("the stored %s %s", p.Kind, p.ID), stored)
		if p.Pointer != "" {
			e.Faults = []Fault{{p.Pointer, "is stored with a telescope that is not one of the caller's role"}}
		}
		return e
	case !p.mayLackTelescope():
		return p.Telescopes.refuse("the new document", "")
	}
	return nil
}

// MayUpdate reports whether the caller may write the new document over the stored one that
// it expects. A bound role may open a block without a telescope, but not make one of a
// stored block. Judge says what is wrong if somebody else has created the stored one.
func (p *Put) MayUpdate() bool {
	if p.Own && p.Expected.CreatedBy != p.Modifier {
		return false
	}
	return p.mayLackTelescope()
}

func (p *Put) mayLackTelescope() bool {
	return p.Telescopes == nil || p.Kind != ExecutionBlock || p.Extract.Telescope() != ""
}

// notOwn returns the error for an entity that only its creator may write to, with the
// caller's role. What is what the caller would do.
func notOwn(ref Ref, what, pointer string) *Error {
	e := Errorf(Forbidden, "With the role recorder, only who has created the %s %s may %s it. Nothing was stored. "+
		"Ask its creator, or the operator for the role editor.", ref.Kind, ref.ID, what)
	if pointer != "" {
		e.Faults = []Fault{{pointer, "was created by somebody else"}}
	}
	return e
}
