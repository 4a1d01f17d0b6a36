package web

import (
	"encoding/json"
	"math/bits"
	"net/http"
	"net/url"
	"time"

	"oda"
)

// A timeline draws every call of a block as a bar. A long one is drawn from a
// reduction: what would be narrower than a pixel or two is joined into one bar,
// which counts its calls and failures. The nearer one looks, the fewer are joined.

// timelineData is what a timeline is drawn from. Times are in microseconds, those
// of bars and gaps from Begin.
type timelineData struct {
	Version   int64            `json:"version"`
	Last      int64            `json:"last"`  // sequence of the last call
	Calls     int              `json:"calls"` // of the block
	Failures  int64            `json:"failures"`
	Complete  bool             `json:"complete"` // every call was read
	Full      bool             `json:"full"`     // more follow than are drawn
	Begin     oda.Instant      `json:"begin"`    // of the block
	End       oda.Instant      `json:"end"`
	Focus     [2]oda.Instant   `json:"focus"` // where nearly all calls are
	Beyond    int              `json:"beyond"`
	From      oda.Instant      `json:"from"` // of what is drawn
	To        oda.Instant      `json:"to"`
	By        string           `json:"by"`
	Lanes     []callLane       `json:"lanes"`
	Functions []string         `json:"functions"`
	Bars      []callBar        `json:"bars"`
	Gaps      [][2]oda.Instant `json:"gaps"`
	Overview  [][2]int64       `json:"overview"` // calls at a time, and failures, in equal parts of Focus
}

// callBar is a call, or several that are too close to be told apart: lane, row, begin
// and length, calls, failures, the sequence, the function and the length of the
// longest call, and whether the length of the only call is unknown. Calls that
// failed are never joined with others.
type callBar [10]int64

const (
	barLane = iota
	barRow
	barBegin
	barLength
	barCalls
	barFailures
	barSequence
	barFunction
	barLongest
	barUnknown
)

// Bounds of an answer.
const (
	mostBars      = 5000
	mostParts     = 8000 // in which the time is divided
	mostGaps      = 50
	overviewParts = 400
	pageIndexTime = 30 * time.Millisecond  // a page is shown meanwhile
	indexTime     = 150 * time.Millisecond // of a request, which the next one continues
)

// callFilter says which calls are shown.
type callFilter struct {
	function string // empty: all
	outcome  string // "failed", "ok", or empty: both
}

func callFilterOf(params url.Values) callFilter {
	f := callFilter{function: unmasked(params.Get("function")), outcome: params.Get("calls")}
	if f.outcome != "failed" && f.outcome != "ok" {
		f.outcome = ""
	}
	return f
}

// wants reports whether a call is shown.
func (f callFilter) wants(function string, failed bool) bool {
	return (f.function == "" || f.function == function) && (f.outcome == "" || (f.outcome == "failed") == failed)
}

// in returns the filter for the calls of an index.
func (f callFilter) in(x *callIndex) func(i int32) bool {
	return func(i int32) bool { return f.wants(x.functions.all[x.calls[i].function], x.calls[i].failed) }
}

// timeline serves what the timeline of a block is drawn from.
func (s *Site) timeline(w http.ResponseWriter, r *http.Request) error {
	return s.ofIndex(w, r, func(x *callIndex, params url.Values) any { return x.reduce(params) })
}

// ofIndex serves what the index of the calls of a block answers.
func (s *Site) ofIndex(w http.ResponseWriter, r *http.Request, answer func(x *callIndex, params url.Values) any) error {
	params := r.URL.Query()
	of, err := s.blockState(r.Context(), r.PathValue("id"), params)
	if err != nil {
		return err
	}
	x, done, err := s.index(r.Context(), of, indexTime)
	if err != nil {
		return err
	}
	data := answer(x, params)
	done()
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	newFile("application/json", text).serve(w, r, privateCache, filePolicy)
	return nil
}

