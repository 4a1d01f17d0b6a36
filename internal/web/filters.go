package web

import (
	"cmp"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"oda"
	"oda/search"
)

// form is the filters of a list as a person fills them in.
type form struct {
	Values map[string]string // by the name of the parameter
	Where  []string          // conditions, and an empty one to fill in
	Faults map[string]string // by the name of the parameter
	Chips  []chip
	Open   bool // there are faults to mend
	Limit  string
}

// field is a filter to fill in. The hint is an example.
type field struct{ Name, Label, Hint, Value, Fault string }

// Field gives a filter by the name of its parameter.
func (f form) Field(name, label, hint string) field {
	return field{name, label, hint, f.Values[name], f.Faults[name]}
}

// chip is a filter in use, and the address of the list without it.
type chip struct {
	Name, Value, Href string
	rest              url.Values // without it
	alone             url.Values // it alone
}

// filterWords are the words in which a chip tells of a filter, if its name does not say it.
var filterWords = map[string]string{
	"q": "words", "user": "created by", "ref": "refers to", "ref_version": "in version", "cone": "near",
	"created_after": "created from", "created_before": "created until",
	"last_modified_after": "modified from", "last_modified_before": "modified until",
}

// newForm fills a form in with the parameters of an address.
func newForm(kind oda.Kind, params url.Values, err error) form {
	f := form{Values: map[string]string{}, Faults: faultsIn(err), Limit: params.Get("limit")}
	for name := range params {
		f.Values[name] = params.Get(name)
	}
	for _, filter := range search.Filters() {
		if filter.Name == "sort" || filter.Name == "user_match_type" { // the chip of the user tells it
			continue
		}
		for _, value := range params[filter.Name] {
			says := cmp.Or(filterWords[filter.Name], filter.Name)
			if match := params.Get("user_match_type"); filter.Name == "user" && match != "" {
				says += ", " + strings.ReplaceAll(match, "_", " ")
			}
			rest := without(params, filter.Name, value)
			f.Chips = append(f.Chips, chip{says, toldValue(filter.Name, value), kind.Collection() + question(rest), rest, aloneIn(params, filter, value)})
		}
	}
	f.Where = append(slices.Clone(params["where"]), "")
	f.Open = len(f.Faults) > 0
	return f
}

// aloneIn is a value of a filter alone, with what it needs and what needs it.
func aloneIn(params url.Values, filter search.Filter, value string) url.Values {
	alone := url.Values{filter.Name: {value}}
	for _, other := range search.Filters() {
		if (other.Needs == filter.Name || filter.Needs == other.Name) && params.Has(other.Name) {
			alone[other.Name] = params[other.Name]
		}
	}
	return alone
}

// toldValue is the value of a filter as a chip tells it: a date is the beginning of its day,
// which nobody would guess of "until".
func toldValue(param, value string) string {
	_, err := time.Parse(time.DateOnly, value)
	if err == nil && (strings.HasSuffix(param, "_before") || strings.HasSuffix(param, "_after")) {
		return value + " 00:00"
	}
	return value
}

// faultsIn are the faults of parameters that an error names, by their names.
func faultsIn(err error) map[string]string {
	faults := map[string]string{}
	if e, ok := errors.AsType[*oda.Error](err); ok {
		for _, fault := range e.Faults {
			faults[strings.TrimPrefix(fault.Pointer, "query:")] = fault.Detail
		}
	}
	return faults
}

// withoutEmpty leaves out what a form sends though nobody filled it in, and the blanks around
// what they did fill in: the keyboards of phones add them. The name of a function is chosen,
// and may have any.
func withoutEmpty(params url.Values) url.Values {
	filled := url.Values{}
	for name, values := range params {
		for _, value := range values {
			text := strings.TrimSpace(value)
			if text == "" {
				continue
			}
			if name == "function" {
				text = value
			}
			filled[name] = append(filled[name], text)
		}
	}
	for _, filter := range search.Filters() {
		if filter.Needs != "" && !filled.Has(filter.Needs) {
			filled.Del(filter.Name)
		}
	}
	if filled.Get("sort") == oda.NewestFirst.String() {
		filled.Del("sort")
	}
	return filled
}

// tidied are the parameters of an address as they should stand there: only what is filled
// in, and telescopes as documents name them. It reports whether they were so already.
func tidied(params url.Values) (tidy url.Values, already bool) {
	tidy = withoutEmpty(params)
	for i, name := range tidy["telescope"] {
		if telescope, ok := telescopeNamed(name); ok {
			tidy["telescope"][i] = telescope
		}
	}
	return tidy, maps.EqualFunc(tidy, params, slices.Equal)
}

// without leaves one value of a parameter out, or all if it is empty, and with
// it the page: another search has other pages.
func without(params url.Values, name, value string) url.Values {
	rest := url.Values{}
	for n, values := range params {
		if n == "cursor" {
			continue
		}
		kept := slices.DeleteFunc(slices.Clone(values), func(v string) bool { return n == name && (value == "" || v == value) })
		if len(kept) > 0 {
			rest[n] = kept
		}
	}
	return withoutEmpty(rest)
}

// with replaces a parameter.
func with(params url.Values, name, value string) url.Values {
	changed := maps.Clone(params)
	changed.Set(name, value)
	return changed
}

// question writes parameters as they stand in an address, with what is harmless
// left readable. A colon is not: before the first slash, it ends a scheme.
func question(params url.Values) string {
	if len(params) == 0 {
		return ""
	}
	text := params.Encode()
	for _, readable := range []string{",", "/", "*", "@"} {
		text = strings.ReplaceAll(text, url.QueryEscape(readable), readable)
	}
	return "?" + text
}
