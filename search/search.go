package search

import (
	"oda"
	"oda/sky"
)

// Search asks for entities of one kind by any combination of filters. A filter
// that is not used has its zero value. A search without filters finds everything.
type Search struct {
	Kind oda.Kind

	Words             string // each must occur, the last as the beginning of a word
	User              string
	Match             oda.MatchType
	Created, Modified oda.Span
	Telescope         string
	Status            string
	Class             oda.Class
	Unobserved        bool   // only SBDefinitions of which no run is done
	Reference         string // an identifier that the entity refers to
	ReferenceVersion  int64  // 0: any version, or no version
	Cone              *sky.Cone
	Where             []string // conditions: POINTER OP VALUE

	// Only for notes.
	About     string       // an identifier that the note is about
	From, To  *oda.Instant // the note is about a part of this half-open range
	Level     oda.Level
	Tag       string
	Withdrawn bool // withdrawn notes as well

	Sort   oda.Sort
	Limit  int // of a page; 0 in a request: the archive decides
	Fields Fields
	Start  *oda.Place // after which the page begins
}

// Fields says what a search returns of each entity.
type Fields uint8

// What a search returns.
const (
	Summaries Fields = iota
	Identifiers
	Documents
)

var fieldNames = [...]string{Summaries: "summary", Identifiers: "id", Documents: "document"}

// String returns the name on the wire.
func (f Fields) String() string { return fieldNames[f] }

// Bounds of a page.
const (
	MaxLimit     = 1000
	DefaultLimit = 50
)
