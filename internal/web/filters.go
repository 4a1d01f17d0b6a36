package web

import (
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"oda"
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

// field is a filter to fill in, of which the hint is an example.
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

// filterNames are the filters with the words in which a chip tells of them.
var filterNames = []struct{ param, says string }{
	{"q", "words"},
	{"telescope", "telescope"},
	{"user", "created by"},
	{"created_after", "created from"},
	{"created_before", "created until"},
	{"last_modified_after", "modified from"},
	{"last_modified_before", "modified until"},
	{"ref", "refers to"},
	{"ref_version", "in version"},
	{"cone", "near"},
	{"where", "where"},
}

// newForm fills a form in with the parameters of an address.
func newForm(kind oda.Kind, params url.Values, err error) form {
	f := form{Values: map[string]string{}, Faults: faultsIn(err), Limit: params.Get("limit")}
	for name := range params {
		f.Values[name] = params.Get(name)
	}
	for _, filter := range filterNames {
		for _, value := range params[filter.param] {
			says := filter.says
			if match := params.Get("user_match_type"); filter.param == "user" && match != "" {
				says += ", " + strings.ReplaceAll(match, "_", " ")
			}
			rest := without(params, filter.param, value)
			alone := url.Values{filter.param: {value}}
			for name, of := range dependent {
				if filter.param == of && params.Has(name) {
					alone[name] = params[name]
				}
				if filter.param == name {
					alone[of] = params[of]
				}
			}
			f.Chips = append(f.Chips, chip{says, toldValue(filter.param, value), kind.Collection() + question(rest), rest, alone})
		}
	}
	f.Where = append(slices.Clone(params["where"]), "")
	f.Open = len(f.Faults) > 0
	return f
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

// dependent are the parameters that mean nothing without another.
var dependent = map[string]string{"user_match_type": "user", "ref_version": "ref"}

// known are the parameters of a search in an address. Others are not for us.
func known(params url.Values) url.Values {
	some := url.Values{}
	for _, filter := range filterNames {
		if params.Has(filter.param) {
			some[filter.param] = params[filter.param]
		}
	}
	for _, name := range []string{"user_match_type", "sort", "limit", "cursor"} {
		if params.Has(name) {
			some[name] = params[name]
		}
	}
	return some
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
	for name, of := range dependent {
		if !filled.Has(of) {
			filled.Del(name)
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
