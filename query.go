package oda

import (
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// Order is the order of a listing.
type Order uint8

// The orders. A listing by user is in the order of creation.
const (
	ByCreation Order = iota + 1
	ByModification
)

// MaxLimit is the largest page of a listing.
const MaxLimit = 10_000

// Query asks for the identifiers of current versions of one kind.
type Query struct {
	Kind  Kind
	Order Order

	User  string // empty: any
	Match MatchType

	// Bounds of the instant by which the listing is ordered, both included; nil
	// is no bound.
	After, Before *Instant

	// A page has at most Limit identifiers; 0 is no bound. It begins after
	// Start.
	Limit int
	Start *Place
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
	p := Params{Values: params}
	q := p.field(kind)
	q.Limit = int(p.Whole("limit", 1, MaxLimit, 0))
	if text, ok := p.One("cursor"); ok {
		p.cursor(&q, text)
	}
	if err := p.Err("Invalid list query"); err != nil {
		return Query{}, err
	}
	if q.Order == 0 {
		return Query{}, Errorf(InvalidQuery, "A listing needs a query: user, or created_after / created_before, "+
			"or last_modified_after / last_modified_before. For everything, ask for created_after=1970-01-01.")
	}
	return q, nil
}

// field parses the query field of highest precedence. If there is none, the order
// of the query is 0.
func (p *Params) field(kind Kind) Query {
	q := Query{Kind: kind}
	match, _ := p.Match()
	if user, ok := p.One("user"); ok {
		if !utf8.ValidString(user) {
			p.Fault("user", "is not valid UTF-8")
		}
		q.Order, q.User, q.Match = ByCreation, user, match
		return q
	}
	for _, s := range spans {
		if p.Has(s.after) || p.Has(s.before) {
			q.Order = s.order
			q.After, q.Before = p.Instant(s.after, true), p.Instant(s.before, false)
			return q
		}
	}
	return q
}

// Params returns the parameters of the query, as ParseQuery reads them.
func (q Query) Params() map[string][]string {
	params := make(map[string][]string)
	set := func(name string, value fmt.Stringer) { params[name] = []string{value.String()} }
	if q.Limit > 0 {
		params["limit"] = []string{strconv.Itoa(q.Limit)}
	}
	if q.User != "" {
		params["user"] = []string{q.User}
		if q.Match != UserEquals {
			set("user_match_type", q.Match)
		}
		return params
	}
	for _, s := range spans {
		if s.order != q.Order {
			continue
		}
		if q.After != nil {
			set(s.after, q.After)
		}
		if q.Before != nil {
			set(s.before, q.Before)
		}
	}
	return params
}

// Cursor returns the cursor with which the listing continues after a place.
func (q Query) Cursor(after Place) string {
	q.Limit = 0
	return Cursor{q.Kind, q.Params(), after}.String()
}

// cursor reads a cursor into the query. A request with a cursor may leave the
// query fields out; if it has any, they must be those of the cursor.
func (p *Params) cursor(q *Query, text string) {
	c, ok := ParseCursor(text)
	inside := Params{Values: c.Params}
	carried := inside.field(c.Kind)
	switch {
	case !ok || carried.Order == 0 || inside.Faults != nil || carried.Cursor(c.After) != text:
		p.Fault("cursor", wrongCursor)
	case carried.Kind != q.Kind || q.Order != 0 && q.Cursor(c.After) != text:
		p.Fault("cursor", "belongs to another query; send it with the query it came from, or alone")
	default:
		carried.Limit, carried.Start = q.Limit, &c.After
		*q = carried
	}
}
