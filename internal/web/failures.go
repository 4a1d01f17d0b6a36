package web

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"oda"
)

// trouble is a way in which calls failed.
type trouble struct {
	failure
	Calls int64
	First int64       // sequence of the earliest of them
	begin oda.Instant // when it was made, or noTime

	// Set by inOrder.
	Name  string      // of the function, as short as it can be
	Begin oda.Instant // where the earliest is drawn
	Href  string      // the page with it
}

// failure is what failed calls have in common that are counted together.
type failure struct {
	function uint16
	Type     string // of the error, empty if it is not known
	Detail   string
}

const (
	indexedTroubles = 200
	shownTroubles   = 10       // before the others are unfolded
	troublesBytes   = 30 << 10 // of all on a page, which may hardly compress
)

// note counts a failed call with those that failed in the same way. If there are too many
// ways, one that was seen only once makes room, so frequent ones are kept.
func (x *callIndex) note(c *indexedCall, e *oda.CallError) {
	kind := failure{function: c.function, Type: errorType(e)}
	if e != nil && e.Detail != nil {
		line, _, _ := strings.Cut(*e.Detail, "\n")
		kind.Detail = clipped(line, nameLength)
	}
	if at, ok := x.alike[kind]; ok {
		t := &x.troubles[at]
		if t.Calls++; noTime < c.begin && c.begin < t.begin {
			t.First, t.begin = c.sequence, c.begin
		}
		return
	}
	if x.alike == nil {
		x.alike = make(map[failure]int)
	}
	at := len(x.troubles)
	if at < indexedTroubles {
		x.troubles = append(x.troubles, trouble{})
	} else {
		x.forgotten = true
		if at = slices.IndexFunc(x.troubles, func(t trouble) bool { return t.Calls == 1 }); at < 0 {
			return
		}
		delete(x.alike, x.troubles[at].failure)
	}
	x.alike[kind] = at
	x.troubles[at] = trouble{failure: kind, Calls: 1, First: c.sequence, begin: c.begin}
}

// inOrder returns the ways in which calls failed, each where its first failure is in time,
// and whether there are others.
func (x *callIndex) inOrder(href func(sequence int64) string) (all []trouble, others bool) {
	all = slices.Clone(x.troubles)
	l := x.layout(x.by(""))
	names := make([]string, len(all))
	for i := range all {
		at, _ := x.find(all[i].First)
		all[i].Begin, all[i].Href, names[i] = l.places[at].begin, href(all[i].First), x.functions.all[all[i].function]
	}
	for i, name := range tellApart(names) {
		all[i].Name = name
	}
	slices.SortFunc(all, func(a, b trouble) int { return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.First, b.First)) })
	room := troublesBytes
	for i := range all {
		if room -= len(all[i].Name) + len(all[i].Detail); room < 0 {
			return all[:i], true
		}
	}
	return all, x.forgotten
}

// FirstTroubles are those that are shown at once.
func (v *callsView) FirstTroubles() []trouble {
	return v.Troubles[:min(len(v.Troubles), shownTroubles)]
}

// FurtherTroubles are those that are unfolded.
func (v *callsView) FurtherTroubles() []trouble { return v.Troubles[len(v.FirstTroubles()):] }

// errorType is the type of the error of a call, empty if it is not known.
func errorType(e *oda.CallError) string {
	if e == nil || e.Type == nil {
		return ""
	}
	return *e.Type
}

// Elsewhere is the address of the failed calls of all blocks with such an error, empty if
// its type is not known.
func (f failure) Elsewhere() string { return elsewhere(f.Type) }

// Elsewhere is the same for a call.
func (r *callRow) Elsewhere() string { return elsewhere(r.ErrorType) }

func elsewhere(errorType string) string {
	if errorType == "" {
		return ""
	}
	return entityRoot + "calls" + question(url.Values{"error": {errorType}, "outcome": {"failed"}})
}

// The parts of a timeline that lead from failure to failure.
const (
	nextFailure     = "next-failure"
	previousFailure = "previous-failure"
)

// failureBeside returns the number of the failure after or before a call, or else of the
// first one that can be seen from a time on, or the last one up to it; 0 if there is none.
func (x *callIndex) failureBeside(params url.Values, forward bool) int64 {
	call, known := x.find(wholeIn(params, "call", 0))
	edge := oda.Instant(wholeIn(params, "edge", 0))
	wants, l := callFilterOf(params).in(x), x.layout(x.by(""))
	passed := !known
	for n := range l.byBegin {
		i := l.byBegin[n]
		if !forward {
			i = l.byBegin[len(l.byBegin)-1-n]
		}
		p := &l.places[i]
		switch {
		case known && int(i) == call:
			passed = true
		case !passed || !x.calls[i].failed || !wants(i):
		case known || forward && p.end >= edge || !forward && p.begin <= edge:
			return x.calls[i].sequence
		}
	}
	return 0
}

// wholeIn reads a whole number from an address.
func wholeIn(params url.Values, name string, otherwise int64) int64 {
	n, err := strconv.ParseInt(params.Get(name), 10, 64)
	if err != nil {
		return otherwise
	}
	return n
}
