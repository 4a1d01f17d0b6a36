package calls

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"oda"
	"oda/internal/words"
)

// Query asks for calls. A field that is empty or nil is not asked for.
type Query struct {
	From, To   *oda.Instant // the time of the call; To is excluded
	At         *oda.Instant // the call was in progress then
	Outcome    oda.Outcome
	Request    string // the whole name, or a trailing part of it at a dot
	Device     string
	Telescope  string
	Block      string
	Error      string // its type
	Words      string // of request, device and error
	LongerThan *oda.Elapsed

	OldestFirst bool
	Limit       int
	Behind      *oda.CallPlace // where the page begins

	Within time.Duration // what is found or counted by then is the answer; 0: the usual time
}

// Bounds of pages.
const (
	MaxLimit     = 1000
	DefaultLimit = 100
)

// The columns of calls and of a tally as tables.
var (
	Columns = []string{
		"eb_id", "sequence", "request", "sent_at", "received_at", "seconds", "outcome", "error_type", "error_detail", "device", "telescope", "by",
	}
	TallyColumns = []string{"key", "calls", "failures", "seconds"}
)

// filter is a parameter that says which calls are found, or in which order.
type filter struct {
	name  string
	read  func(p *oda.Params, q *Query)
	print func(q *Query) string // empty if the filter is not used
}

// filters must be those of a cursor. The other parameters may change from page to page.
var filters = []filter{
	instant("from", func(q *Query) **oda.Instant { return &q.From }),
	instant("to", func(q *Query) **oda.Instant { return &q.To }),
	instant("at", func(q *Query) **oda.Instant { return &q.At }),
	{"outcome", readOutcome, func(q *Query) string { return string(q.Outcome) }},
	text("request", func(q *Query) *string { return &q.Request }),
	text("device", func(q *Query) *string { return &q.Device }),
	text("telescope", func(q *Query) *string { return &q.Telescope }),
	text("eb", func(q *Query) *string { return &q.Block }),
	text("error", func(q *Query) *string { return &q.Error }),
	{"q", readWords, func(q *Query) string { return q.Words }},
	{"longer_than", readLongerThan, printLongerThan},
	{"sort", readSort, printSort},
}

// Filters returns the names of the parameters that say which calls are found.
func Filters() []string {
	var names []string
	for _, f := range filters {
		names = append(names, f.name)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "sort" })
}

// Parse reads the parameters of a question about calls.
func Parse(params map[string][]string) (Query, error) {
	p := oda.Params{Values: params}
	q := parseFilters(&p)
	if text, ok := p.One("cursor"); ok {
		q.goOn(&p, text)
	}
	q.Limit = int(p.Whole("limit", 1, MaxLimit, int64(cmp.Or(q.Limit, DefaultLimit))))
	return q, q.check(&p)
}

// ParseTally reads the parameters of a tally.
func ParseTally(params map[string][]string) (Query, By, error) {
	p := oda.Params{Values: params}
	q := parseFilters(&p)
	by := By(p.Named("by", byNames[:]))
	if !p.Has("by") {
		p.Fault("by", "is missing; it says what to count by")
	}
	return q, by, q.check(&p)
}

func parseFilters(p *oda.Params) (q Query) {
	for _, f := range filters {
		f.read(p, &q)
	}
	return q
}

// check returns an error if a parameter is wrong, or if the question has no bound.
func (q *Query) check(p *oda.Params) error {
	switch {
	case p.Faults != nil:
	case q.At != nil && (q.From != nil || q.To != nil):
		p.Fault("at", "cannot be combined with from or to; ask for one instant or for a range")
	case q.Block == "" && q.At == nil && q.Outcome != oda.CallFailed && (q.From == nil || q.To == nil):
		p.Fault("from", "and to are needed to ask for all calls; or give eb, at, or outcome=failed")
	}
	return p.Err("Invalid question about calls")
}

// Params returns the parameters of the question, as Parse reads them, without where its
// page begins.
func (q *Query) Params() map[string][]string {
	params := make(map[string][]string)
	for _, f := range filters {
		if value := f.print(q); value != "" {
			params[f.name] = []string{value}
		}
	}
	if q.Limit > 0 {
		params["limit"] = []string{strconv.Itoa(q.Limit)}
	}
	return params
}

// cursor returns the cursor with which the question continues behind a place.
func (q *Query) cursor(behind oda.CallPlace) string {
	return oda.CallCursor{Params: q.Params(), Behind: behind}.String()
}

// goOn reads a cursor into the question. A request with a cursor may leave the filters
// out; if it has any, they must be those of the cursor.
func (q *Query) goOn(p *oda.Params, text string) {
	c, ok := oda.ParseCallCursor(text)
	carried, err := Parse(c.Params)
	if !ok || err != nil || carried.cursor(c.Behind) != text {
		p.Fault("cursor", "is not a cursor of this archive; take it from next, or from the Link header, of the previous page")
		return
	}
	asked := *q
	asked.Limit = carried.Limit
	isAsked := slices.ContainsFunc(filters, func(f filter) bool { return p.Has(f.name) })
	if isAsked && asked.cursor(c.Behind) != carried.cursor(c.Behind) {
		p.Fault("cursor", "belongs to another question; send it with the one it came from, or alone")
		return
	}
	*q = carried
	q.Behind = &c.Behind
}

// byTime reports whether the calls are in the order of their times. Otherwise they are in
// the order of their days, blocks and sequence numbers.
func (q *Query) byTime() bool { return q.At != nil || q.Block != "" || q.Outcome == oda.CallFailed }

func text(name string, field func(*Query) *string) filter {
	return filter{name, func(p *oda.Params, q *Query) { *field(q) = p.Text(name) }, func(q *Query) string { return *field(q) }}
}

func instant(name string, field func(*Query) **oda.Instant) filter {
	return filter{
		name, func(p *oda.Params, q *Query) { *field(q) = p.Instant(name, true) },
		func(q *Query) string {
			if at := *field(q); at != nil {
				return at.String()
			}
			return ""
		},
	}
}

func readOutcome(p *oda.Params, q *Query) {
	if names := []string{string(oda.CallOK), string(oda.CallFailed)}; p.Has("outcome") {
		q.Outcome = oda.Outcome(names[p.Named("outcome", names)])
	}
}

func readWords(p *oda.Params, q *Query) {
	q.Words = p.Text("q")
	if q.Words != "" && words.Of(q.Words) == nil {
		p.Fault("q", "has no words; a word has letters and digits only")
	}
}

// maxSeconds is more than the longest time between two calls.
const maxSeconds = 1e12

func readLongerThan(p *oda.Params, q *Query) {
	text, ok := p.One("longer_than")
	if !ok {
		return
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds >= 0 && seconds <= maxSeconds) {
		p.Fault("longer_than", "must be a number of seconds, such as 10 or 0.5")
		return
	}
	var took oda.Elapsed
	if err := took.UnmarshalJSON([]byte(text)); err != nil {
		p.Fault("longer_than", "must be a number of seconds, such as 10 or 0.5")
	}
	q.LongerThan = &took
}

func printLongerThan(q *Query) string {
	if q.LongerThan == nil {
		return ""
	}
	text, _ := q.LongerThan.MarshalJSON()
	return string(text)
}

var sortNames = []string{"-sent", "sent"}

func readSort(p *oda.Params, q *Query) { q.OldestFirst = p.Named("sort", sortNames) == 1 }

func printSort(q *Query) string {
	if !q.OldestFirst {
		return ""
	}
	return sortNames[1]
}
