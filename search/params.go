package search

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"oda"
	"oda/internal/words"
	"oda/sky"
)

// Filter is a parameter that says what is found, or in which order.
type Filter struct {
	Name  string
	Needs string   // the filter without which it means nothing
	Only  oda.Kind // the only kind that has it; 0: all kinds have it

	read  func(p *oda.Params, s *Search)
	print func(s *Search) []string // what read takes; nothing if the filter is not used
}

// filters are read in this order, and must be those of a cursor. The other parameters
// say how the answer should look, and may change from page to page.
var filters = []Filter{
	text("user", func(s *Search) *string { return &s.User }),
	{Name: "user_match_type", Needs: "user", read: readMatch, print: printMatch},
	instant("created_after", true, func(s *Search) **oda.Instant { return &s.Created.After }),
	instant("created_before", false, func(s *Search) **oda.Instant { return &s.Created.Before }),
	instant("last_modified_after", true, func(s *Search) **oda.Instant { return &s.Modified.After }),
	instant("last_modified_before", false, func(s *Search) **oda.Instant { return &s.Modified.Before }),
	text("telescope", func(s *Search) *string { return &s.Telescope }),
	{Name: "status", read: readStatus, print: func(s *Search) []string { return given(s.Status) }},
	{Name: "class", read: readClass, print: func(s *Search) []string { return given(s.Class.String()) }},
	only(oda.SBDefinition, flag("unobserved", func(s *Search) *bool { return &s.Unobserved })),
	text("ref", func(s *Search) *string { return &s.Reference }),
	{Name: "ref_version", Needs: "ref", read: readVersion, print: printVersion},
	{Name: "q", read: readWords, print: func(s *Search) []string { return given(s.Words) }},
	{Name: "cone", read: readCone, print: printCone},
	{Name: "where", read: readWhere, print: func(s *Search) []string { return s.Where }},
	only(oda.Note, text("about", func(s *Search) *string { return &s.About })),
	only(oda.Note, instant("from", true, func(s *Search) **oda.Instant { return &s.From })),
	only(oda.Note, instant("to", true, func(s *Search) **oda.Instant { return &s.To })),
	only(oda.Note, Filter{Name: "level", read: readLevel, print: func(s *Search) []string { return given(string(s.Level)) }}),
	only(oda.Note, text("tag", func(s *Search) *string { return &s.Tag })),
	only(oda.Note, flag("withdrawn", func(s *Search) *bool { return &s.Withdrawn })),
	{Name: "sort", read: readSort, print: printSort},
}

// Filters returns all filters, in the order in which they are read.
func Filters() []Filter { return slices.Clone(filters) }

// FiltersOf returns the filters that a kind has, in the order in which they are read.
func FiltersOf(kind oda.Kind) []Filter {
	return slices.DeleteFunc(Filters(), func(f Filter) bool { return f.Only != 0 && f.Only != kind })
}

// Parse reads the parameters of a search.
func Parse(kind oda.Kind, params map[string][]string) (Search, error) {
	p := oda.Params{Values: params}
	s := Search{Kind: kind}
	for _, filter := range filters {
		filter.read(&p, &s)
	}
	if text, ok := p.One("cursor"); ok {
		s.goOn(&p, text)
	}
	if p.Has("fields") {
		s.Fields = Fields(p.Named("fields", fieldNames[:]))
	}
	s.Limit = int(p.Whole("limit", 1, MaxLimit, int64(cmp.Or(s.Limit, DefaultLimit))))
	if err := p.Err("Invalid search"); err != nil {
		return Search{}, err
	}
	return s, nil
}

// Params returns the parameters of the search, as Parse reads them, without where its
// page begins.
func (s Search) Params() map[string][]string {
	params := make(map[string][]string)
	for _, filter := range filters {
		if values := filter.print(&s); len(values) > 0 {
			params[filter.Name] = values
		}
	}
	if s.Fields != Summaries {
		params["fields"] = []string{s.Fields.String()}
	}
	if s.Limit > 0 {
		params["limit"] = []string{strconv.Itoa(s.Limit)}
	}
	return params
}

// Cursor returns the cursor with which the search continues after a place.
func (s Search) Cursor(after oda.Place) string {
	return oda.Cursor{Kind: s.Kind, Params: s.Params(), After: after}.String()
}

