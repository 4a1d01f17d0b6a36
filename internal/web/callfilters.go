package web

import (
	"context"
	"net/url"
	"time"

	"oda"
	"oda/calls"
)

// callFilterWords are the words in which a chip tells of a filter of calls, if its name does
// not say it.
var callFilterWords = map[string]string{
	"q": "words", "request": "function", "eb": "ExecutionBlock", "from": "from", "to": "before", "longer_than": "longer than", "at": "in progress at",
}

// newCallForm fills a form in with the parameters of an address.
func newCallForm(params url.Values, err error) form {
	f := form{Values: map[string]string{}, Faults: faultsIn(err), Limit: params.Get("limit")}
	for name := range params {
		f.Values[name] = params.Get(name)
	}
	f.Open = len(f.Faults) > 0
	for _, name := range calls.Filters() {
		value := params.Get(name)
		if value == "" {
			continue
		}
		c := chip{Name: name, Value: value, rest: without(params, name, "")}
		if words := callFilterWords[name]; words != "" {
			c.Name = words
		}
		switch name {
		case "from", "to", "at":
			if at, err := oda.ParseAsOf(value); err == nil {
				c.Value = inWords(at) + " UTC"
			}
		case "longer_than":
			c.Value += " s"
		case "telescope":
			c.Value = showTelescope(value)
		}
		// Without this one, the question may have no bound.
		if _, err := calls.Parse(c.rest); err == nil || len(c.rest) == 0 {
			c.Href = callsHref(c.rest)
		}
		f.Chips = append(f.Chips, c)
	}
	return f
}

// callsHref is the address of the calls that parameters ask for.
func callsHref(params url.Values) string { return "calls" + question(params) }

// loosenTime is how long it may take to find a filter that leaves nothing.
const loosenCallsTime = 50 * time.Millisecond

// loosenCalls finds the filters without which the others would find something. This is only
// a hint.
func (s *Site) loosenCalls(ctx context.Context, chips []chip) (loosen []chip) {
	for _, c := range chips {
		if c.Href == "" || len(c.rest) == 0 {
			continue
		}
		if s.findsCalls(ctx, c.rest, loosenCallsTime) {
			loosen = append(loosen, c)
		}
	}
	return loosen
}

// findsCalls reports whether parameters are known to find a call.
func (s *Site) findsCalls(ctx context.Context, params url.Values, within time.Duration) bool {
	q, err := calls.Parse(params)
	if err != nil {
		return false
	}
	q.Limit, q.Within = 1, within
	page, err := s.cfg.Calls.Page(ctx, q)
	return err == nil && len(page.Calls) > 0
}
