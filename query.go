package oda

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// Order is the order of a listing.
type Order uint8

// The orders. A listing by user is in the order of creation.
const (
	ByCreation Order = iota + 1
	ByModification
)

// MatchType says how the user of a query is compared. Case matters, and there
// are no wildcards.
type MatchType uint8

// The match types.
const (
	AnyUser MatchType = iota
	UserEquals
	UserStartsWith
	UserContains
)

var matchTypes = map[string]MatchType{"equals": UserEquals, "starts_with": UserStartsWith, "contains": UserContains}

// MaxLimit is the largest page of a listing.
const MaxLimit = 10_000

// Query asks for the identifiers of current versions of one kind.
type Query struct {
	Kind  Kind
	Order Order

	User  string
	Match MatchType

	// Bounds of the instant by which the listing is ordered, both included; nil
	// is no bound.
	After, Before *Instant

	// A page has at most Limit identifiers; 0 is no bound. It begins after
	// Start.
	Limit int
	Start *Place
}

// Place is a position in a listing.
type Place struct {
	At Instant
	ID string
}

// Compare orders places by their instants, then by the bytes of identifiers.
func (p Place) Compare(other Place) int {
	return cmp.Or(cmp.Compare(p.At, other.At), strings.Compare(p.ID, other.ID))
}

// Range returns what an engine reads of its index: the instants from one to
// another, both included. Of those at the first instant, only identifiers after
// behind count, since a page begins where the previous one ended.
func (q Query) Range() (from Instant, behind string, to Instant) {
	from, to = math.MinInt64, math.MaxInt64
	if q.After != nil {
		from = *q.After
	}
	if q.Before != nil {
		to = *q.Before
	}
	if q.Start != nil && q.Start.At >= from {
		from, behind = q.Start.At, q.Start.ID
	}
	return from, behind, to
}

// span is a query field that is a range of instants.
type span struct {
	after, before string
	order         Order
}

// The fields in the order of their precedence, after user.
var spans = [...]span{
	{"created_after", "created_before", ByCreation},
	{"last_modified_after", "last_modified_before", ByModification},
}

// ParseQuery parses the parameters of a listing. A listing has one query field:
// user, else creation, else modification. ParseQuery ignores the others.
func ParseQuery(kind Kind, params map[string][]string) (Query, error) {
	p := queryParser{params: params}
	q := p.field(kind)
	q.Limit = int(p.whole("limit", 1, MaxLimit, 0))
	if text, ok := p.one("cursor"); ok {
		p.cursor(&q, text)
	}
	if err := p.err("Invalid list query"); err != nil {
		return Query{}, err
	}
	if q.Order == 0 {
		return Query{}, Errorf(InvalidQuery, "A listing needs a query: user, or created_after / created_before, "+
			"or last_modified_after / last_modified_before. For everything, ask for created_after=1970-01-01.")
	}
	return q, nil
}

type queryParser struct {
	params map[string][]string
	faults []Fault
}

// err returns an error that names the first fault and lists all, nil if there is none.
// What begins its sentence.
func (p *queryParser) err(what string) error {
	if len(p.faults) == 0 {
		return nil
	}
	_, name, _ := strings.Cut(p.faults[0].Pointer, ":")
	return &Error{Code: InvalidQuery, Faults: p.faults, Detail: what + ": " + name + " " + p.faults[0].Detail + "."}
}

func (p *queryParser) fault(name, format string, args ...any) {
	p.faults = append(p.faults, Fault{"query:" + name, fmt.Sprintf(format, args...)})
}

// one returns the value of a parameter. It is a fault if the parameter is empty
// or given twice.
func (p *queryParser) one(name string) (string, bool) {
	values := p.params[name]
	switch {
	case len(values) == 0:
		return "", false
	case len(values) > 1:
		p.fault(name, "is given %d times; give it once", len(values))
	case values[0] == "":
		p.fault(name, "is empty; give it a value or leave it out")
	}
	return values[0], true
}

func (p *queryParser) has(name string) bool { return len(p.params[name]) > 0 }

// field parses the query field of highest precedence. If there is none, the order
// of the query is 0.
func (p *queryParser) field(kind Kind) Query {
	q := Query{Kind: kind}
	match := UserEquals
	if text, ok := p.one("user_match_type"); ok {
		var known bool
		if match, known = matchTypes[text]; !known {
			p.fault("user_match_type", "must be equals, starts_with or contains")
		}
	}
	if user, ok := p.one("user"); ok {
		if !utf8.ValidString(user) {
			p.fault("user", "is not valid UTF-8")
		}
		q.Order, q.User, q.Match = ByCreation, user, match
		return q
	}
	for _, s := range spans {
		if p.has(s.after) || p.has(s.before) {
			q.Order = s.order
			q.After, q.Before = p.instant(s.after, true), p.instant(s.before, false)
			return q
		}
	}
	return q
}

// instant parses one end of a range. It rounds a time that is finer than a
// microsecond into the range.
func (p *queryParser) instant(name string, up bool) *Instant {
	text, ok := p.one(name)
	if !ok {
		return nil
	}
	t, err := parseQueryTime(text)
	if err != nil {
		p.fault(name, "%v", err)
		return nil
	}
	i := InstantOf(t)
	if up && i.Time().Before(t) {
		i++
	}
	return &i
}

// parseQueryTime is ParseTime, but also accepts an offset whose plus sign
// arrived as a space, which is what a plus means in a query.
func parseQueryTime(text string) (time.Time, error) {
	t, err := ParseTime(text)
	if at := strings.LastIndexByte(text, ' '); err != nil && at > len("2006-01-02") {
		return ParseTime(text[:at] + "+" + text[at+1:])
	}
	return t, err
}
