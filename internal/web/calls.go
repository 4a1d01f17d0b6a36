package web

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"oda"
	"oda/internal/rawjson"
)

// callsView is a page of the calls of a block, and what can be said of all.
type callsView struct {
	Root, Block string
	State       url.Values // the parameters that name an older state, none for the current one
	Total       int64      // 0 if it is not known yet
	Failures    int64      // of those that are known; final if Settled
	Looked      bool       // all of them are known
	Full        int64      // these are known, and no more will be; 0 if there is room for all
	Begin, End  *oda.Instant
	Troubles    []trouble  // in the order of time, none unless Settled
	Forgotten   bool       // there are other troubles
	Call        *callPanel // the one that the address names
	Functions   []string
	Function    string // the one that is shown, or empty
	Outcome     string // the one that is shown, or empty
	Rows        []callRow
	All         string // addresses of other parts
	Only        string
	First       string
	Before      string
	After       string
	Last        string
	NoCall      string // the one that the address names, if there is none

	before, wanted int64 // calls that the filter leaves: those before the rows, and all
	placed         bool  // these numbers are final
	lastPage       int64 // the call after which the last of them begin

	next  []int64 // the first calls that the filter leaves, as the index knows them
	until int64   // it knows no others up to this one
	bytes int     // of the rows
	day   string  // of the last row that has one

	drawn url.Values // the parameters that say what the timeline shows

	back      int64 // the previous page begins after this call, or a later one
	backKnown bool
}

// Lasted is how long it took from the first call to the last.
func (v *callsView) Lasted() string {
	if v.Begin == nil || *v.Begin == *v.End {
		return ""
	}
	return showElapsed(oda.Elapsed(*v.End - *v.Begin))
}

// Settled reports whether what was counted is final until more is recorded.
func (v *callsView) Settled() bool { return v.Looked || v.Full > 0 }

// Filtered reports whether some calls are left out.
func (v *callsView) Filtered() bool { return v.Function != "" || v.Outcome != "" }

// LastRow is the sequence of the last call of the table.
func (v *callsView) LastRow() int64 {
	if len(v.Rows) == 0 {
		return 0
	}
	return v.Rows[len(v.Rows)-1].Sequence
}

// CallHref is the address of a call on the page of its block.
func (v *callsView) CallHref(sequence int64) string {
	return v.href(url.Values{"call": {strconv.FormatInt(sequence, 10)}}, "timeline")
}

// Closed is the address of the page without a call.
func (v *callsView) Closed() string { return v.href(url.Values{}, "timeline") }

// href is the address of the page with other parameters, the same state, the same part of
// the timeline and the same filter.
func (v *callsView) href(p url.Values, anchor string) string {
	if v.Function != "" {
		p.Set("function", v.Function)
	}
	if v.Outcome != "" {
		p.Set("calls", v.Outcome)
	}
	return v.unfiltered(p, anchor)
}

// unfiltered is href without the filter.
func (v *callsView) unfiltered(p url.Values, anchor string) string {
	maps.Copy(p, v.State)
	maps.Copy(p, v.drawn)
	return v.Block + question(p) + "#" + anchor
}

// callRow is a call.
type callRow struct {
	Sequence       int64
	Day            string // of the call, if it is not that of the row before
	Module, Name   string
	Sent, Received *oda.Instant
	Took           string // empty if it is not known
	Failed         bool
	Status         string
	Arguments      string
	Result         string
	Problem, Trace string
	ErrorType      string // empty if it is not known
	Record         string // as it was sent, indented
}

// size is how many bytes of the page are those of the call.
func (r *callRow) size() int {
	return len(r.Arguments) + len(r.Result) + len(r.Problem) + len(r.Trace) + len(r.Record)
}

// Bounds of a page of calls.
const (
	callsOnPage   = 100
	callsScanned  = 1000                  // at once, most of which a filter leaves out
	callsBytes    = 120 << 10             // bytes of them, which may hardly compress
	callsLookTime = 20 * time.Millisecond // for those that a filter leaves; the next page goes on
	shownText     = 2000                  // bytes of a result, an argument or an error
	shownInFull   = 50_000                // of the call that is looked at
)

