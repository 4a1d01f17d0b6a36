package oda

import (
	"cmp"
	"strconv"

	"oda/internal/words"
	"oda/sky"
)

// Search asks for entities of one kind by any combination of filters. A filter
// that is not used has its zero value. A search without filters finds everything.
type Search struct {
	Kind Kind

	User              string
	Match             MatchType
	Created, Modified Span
	Telescope         string
	Reference         string // an identifier that the entity refers to
	ReferenceVersion  int64  // 0: any version, or no version
	Words             []string
	Cone              *sky.Cone
	Where             []Where

	Sort   Sort
	Limit  int
	Fields ItemFields
	Start  *Place // after which the page begins
}

// Span is a range of instants, both ends included; nil is no bound.
type Span struct {
	After  *Instant `json:"a,omitempty"`
	Before *Instant `json:"b,omitempty"`
}

// Sort is the order of what a search finds. Entities of the same instant are
// ordered by their identifiers, in the same direction.
type Sort uint8

// The orders.
const (
	NewestFirst Sort = iota // by creation
	OldestFirst
	LastModifiedFirst
	LastModifiedLast
	ByIdentifier
	ByIdentifierReversed
)

var sortNames = [...]string{
	NewestFirst: "-created", OldestFirst: "created", LastModifiedFirst: "-modified", LastModifiedLast: "modified",
	ByIdentifier: "id", ByIdentifierReversed: "-id",
}

// String returns the name of the order on the wire.
func (s Sort) String() string { return sortNames[s] }

// Descends reports whether the latest instant, or the last identifier, comes
// first.
func (s Sort) Descends() bool {
	return s == NewestFirst || s == LastModifiedFirst || s == ByIdentifierReversed
}

func (s Sort) byCreation() bool     { return s == NewestFirst || s == OldestFirst }
func (s Sort) byModification() bool { return s == LastModifiedFirst || s == LastModifiedLast }

// place returns the place of an entity in the order.
func (s Sort) place(id string, m Metadata) Place {
	switch {
	case s.byCreation():
		return Place{m.CreatedOn, id}
	case s.byModification():
		return Place{m.LastModifiedOn, id}
	}
	return Place{ID: id}
}

// Compare orders two entities.
func (s Sort) Compare(a, b *Found) int {
	return s.compare(s.place(a.ID, a.Metadata), s.place(b.ID, b.Metadata))
}

// compare orders two places.
func (s Sort) compare(a, b Place) int {
	if s.Descends() {
		a, b = b, a
	}
	return a.Compare(b)
}

// ItemFields says what a search returns of each entity.
type ItemFields uint8

// What a search returns.
const (
	SummaryFields ItemFields = iota
	IdentifierOnly
	WholeDocument
)

var fieldNames = [...]string{SummaryFields: "summary", IdentifierOnly: "id", WholeDocument: "document"}

// String returns the name on the wire.
func (f ItemFields) String() string { return fieldNames[f] }

// Bounds of a search.
const (
	MaxSearchLimit     = 1000
	DefaultSearchLimit = 50
)

// filters lists the parameters that must be those of the cursor. The others say
// how the answer should look, and may change from page to page.
var filters = [...]string{
	"user", "user_match_type", "created_after", "created_before", "last_modified_after", "last_modified_before",
	"telescope", "ref", "ref_version", "q", "cone", "where", "sort",
}

// ParseSearch parses the parameters of a search.
func ParseSearch(kind Kind, params map[string][]string) (Search, error) {
	p := Params{Values: params}
	q := Search{Kind: kind}
	p.user(&q)
	q.Created = Span{p.Instant("created_after", true), p.Instant("created_before", false)}
	q.Modified = Span{p.Instant("last_modified_after", true), p.Instant("last_modified_before", false)}
	q.Telescope = p.Text("telescope")
	p.reference(&q)
	p.words(&q)
	p.cone(&q)
	p.where(&q)
	q.Sort = Sort(p.Named("sort", sortNames[:]))
	if text, ok := p.One("cursor"); ok {
		p.searchCursor(&q, text)
	}
	if p.Has("fields") {
		q.Fields = ItemFields(p.Named("fields", fieldNames[:]))
	}
	q.Limit = int(p.Whole("limit", 1, MaxSearchLimit, int64(cmp.Or(q.Limit, DefaultSearchLimit))))
	if err := p.Err("Invalid search"); err != nil {
		return Search{}, err
	}
	return q, nil
}

func (p *Params) user(q *Search) {
	if q.User = p.Text("user"); q.User != "" {
		q.Match = UserEquals
	}
	text, ok := p.One("user_match_type")
	if !ok {
		return
	}
	match, known := matchTypes[text]
	switch {
	case !known:
		p.Fault("user_match_type", "must be equals, starts_with or contains")
	case !p.Has("user"):
		p.Fault("user_match_type", "is given without user; give both, or neither")
	default:
		q.Match = match
	}
}

func (p *Params) reference(q *Search) {
	q.Reference = p.Text("ref")
	text, ok := p.One("ref_version")
	if !ok {
		return
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil || n < 1:
		p.Fault("ref_version", "must be a whole number, 1 or greater")
	case !p.Has("ref"):
		p.Fault("ref_version", "is given without ref; give both, or neither")
	}
	q.ReferenceVersion = n
}

func (p *Params) words(q *Search) {
	text := p.Text("q")
	if text == "" {
		return
	}
	if q.Words = words.Of(text); q.Words == nil {
		p.Fault("q", "has no words; a word has letters and digits only")
	}
}

func (p *Params) cone(q *Search) {
	text, ok := p.One("cone")
	if !ok {
		return
	}
	cone, err := sky.ParseCone(text)
	if err != nil {
		p.Fault("cone", "%v", err)
		return
	}
	q.Cone = &cone
}

func (p *Params) where(q *Search) {
	where, err := parseAllWhere(p.Values["where"])
	if err != nil {
		p.Fault("where", "%v", err)
	}
	q.Where = where
}
