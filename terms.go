package oda

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"oda/internal/words"
	"oda/sky"
)

// The classes of terms. Search narrows down what it reads with an inverted index
// from terms to entities, which is the same in both engines. It judges what the
// index returns, so the index may return too much, but never too little.
//
// A term is the number of the entity's kind, the letter of its class, and a
// value that has only letters, digits and the characters . _ - @. The index need
// not tell upper from lower case.
const (
	wordTerm      = 'w' // a word of its names or of its identifier
	referenceTerm = 'r' // an identifier that it refers to
	versionTerm   = 'v' // the same with a version: sbd-1@3
	blockTerm     = 'o' // an obs_block_id of a Project
	cellTerm      = 'c' // a cell of the sky in which it has a target
	telescopeTerm = 't'
)

// Clause is a part of a question to the index: the entity must have one of the
// terms, or, if Prefix is set, a term that begins with one of them.
type Clause struct {
	Any    []string
	Prefix bool
}

// Cased reports whether the terms are identifiers, which may differ only in case.
func (c Clause) Cased() bool {
	return len(c.Any) > 0 && (c.Any[0][1] == referenceTerm || c.Any[0][1] == versionTerm || c.Any[0][1] == blockTerm)
}

// Question asks the index for entities of a kind that satisfy all clauses.
type Question struct {
	Kind    Kind
	Clauses []Clause
	Sort    Sort // whose places are wanted
	Most    int  // of the places
}

// Empty reports whether no entity can satisfy the question.
func (q Question) Empty() bool {
	return slices.ContainsFunc(q.Clauses, func(c Clause) bool { return len(c.Any) == 0 })
}

// term returns a term. The value must have no other characters than a term may.
func term(kind Kind, class byte, value string) string {
	return string([]byte{'0' + byte(kind), class}) + value
}

// plain returns the value of a term for any text: the text itself if it can be an
// identifier, else a hash of it.
func plain(text string) string {
	if ValidID(text) {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// atVersion returns the value of a term for an identifier with a version.
func atVersion(id string, version int64) string {
	return plain(id) + "@" + strconv.FormatInt(version, 10)
}

// Terms returns the terms of an entity, sorted, each once.
func (s *Summary) Terms(ref Ref) []string {
	terms := strings.Fields(s.TermList(ref))
	slices.Sort(terms)
	return slices.Compact(terms)
}

// TermList returns the terms of an entity, with a space before and after each. Some may
// occur twice.
func (s *Summary) TermList(ref Ref) string {
	list := append(make([]byte, 0, 512), ' ')
	add := func(class byte, value string) {
		list = append(append(list, '0'+byte(ref.Kind), class), value...)
		list = append(list, ' ')
	}
	words.Each(ref.ID, func(word string) { add(wordTerm, word) })
	for _, word := range s.Words {
		add(wordTerm, word)
	}
	for _, r := range s.References {
		add(referenceTerm, plain(r.ID))
		if r.Version > 0 {
			add(versionTerm, atVersion(r.ID, r.Version))
		}
	}
	for _, block := range s.Blocks {
		add(blockTerm, plain(block))
	}
	for _, t := range s.Targets {
		for _, cell := range sky.CellsAt(t.RA, t.Dec) {
			add(cellTerm, string(cell[:]))
		}
	}
	if s.Telescope != "" {
		add(telescopeTerm, plain(s.Telescope))
	}
	return string(list)
}
