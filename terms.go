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
	wordClass      = 'w' // a word of its names or of its identifier
	referenceClass = 'r' // an identifier that it refers to
	versionClass   = 'v' // the same with a version: sbd-1@3
	blockClass     = 'o' // an obs_block_id of a Project
	cellClass      = 'c' // a cell of the sky in which it has a target
	telescopeClass = 't'
	levelClass     = 'l' // the level of a note
	tagClass       = 'g' // a tag of a note
	dayClass       = 'd' // a day, in UTC, that a note says it is about
)

// Clause is a part of a question to the index: the entity must have one of the
// terms, or, if Prefix is set, a term that begins with one of them.
type Clause struct {
	Any    []string
	Prefix bool
}

// Cased reports whether the terms are identifiers, which may differ only in case.
func (c Clause) Cased() bool {
	return len(c.Any) > 0 && (c.Any[0][1] == referenceClass || c.Any[0][1] == versionClass || c.Any[0][1] == blockClass)
}

// WordTerm returns the term of a word.
func WordTerm(kind Kind, word string) string { return term(kind, wordClass, word) }

// ReferenceTerm returns the term of entities that refer to an identifier.
func ReferenceTerm(kind Kind, id string) string { return term(kind, referenceClass, plain(id)) }

// VersionTerm returns the term of entities that refer to a version of an identifier.
func VersionTerm(kind Kind, id string, version int64) string {
	return term(kind, versionClass, atVersion(id, version))
}

// BlockTerm returns the term of Projects with an obs_block_id.
func BlockTerm(id string) string { return term(Project, blockClass, plain(id)) }

// CellTerm returns the term of entities with a target in a cell of the sky.
func CellTerm(kind Kind, cell string) string { return term(kind, cellClass, cell) }

// TelescopeTerm returns the term of entities of a telescope.
func TelescopeTerm(kind Kind, name string) string { return term(kind, telescopeClass, plain(name)) }

// LevelTerm returns the term of notes of a level.
func LevelTerm(level Level) string { return term(Note, levelClass, string(level)) }

// TagTerm returns the term of notes with a tag.
func TagTerm(tag string) string { return term(Note, tagClass, plain(tag)) }

// maxDays is how many days have terms of their own. A note about more has one term for all,
// and a range of more is not looked up.
const maxDays = 32

// manyDays is the value of the term of notes about many days, or about a time that begins
// when the note was created.
const manyDays = "many"

// DayTerms returns the terms of notes that say when they are about and may meet the half-open
// range, nil if there would be too many. Notes that do not say it have no such term: they
// are about when they were created.
func DayTerms(after, before *Instant) []string {
	if after == nil || before == nil || DayOf(*before)-DayOf(*after) >= maxDays {
		return nil
	}
	terms := []string{term(Note, dayClass, manyDays)}
	for day := DayOf(*after); day <= DayOf(*before); day++ {
		terms = append(terms, term(Note, dayClass, strconv.Itoa(int(day))))
	}
	return terms
}

// days calls add for the value of each day term of a remark.
func (r *Remark) days(add func(value string)) {
	if r.From == nil {
		if r.To != nil {
			add(manyDays)
		}
		return
	}
	from, to := r.Interval(0)
	if DayOf(to)-DayOf(from) >= maxDays {
		add(manyDays)
		return
	}
	for day := DayOf(from); day <= DayOf(to); day++ {
		add(strconv.Itoa(int(day)))
	}
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
	words.Each(ref.ID, func(word string) { add(wordClass, word) })
	for _, word := range s.Words {
		add(wordClass, word)
	}
	for _, r := range s.References {
		add(referenceClass, plain(r.ID))
		if r.Version > 0 {
			add(versionClass, atVersion(r.ID, r.Version))
		}
	}
	for _, block := range s.Blocks {
		add(blockClass, plain(block))
	}
	for _, t := range s.Targets {
		for _, cell := range sky.CellsAt(t.RA, t.Dec) {
			add(cellClass, string(cell[:]))
		}
	}
	if s.Telescope != "" {
		add(telescopeClass, plain(s.Telescope))
	}
	if s.Remark != nil {
		add(levelClass, string(s.Remark.Level))
		for _, tag := range s.Remark.Tags {
			add(tagClass, plain(tag))
		}
		s.Remark.days(func(value string) { add(dayClass, value) })
	}
	return string(list)
}