// goOn reads a cursor into the search. A request with a cursor may leave the filters
// out; if it has any, they must be those of the cursor.
func (s *Search) goOn(p *oda.Params, text string) {
	c, ok := oda.ParseCursor(text)
	carried, err := Parse(c.Kind, c.Params)
	if !ok || err != nil || carried.Cursor(c.After) != text {
		p.Fault("cursor", "is not a cursor of this archive; take it from next, or from the Link header, of the previous page")
		return
	}
	asked := *s
	asked.Limit, asked.Fields = carried.Limit, carried.Fields
	isAsked := slices.ContainsFunc(filters, func(f Filter) bool { return p.Has(f.Name) })
	if carried.Kind != s.Kind || isAsked && asked.folded().Cursor(c.After) != carried.folded().Cursor(c.After) {
		p.Fault("cursor", "belongs to another search; send it with the search it came from, or alone")
		return
	}
	*s = carried
	s.Start = &c.After
}

// folded returns the search with its words and its status in the form in which they are
// searched for.
func (s Search) folded() Search {
	s.Words = strings.Join(words.Of(s.Words), " ")
	s.Status = oda.FoldStatus(s.Status)
	return s
}

// given returns the values of a parameter that is a text.
func given(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

func text(name string, field func(*Search) *string) Filter {
	return Filter{
		Name:  name,
		read:  func(p *oda.Params, s *Search) { *field(s) = p.Text(name) },
		print: func(s *Search) []string { return given(*field(s)) },
	}
}

func instant(name string, up bool, field func(*Search) **oda.Instant) Filter {
	return Filter{
		Name: name,
		read: func(p *oda.Params, s *Search) { *field(s) = p.Instant(name, up) },
		print: func(s *Search) []string {
			if at := *field(s); at != nil {
				return given(at.String())
			}
			return nil
		},
	}
}

func readMatch(p *oda.Params, s *Search) {
	match, ok := p.Match()
	if ok && !p.Has("user") {
		p.Fault("user_match_type", "is given without user; give both, or neither")
	}
	s.Match = match
}

func printMatch(s *Search) []string {
	if s.Match == oda.UserEquals {
		return nil
	}
	return given(s.Match.String())
}

func readStatus(p *oda.Params, s *Search) {
	s.Status = p.Text("status")
	if s.Status != "" && !oda.ValidStatus(s.Status) {
		p.Fault("status", "must be 1 to %d characters without control characters", oda.MaxStatus)
	}
}

func readClass(p *oda.Params, s *Search) {
	if p.Has("class") {
		s.Class = oda.ClassPlanned + oda.Class(p.Named("class", oda.ClassNames()))
	}
}

// flag is a filter that is used or not.
func flag(name string, field func(*Search) *bool) Filter {
	return Filter{
		Name: name,
		read: func(p *oda.Params, s *Search) {
			text, ok := p.One(name)
			if ok && text != "true" {
				p.Fault(name, "must be true, or left out")
			}
			*field(s) = ok
		},
		print: func(s *Search) []string {
			if !*field(s) {
				return nil
			}
			return given("true")
		},
	}
}

// only returns a filter that only one kind has.
func only(kind oda.Kind, f Filter) Filter {
	f.Only = kind
	read := f.read
	f.read = func(p *oda.Params, s *Search) {
		if p.Has(f.Name) && s.Kind != kind {
			p.Fault(f.Name, "is only for %ss", kind)
			return
		}
		read(p, s)
	}
	return f
}

func readLevel(p *oda.Params, s *Search) {
	if p.Has("level") {
		s.Level = oda.Level(oda.LevelNames()[p.Named("level", oda.LevelNames())])
	}
}

func readVersion(p *oda.Params, s *Search) {
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
	s.ReferenceVersion = n
}

func printVersion(s *Search) []string {
	if s.ReferenceVersion == 0 {
		return nil
	}
	return given(strconv.FormatInt(s.ReferenceVersion, 10))
}

func readWords(p *oda.Params, s *Search) {
	s.Words = p.Text("q")
	if s.Words != "" && words.Of(s.Words) == nil {
		p.Fault("q", "has no words; a word has letters and digits only")
	}
}

func readCone(p *oda.Params, s *Search) {
	text, ok := p.One("cone")
	if !ok {
		return
	}
	cone, err := sky.ParseCone(text)
	if err != nil {
		p.Fault("cone", "%v", err)
		return
	}
	s.Cone = &cone
}

func printCone(s *Search) []string {
	if s.Cone == nil {
		return nil
	}
	return given(s.Cone.String())
}

func readWhere(p *oda.Params, s *Search) {
	where := p.Values["where"]
	if _, err := parseAllWhere(where); err != nil {
		p.Fault("where", "%v", err)
		return
	}
	s.Where = where
}

func readSort(p *oda.Params, s *Search) { s.Sort = oda.Sort(p.Named("sort", oda.SortNames())) }

func printSort(s *Search) []string {
	if s.Sort == oda.NewestFirst {
		return nil
	}
	return given(s.Sort.String())
}
