package oda

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Params reads the parameters of a query. It collects what is wrong with them, so
// that the error names everything at once.
type Params struct {
	Values map[string][]string
	Faults []Fault
}

// Err returns an error that names the first fault and lists all, nil if there is none.
// What begins its sentence.
func (p *Params) Err(what string) error {
	if len(p.Faults) == 0 {
		return nil
	}
	_, name, _ := strings.Cut(p.Faults[0].Pointer, ":")
	return &Error{Code: InvalidQuery, Faults: p.Faults, Detail: what + ": " + name + " " + p.Faults[0].Detail + "."}
}

// Fault says what is wrong with a parameter.
func (p *Params) Fault(name, format string, args ...any) {
	p.Faults = append(p.Faults, Fault{"query:" + name, fmt.Sprintf(format, args...)})
}

// Has reports whether a parameter is given.
func (p *Params) Has(name string) bool { return len(p.Values[name]) > 0 }

// One returns the value of a parameter. It is a fault if the parameter is empty
// or given twice.
func (p *Params) One(name string) (string, bool) {
	values := p.Values[name]
	switch {
	case len(values) == 0:
		return "", false
	case len(values) > 1:
		p.Fault(name, "is given %d times; give it once", len(values))
	case values[0] == "":
		p.Fault(name, "is empty; give it a value or leave it out")
	}
	return values[0], true
}

// Named returns the index of the name that a parameter has, 0 if it is left out.
func (p *Params) Named(name string, names []string) int {
	text, ok := p.One(name)
	if !ok {
		return 0
	}
	i := slices.Index(names, text)
	if i < 0 {
		p.Fault(name, "must be one of %s", strings.Join(names, ", "))
		return 0
	}
	return i
}

// Whole returns the value of a parameter that is a whole number within bounds, or
// otherwise if it is not given.
func (p *Params) Whole(name string, least, most, otherwise int64) int64 {
	text, given := p.One(name)
	if !given {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		p.Fault(name, "must be a whole number from %d to %d", least, most)
	}
	return n
}

// MaxParam is how many bytes a text may have.
const MaxParam = 1024

// Text returns the value of a parameter that is a text, empty if it is not given.
func (p *Params) Text(name string) string {
	text, ok := p.One(name)
	switch {
	case !ok:
	case !utf8.ValidString(text):
		p.Fault(name, "is not valid UTF-8")
	case len(text) > MaxParam:
		p.Fault(name, "is longer than %d bytes", MaxParam)
	}
	return text
}

// Instant returns one end of a range, nil if it is not given.
func (p *Params) Instant(name string, up bool) *Instant {
	text, ok := p.One(name)
	if !ok {
		return nil
	}
	t, err := parseQueryTime(text)
	if err != nil {
		p.Fault(name, "%v", err)
		return nil
	}
	return rounded(t, up)
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

// MatchType says how the user of a query is compared. Case matters, and there
// are no wildcards.
type MatchType uint8

// The match types.
const (
	UserEquals MatchType = iota
	UserStartsWith
	UserContains
)

var matchNames = [...]string{UserEquals: "equals", UserStartsWith: "starts_with", UserContains: "contains"}

// String returns the name on the wire.
func (m MatchType) String() string { return matchNames[m] }

// Match returns how the user is compared, and whether that is given.
func (p *Params) Match() (match MatchType, given bool) {
	text, given := p.One("user_match_type")
	if !given {
		return UserEquals, false
	}
	i := slices.Index(matchNames[:], text)
	if i < 0 {
		p.Fault("user_match_type", "must be equals, starts_with or contains")
		return UserEquals, false
	}
	return MatchType(i), true
}

// ParseAsOf parses the instant at which a caller wants to see an entity. It
// rounds a time that is finer than a microsecond down: a change in the next
// microsecond came later.
func ParseAsOf(text string) (Instant, error) {
	t, err := parseQueryTime(text)
	if err != nil {
		return 0, &Error{Code: InvalidQuery, Detail: fmt.Sprintf("Invalid query: at %v.", err), Faults: []Fault{{"query:at", err.Error()}}}
	}
	return InstantOf(t), nil
}
