package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"oda"
	"oda/calls"
	"oda/night"
)

// callListView is the data for the page of calls.
type callListView struct {
	frame
	Form        form
	Usual       string // what is shown though nothing was asked for
	Quiet       int64  // the calls of that time, none of which failed
	Failed      bool   // only calls that failed are asked for
	Complete    bool   // all calls were counted
	Calls       int64
	Failures    int64
	Blocks      string // how many have such calls
	Spread      spread
	Tallies     []callTally
	Rows        []foundCall
	First, Next string // addresses of other pages, empty if there are none
	Partial     bool   // the calls were not all looked at
	Live        bool
	Loosen      []chip
	Ever        string // the address of all failed calls
	OnlyFailed  string // the address of those that failed
	JSON        string
	CSV         string // the address of a table of all of them, empty if they are too many for it
}

// foundCall is a call in a table.
type foundCall struct {
	oda.CallEntry
	Name, Title, Href, Took string
}

// callTally is the calls by what they have in common.
type callTally struct {
	Name       string
	Failed     bool // all of them failed
	Rows, More []tallied
	Others     bool // there are others, which are not shown
}

// tallied is some calls with something in common. It leads to them, if they can be asked for.
type tallied struct {
	Key, Name, Href string
	Calls, Failures int64
	Share, Bad      string // of the most calls of a row, in per cent: all, and those that failed
}

// Bounds of the page of calls.
const (
	callsOnList  = 50
	overviewTime = 800 * time.Millisecond
	tallyRows    = 8
	tallyMore    = 100
)

// calls serves the page of calls, and what was running at an instant.
func (s *Site) calls(w http.ResponseWriter, r *http.Request) error {
	params := r.URL.Query()
	clean, already := tidied(params)
	if !already {
		seeOther(w, callsHref(clean))
		return nil
	}
	if clean.Has("at") {
		return s.instant(w, r, clean)
	}
	view := &callListView{frame: s.newFrame(r, "Calls", "calls"), Ever: callsHref(url.Values{"outcome": {string(oda.CallFailed)}})}
	view.Crumbs = []crumb{{Name: "Calls"}}
	if len(clean) == 0 {
		usual, err := s.fillUsual(r.Context(), view)
		if err != nil {
			return err
		}
		if usual == nil {
			return s.page(w, r, "callpage", view)
		}
		clean = usual
	}
	q, err := calls.Parse(clean)
	view.Form = newCallForm(clean, err)
	if oda.CodeOf(err) == oda.InvalidQuery {
		return s.unkept(w, http.StatusBadRequest, "callpage", view)
	}
	if err != nil {
		return err
	}
	if !clean.Has("limit") {
		q.Limit = callsOnList
	}
	if err := s.fillCalls(r.Context(), view, q, clean); err != nil {
		return err
	}
	return s.page(w, r, "callpage", view)
}

// fillUsual returns what is asked for if nobody asks for anything: the calls that failed in
// the last day, or in the last night before that which has calls; nil if there are none.
func (s *Site) fillUsual(ctx context.Context, view *callListView) (url.Values, error) {
	const hour = oda.Instant(time.Hour / time.Microsecond)
	to := (oda.InstantOf(time.Now())/hour + 1) * hour
	from := to - 24*hour
	of := func(from, to oda.Instant) url.Values {
		return url.Values{"outcome": {string(oda.CallFailed)}, "from": {inAddress(from)}, "to": {inAddress(to)}}
	}
	params := of(from, to)
	view.Usual = "of the last 24 hours"
	if s.findsCalls(ctx, params, 0) {
		return params, nil
	}
	day := night.Query{From: from, To: to}
	report, err := s.cfg.Nights.Report(ctx, day)
	if err != nil {
		return nil, err
	}
	if view.Quiet = report.Calls; view.Quiet > 0 {
		return params, nil
	}
	before, _ := s.nightsAround(ctx, day, url.Values{})
	if before == nil {
		return nil, nil
	}
	last, err := s.cfg.Nights.Zones().Parse(url.Values{"date": {before.Date}})
	if err != nil {
		return nil, err
	}
	if report, err = s.cfg.Nights.Report(ctx, last); err != nil {
		return nil, err
	}
	view.Usual = "of the night of " + before.Date + ", the last with calls"
	if report.Failures == 0 {
		view.Quiet = report.Calls
	}
	return of(last.From, last.To), nil
}

// zone is the time zone of the archive.
func (s *Site) zone() *time.Location { return s.nowIn(nil).Location() }

// fillCalls puts the calls that a question finds into the view, with what there is to say of
// all of them.
func (s *Site) fillCalls(ctx context.Context, view *callListView, q calls.Query, params url.Values) error {
	page, err := s.cfg.Calls.Page(ctx, q)
	if err != nil {
		return err
	}
	view.Failed, view.JSON = q.Outcome == oda.CallFailed, view.Root+"api/v1/calls"+question(params)
	if view.Rows, err = s.callRows(ctx, view.frame, page.Calls); err != nil {
		return err
	}
	filters := without(params, "cursor", "")
	if params.Has("cursor") {
		view.First = callsHref(filters)
	}
	if page.Next != nil {
		view.Next = callsHref(with(filters, "cursor", *page.Next))
		view.Partial = len(page.Calls) < q.Limit
	}
	view.Live = view.Failed && view.First == "" && (q.To == nil || *q.To > oda.InstantOf(time.Now()))
	if len(page.Calls) == 0 && page.Next == nil && view.First == "" {
		if view.Usual == "" {
			view.Loosen = s.loosenCalls(ctx, view.Form.Chips)
		}
		return nil
	}
	return s.fillOverview(ctx, view, q, filters, page.Calls)
}