// reduce makes the data for the part of the time that is asked for.
func (x *callIndex) reduce(params url.Values) *timelineData {
	by := x.by(params.Get("by"))
	l := x.layout(by)
	d := &timelineData{
		Version: x.version, Last: x.last, Calls: len(x.calls), Failures: x.failures, Complete: x.complete, Full: x.full,
		Begin: l.begin, End: l.end, Focus: l.focus, Beyond: l.beyond, From: l.begin, To: l.end,
		By: by, Lanes: append([]callLane{}, l.lanes...), Functions: append([]string{}, x.functions.all...), Bars: []callBar{}, Gaps: [][2]oda.Instant{}, Overview: l.overview(x.calls),
	}
	// What is asked for may be anything, and must not overflow.
	d.From = min(max(oda.Instant(wholeIn(params, "from", int64(l.focus[0]))), l.begin), l.end)
	d.To = min(max(oda.Instant(wholeIn(params, "to", int64(l.focus[1]))), d.From), l.end)
	parts := min(max(wholeIn(params, "parts", 1000), 10), mostParts)
	wanted := callFilterOf(params).in(x)
	// Parts are powers of two, so that bars stay as they are when one moves about.
	for part := oda.Instant(1) << bits.Len64(uint64((d.To-d.From)/oda.Instant(parts))); ; part *= 2 {
		if bars := l.bars(x.calls, wanted, d.From, d.To, part); len(bars) <= mostBars {
			d.Bars = append(d.Bars, bars...)
			break
		}
	}
	d.Gaps = append(d.Gaps, l.gaps(d.From, d.To)...)
	return d
}

// bars reduces the calls of a part of the time to bars. Calls of a row that are
// shorter than a part and begin in the same one are joined, those that failed and
// those that did not.
func (l *layout) bars(calls []indexedCall, wanted func(int32) bool, from, to, part oda.Instant) []callBar {
	var all []callBar
	open := [2]int{-1, -1} // the bars into which more may be joined
	var until [2]oda.Instant
	for _, i := range l.drawn {
		p, c := &l.places[i], &calls[i]
		if p.end < from || p.begin > to || !wanted(i) {
			continue
		}
		b := callBar{
			barLane: int64(p.lane), barRow: int64(p.row), barBegin: int64(p.begin - l.begin), barLength: int64(p.end - p.begin),
			barCalls: 1, barSequence: c.sequence, barFunction: int64(c.function), barLongest: int64(c.took),
		}
		if c.failed {
			b[barFailures] = 1
		}
		if c.took < 0 {
			b[barUnknown] = 1
		}
		// In the last row calls overlap, so any of them are joined.
		joins := p.end-p.begin < part || p.row == mostRows-1
		into := open[b[barFailures]]
		if joins && into >= 0 && all[into].sameRow(&b) && max(p.begin, from) < until[b[barFailures]] {
			all[into].join(&b)
			continue
		}
		if joins {
			open[b[barFailures]] = len(all)
			until[b[barFailures]] = l.begin + ((max(p.begin, from)-l.begin)/part+1)*part
		}
		if all = append(all, b); len(all) > mostBars {
			break
		}
	}
	return all
}

func (b *callBar) sameRow(c *callBar) bool { return b[barLane] == c[barLane] && b[barRow] == c[barRow] }

// join adds a call to a bar.
func (b *callBar) join(c *callBar) {
	if c[barLongest] > b[barLongest] {
		b[barSequence], b[barFunction] = c[barSequence], c[barFunction]
	}
	b[barCalls]++
	b[barFailures] += c[barFailures]
	b[barLongest] = max(b[barLongest], c[barLongest])
	b[barLength] = max(b[barLength], c[barBegin]+c[barLength]-b[barBegin])
	b[barUnknown] = 0
}

// gaps finds the longest times in which nothing was called, in the order of time.
func (l *layout) gaps(from, to oda.Instant) [][2]oda.Instant {
	least := (to - from) / mostGaps
	var all [][2]oda.Instant
	end := l.end
	for n, i := range l.byBegin {
		p := &l.places[i]
		if n > 0 && p.begin-end > least && end < to && p.begin > from {
			all = append(all, [2]oda.Instant{end - l.begin, p.begin - l.begin})
		}
		if n == 0 || p.end > end {
			end = p.end
		}
	}
	return all
}

// overview counts the calls at a time and the failures in equal parts of the
// time of nearly all calls.
func (l *layout) overview(calls []indexedCall) [][2]int64 {
	parts := make([][2]int64, overviewParts+1)
	length := l.focus[1] - l.focus[0] + 1
	at := func(t oda.Instant) int { // in thousands of years, rounding may lead beyond the last part
		return min(int(float64(t-l.focus[0])/float64(length)*overviewParts), overviewParts-1)
	}
	for i := range calls {
		p := &l.places[i]
		if p.begin < l.focus[0] || p.end > l.focus[1] {
			continue
		}
		first, last := at(p.begin), at(p.end)
		parts[first][0]++
		parts[last+1][0]--
		if calls[i].failed {
			parts[first][1]++
		}
	}
	for i := range overviewParts {
		parts[i+1][0] += parts[i][0]
	}
	return parts[:overviewParts]
}