// newCallsView sums up the calls of a block, as far as they can be read in a moment.
func (s *Site) newCallsView(ctx context.Context, of *blockState, params url.Values, most time.Duration) (*callsView, error) {
	x, done, err := s.index(ctx, of, most)
	if err != nil {
		return nil, err
	}
	defer done()
	f := callFilterOf(params)
	v := &callsView{
		Root: entityRoot, Block: of.id, State: of.params, Total: x.total(), Failures: x.failures, Looked: x.complete,
		Functions: x.functions.all, Function: f.function, Outcome: f.outcome,
		drawn: withoutEmpty(url.Values{"by": params["by"], "from": params["from"], "to": params["to"]}),
	}
	if f.function != "" && !slices.Contains(v.Functions, f.function) { // not yet, perhaps
		v.Functions = append(slices.Clone(v.Functions), f.function)
	}
	if v.Filtered() {
		v.next, v.until = x.wanted(f, afterIn(params))
	}
	if x.full {
		v.Full = int64(len(x.calls))
	}
	v.before, v.wanted, v.lastPage = x.place(f, afterIn(params))
	v.placed = x.complete || x.full && afterIn(params) <= x.last
	v.back, v.backKnown = x.pageBack(afterIn(params))
	if v.Settled() && len(x.calls) > 0 {
		l := x.layout(x.by(""))
		v.Begin, v.End = &l.focus[0], &l.focus[1]
		v.Troubles, v.Forgotten = x.inOrder(v.CallHref)
	}
	v.All, v.Only = v.unfiltered(url.Values{}, "calls"), v.unfiltered(url.Values{"calls": {"failed"}}, "calls")
	if named := params.Get("call"); named != "" {
		sequence, _ := strconv.ParseInt(named, 10, 64) // there is no call 0
		v.Call, err = s.callPanel(ctx, x, of, v, sequence)
		if oda.CodeOf(err) == oda.NotFound {
			v.NoCall, err = clipped(named, nameLength), nil
		}
	}
	return v, err
}

// callsOf reads a page of the calls of a block.
func (s *Site) callsOf(ctx context.Context, of *blockState, params url.Values) (*callsView, error) {
	v, err := s.newCallsView(ctx, of, params, pageIndexTime)
	if err != nil {
		return nil, err
	}
	after, more := afterIn(params), int64(0)
	if of.old != nil {
		more, err = v.readOld(of.old, after)
	} else {
		more, err = s.readCalls(ctx, v, after)
	}
	if err != nil {
		return nil, err
	}
	href := func(after int64) string {
		p := url.Values{}
		if after > 0 {
			p.Set("after", strconv.FormatInt(after, 10))
		}
		return v.href(p, "calls")
	}
	if after > 0 {
		v.First = href(0)
		if !v.Filtered() && v.backKnown {
			before, err := s.pageBefore(ctx, of, v.back, after)
			if err != nil {
				return nil, err
			}
			v.Before = href(before)
		}
	}
	if more > 0 {
		v.After = href(more)
		if v.Looked && v.lastPage > v.LastRow() {
			v.Last = href(v.lastPage)
		}
	}
	return v, nil
}

// Place says which calls the rows are, if there are others.
func (v *callsView) Place() string {
	if v.First == "" && v.After == "" || len(v.Rows) == 0 || !v.placed {
		return ""
	}
	text := thousands(v.before + 1)
	if len(v.Rows) > 1 {
		text += "–" + thousands(v.before+int64(len(v.Rows)))
	}
	text += " of "
	if !v.Looked {
		text += "more than "
	}
	return text + thousands(v.wanted)
}

// pageBefore finds the page that ends with a call, as long as a page may be, and returns
// the call after which it begins. It does not go back beyond begin.
func (s *Site) pageBefore(ctx context.Context, of *blockState, begin, end int64) (int64, error) {
	var rows []callRow
	for r, err := range s.records(ctx, of, begin, callsOnPage) {
		if err != nil {
			return 0, err
		}
		if r.Sequence > end {
			break
		}
		rows = append(rows, newCallRow(r, oda.CallOf(r.Text), shownText))
	}
	bytes := 0
	for i := len(rows) - 2; i >= 0; i-- { // the last one is on the page however long it is
		if bytes += rows[i].size(); bytes > callsBytes {
			return rows[i].Sequence, nil
		}
	}
	return begin, nil
}

// afterIn is the call after which an address asks for others, 0 for the first ones.
func afterIn(params url.Values) int64 {
	after, _ := strconv.ParseInt(params.Get("after"), 10, 64)
	return max(0, after)
}

// readCalls reads the rows after a sequence number, and returns the one after which there
// are more, 0 if there are none. However busy the machine is, it reads enough for a short
// block to be on one page.
func (s *Site) readCalls(ctx context.Context, v *callsView, after int64) (more int64, err error) {
	late, enough := time.Now().Add(callsLookTime), after+callsScanned
	for {
		var limit int
		after, limit = v.nextRead(after)
		page, err := s.recordPage(ctx, v.Block, after, limit)
		if err != nil {
			return 0, err
		}
		for i := range page.Records {
			r := &page.Records[i]
			after = r.Sequence
			if v.add(r) {
				if v.follows(after, page.More || i+1 < len(page.Records)) {
					return after, nil
				}
				return 0, nil
			}
		}
		if !v.follows(after, page.More) {
			return 0, nil
		}
		if !v.Filtered() || len(v.next) == 0 && after > enough && time.Now().After(late) {
			return after, nil
		}
	}
}