// fillOverview counts the calls of a question. Some of them are known.
func (s *Site) fillOverview(ctx context.Context, view *callListView, q calls.Query, filters url.Values, known []oda.CallEntry) error {
	q.Behind, q.Within = nil, overviewTime
	from, to, err := s.ends(ctx, q, known)
	if err != nil {
		return err
	}
	zone := s.zone()
	bars := barsOf(from, to, zone)
	by := []calls.By{calls.ByBlock, calls.ByError, calls.ByRequest, calls.ByDevice, calls.ByTelescope}
	o, err := s.cfg.Calls.Overview(ctx, q, bars, by...)
	if err != nil {
		return err
	}
	if !view.Failed {
		view.OnlyFailed = callsHref(with(filters, "outcome", string(oda.CallFailed)))
	}
	view.Complete, view.Blocks = o.Complete, plural(int64(len(o.Tallies[0].Tally)), "ExecutionBlock")
	for _, block := range o.Tallies[0].Tally {
		view.Calls += block.Calls
		view.Failures += block.Failures
	}
	if view.Complete && view.Calls <= tableCalls {
		view.CSV = "calls.csv" + question(without(filters, "limit", ""))
	}
	view.Spread = drawSpread(o.Bars, bars.Width, q, filters, zone)
	for i, of := range []struct{ name, param string }{{"Errors", "error"}, {"Functions", "request"}, {"Devices", "device"}, {"Telescopes", "telescope"}} {
		t := newCallTally(o.Tallies[i+1], of.name, of.param, filters)
		t.Failed = t.Failed || view.Failed
		if len(t.Rows) > 0 && (of.param != "telescope" && !filters.Has(of.param) || len(t.Rows) > 1) {
			view.Tallies = append(view.Tallies, t)
		}
	}
	return nil
}

// ends returns the range of the drawing: the one that is asked for, or else that of the calls.
func (s *Site) ends(ctx context.Context, q calls.Query, known []oda.CallEntry) (from, to oda.Instant, err error) {
	q.Limit = 1
	one := func(oldest bool) (oda.Instant, error) {
		q.OldestFirst = oldest
		page, err := s.cfg.Calls.Page(ctx, q)
		if err != nil || len(page.Calls) == 0 {
			return known[0].At, err
		}
		return page.Calls[0].At, nil
	}
	if len(known) == 0 {
		known = []oda.CallEntry{{At: oda.InstantOf(time.Now())}}
	}
	if q.From != nil {
		from = *q.From
	} else if from, err = one(true); err != nil {
		return 0, 0, err
	}
	if q.To != nil {
		return from, *q.To, nil
	}
	to, err = one(false)
	return from, max(from, to) + 1, err
}

// newCallTally writes a tally down, with links to its calls.
func newCallTally(of *calls.Tally, name, param string, filters url.Values) callTally {
	t := callTally{Name: name, Others: len(of.Tally) > tallyRows+tallyMore}
	counts := of.Tally
	if param == "error" { // calls that did not fail have none
		counts = slices.DeleteFunc(slices.Clone(counts), func(c calls.Count) bool { return c.Failures == 0 })
		t.Failed = true
	}
	shown, most := counts[:min(len(counts), tallyRows+tallyMore)], int64(1)
	keys := make([]string, len(shown))
	for i, c := range shown {
		if t.Failed {
			shown[i].Calls = c.Failures
		}
		if most = max(most, shown[i].Calls); c.Key != nil {
			keys[i] = *c.Key
		}
	}
	names := keys
	if param == "request" {
		names = tellApart(keys)
	}
	for i, c := range shown {
		row := tallied{Key: keys[i], Name: names[i], Calls: c.Calls, Failures: c.Failures, Share: share(c.Calls, most), Bad: share(c.Failures, most)}
		if param == "telescope" {
			row.Name = showTelescope(row.Key)
		}
		if row.Key != "" && len(row.Key) <= oda.MaxParam {
			row.Href = callsHref(with(filters, param, row.Key))
		}
		if i < tallyRows {
			t.Rows = append(t.Rows, row)
		} else {
			t.More = append(t.More, row)
		}
	}
	return t
}

// share is a part in per cent.
func share(part, of int64) string { return percent(int(1000*part/of), 1000) }

// callRows are calls with the names of their blocks, and where they are in their timelines.
func (s *Site) callRows(ctx context.Context, f frame, found []oda.CallEntry) ([]foundCall, error) {
	var refs []oda.Ref
	known := make(map[string]int)
	for _, e := range found {
		if _, ok := known[e.Block]; !ok {
			known[e.Block] = len(refs)
			refs = append(refs, oda.Ref{Kind: oda.ExecutionBlock, ID: e.Block})
		}
	}
	blocks, err := s.cfg.Archive.Look(ctx, refs)
	if err != nil {
		return nil, err
	}
	titles, err := s.cfg.Names.Of(ctx, blocks)
	if err != nil {
		return nil, err
	}
	rows := make([]foundCall, len(found))
	for i, e := range found {
		at := known[e.Block]
		_, name := lastName(e.Request)
		if e.Error != nil && e.Error.Type != nil && e.Error.Detail != nil { // which often begins with it
			detail := strings.TrimSpace(strings.TrimPrefix(*e.Error.Detail, *e.Error.Type+":"))
			e.Error = &oda.CallError{Type: e.Error.Type, Detail: &detail}
		}
		rows[i] = foundCall{CallEntry: e, Name: name, Title: titles[at], Href: f.EntityHref(refs[at]) + "?call=" + strconv.FormatInt(e.Sequence, 10) + "#timeline"}
		if e.Took != nil {
			rows[i].Took = showElapsed(*e.Took)
		}
	}
	return rows, nil
}
