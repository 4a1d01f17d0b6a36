package oda

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
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
	Cone              *Cone
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

	maxSearchText = 1024 // bytes of one filter
)

// filters lists the parameters that must be those of the cursor. The others say
// how the answer should look, and may change from page to page.
var filters = [...]string{
	"user", "user_match_type", "created_after", "created_before", "last_modified_after", "last_modified_before",
	"telescope", "ref", "ref_version", "q", "cone", "where", "sort",
}

// ParseSearch parses the parameters of a search.
func ParseSearch(kind Kind, params map[string][]string) (Search, error) {
	p := queryParser{params: params}
	q := Search{Kind: kind}
	p.user(&q)
	q.Created = Span{p.instant("created_after", true), p.instant("created_before", false)}
	q.Modified = Span{p.instant("last_modified_after", true), p.instant("last_modified_before", false)}
	q.Telescope = p.text("telescope")
	p.reference(&q)
	p.words(&q)
	p.cone(&q)
	p.where(&q)
	q.Sort = Sort(p.named("sort", sortNames[:]))
	if text, ok := p.one("cursor"); ok {
		p.searchCursor(&q, text)
	}
	if p.has("fields") {
		q.Fields = ItemFields(p.named("fields", fieldNames[:]))
	}
	q.Limit = int(p.whole("limit", 1, MaxSearchLimit, int64(cmp.Or(q.Limit, DefaultSearchLimit))))
	if err := p.err("Invalid search"); err != nil {
		return Search{}, err
	}
	return q, nil
}

// text returns the value of a filter that is a text.
func (p *queryParser) text(name string) string {
	text, ok := p.one(name)
	switch {
	case !ok:
	case !utf8.ValidString(text):
		p.fault(name, "is not valid UTF-8")
	case len(text) > maxSearchText:
		p.fault(name, "is longer than %d bytes", maxSearchText)
	}
	return text
}

// named returns the index of the name that a parameter has, 0 if it is left out.
func (p *queryParser) named(name string, names []string) int {
	text, ok := p.one(name)
	if !ok {
		return 0
	}
	i := slices.Index(names, text)
	if i < 0 {
		p.fault(name, "must be one of %s", strings.Join(names, ", "))
		return 0
	}
	return i
}

func (p *queryParser) user(q *Search) {
	if q.User = p.text("user"); q.User != "" {
		q.Match = UserEquals
	}
	text, ok := p.one("user_match_type")
	if !ok {
		return
	}
	match, known := matchTypes[text]
	switch {
	case !known:
		p.fault("user_match_type", "must be equals, starts_with or contains")
	case !p.has("user"):
		p.fault("user_match_type", "is given without user; give both, or neither")
	default:
		q.Match = match
	}
}

func (p *queryParser) reference(q *Search) {
	q.Reference = p.text("ref")
	text, ok := p.one("ref_version")
	if !ok {
		return
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil || n < 1:
		p.fault("ref_version", "must be a whole number, 1 or greater")
	case !p.has("ref"):
		p.fault("ref_version", "is given without ref; give both, or neither")
	}
	q.ReferenceVersion = n
}

func (p *queryParser) words(q *Search) {
	text := p.text("q")
	if text == "" {
		return
	}
	if q.Words = Words(text); q.Words == nil {
		p.fault("q", "has no words; a word has letters and digits only")
	}
}

func (p *queryParser) cone(q *Search) {
	text, ok := p.one("cone")
	if !ok {
		return
	}
	cone, err := parseCone(text)
	if err != nil {
		p.fault("cone", "%v", err)
		return
	}
	q.Cone = &cone
}

func (p *queryParser) where(q *Search) {
	where, err := parseAllWhere(p.params["where"])
	if err != nil {
		p.fault("where", "%v", err)
	}
	q.Where = where
}