// readOld is readCalls for an older state.
func (v *callsView) readOld(e *oda.Entity, after int64) (more int64, err error) {
	late, enough := time.Now().Add(callsLookTime), after+callsScanned
	full := false
	for r, err := range recordsAfter(e, after) {
		if err != nil || full {
			return after, err
		}
		after = r.Sequence
		if full = v.add(r) || after > enough && after%100 == 0 && time.Now().After(late); full && !v.follows(after, true) {
			break
		}
	}
	return 0, nil
}

// add adds a row if the call passes the filter, and reports whether the page is full.
func (v *callsView) add(r *oda.Record) bool {
	call := oda.CallOf(r.Text)
	if !(callFilter{v.Function, v.Outcome}).wants(keptName(string(call.Request())), call.Failed) {
		return false
	}
	row := newCallRow(r, call, shownText)
	if row.Sent != nil {
		if day := row.Sent.Time().Format(time.DateOnly); day != v.day {
			row.Day, v.day = day, day
		}
	}
	v.bytes += row.size()
	v.Rows = append(v.Rows, row)
	return len(v.Rows) == callsOnPage || v.bytes > callsBytes
}

// nextRead says after which call to read on, and how many. Where the index knows which
// calls are wanted, only those near each other are read together.
func (v *callsView) nextRead(after int64) (from int64, limit int) {
	if !v.Filtered() {
		return after, callsOnPage
	}
	v.passed(after)
	if len(v.next) == 0 {
		return max(after, v.until), callsScanned
	}
	first, last := v.next[0], v.next[0]
	for _, sequence := range v.next {
		if sequence-first < callsOnPage {
			last = sequence
		}
	}
	return first - 1, int(last - first + 1)
}

// passed forgets the wanted calls up to one that was read.
func (v *callsView) passed(sequence int64) {
	for len(v.next) > 0 && v.next[0] <= sequence {
		v.next = v.next[1:]
	}
}

// follows reports whether more calls pass the filter after one that was read, given that
// others come after it.
func (v *callsView) follows(sequence int64, others bool) bool {
	v.passed(sequence)
	return others && (!v.Filtered() || !v.Looked || len(v.next) > 0)
}

// newCallRow reads a record for people.
func newCallRow(r *oda.Record, call oda.Call, room int) callRow {
	row := callRow{Sequence: r.Sequence, Sent: call.Sent(), Received: call.Received(), Failed: call.Failed, ErrorType: errorType(call.Error())}
	row.Module, row.Name = lastName(string(call.Request()))
	if took, known := call.Took(); known {
		row.Took = showElapsed(took)
	}
	for key, value := range rawjson.Members(r.Text) {
		switch string(key) {
		case "status":
			row.Status = short(value, shownText)
		case "request_args":
			row.Arguments = arguments(value, room)
		case "response":
			row.Result = member(value, "result", room)
		case "error":
			row.Problem, row.Trace = member(value, "detail", room), member(value, "stacktrace", room)
		}
	}
	if row.Failed && row.Status == "" {
		row.Status = "failed"
	}
	row.Record = indented(r.Text, 2*room)
	return row
}

// member reads a member of an object for people; where there is none, the whole
// object.
func member(object []byte, name string, room int) string {
	for key, value := range rawjson.Members(object) {
		if string(key) == name {
			return short(value, room)
		}
	}
	if name == "stacktrace" || string(object) == "null" {
		return ""
	}
	return short(object, room)
}

// arguments writes the arguments of a call as in a program, without those that
// are empty.
func arguments(value []byte, room int) string {
	if len(value) == 0 || value[0] != '{' {
		return short(value, room)
	}
	var text strings.Builder
	add := func(parts ...string) {
		if text.Len() > 0 {
			text.WriteString(", ")
		}
		for _, part := range parts {
			text.WriteString(part)
		}
	}
	for key, value := range rawjson.Members(value) {
		switch {
		case string(value) == "[]" || string(value) == "{}" || string(value) == "null":
		case string(key) == "kwargs" && value[0] == '{':
			for name, value := range rawjson.Members(value) {
				if text.Len() > room {
					break
				}
				add(string(name), "=", readable(string(value)))
			}
		case string(key) == "args" && value[0] == '[':
			add(readable(string(value[1 : len(value)-1])))
		default:
			add(string(key), "=", readable(string(value)))
		}
	}
	return beginning(text.String(), room)
}

// short reads a value: the content of a string, or else its text.
func short(value []byte, room int) string {
	switch {
	case string(value) == "null":
		return ""
	case len(value) > 0 && value[0] == '"':
		return beginning(rawjson.Unquote(value), room)
	}
	return beginning(readable(string(value)), room)
}

// indented writes a record with a value to a line, if it is not too long.
func indented(text []byte, room int) string {
	if len(text) > room {
		return ""
	}
	var out bytes.Buffer
	if json.Indent(&out, text, "", "  ") != nil {
		return string(text)
	}
	return out.String()
}
