package web

import (
	"context"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"oda"
	"oda/night"
)

// nightView is the data for the page of a night.
type nightView struct {
	frame
	Date, Telescope, Zone string            // as they stand in the form
	Faults                map[string]string // by the name of the parameter; then there is no report
	*night.Report
	Rows             []nightRow
	More             int // blocks that are not in the table
	Plot             nightPlot
	Earlier, Later   string      // addresses
	Tonight          string      // of the night that has begun today, empty on its page and before noon
	LastNight        string      // empty on its page
	SoFar            bool        // the night is not over
	Everywhere       string      // the address of the night with all telescopes
	JSON             string      // of the report
	Before, After    *otherNight // with calls, if this one has none
	Success, InCalls string
	Slow             []slowRow
	Failing          []failingRow
	OfFailing        string // how many functions failed in all
}

// otherNight leads to another night.
type otherNight struct{ Date, Href string }

// nightRow is a block in the table of a night.
type nightRow struct {
	night.Block
	Name, Telescope, InCalls string
}

// slowRow is a slow call. The title is that of its block.
type slowRow struct {
	night.SlowCall
	Name, Title, Took, Href string
}

// failingRow is a function with calls that failed.
type failingRow struct {
	night.FailedRequest
	Name string
	In   []failedIn // blocks
	More bool       // it failed in more blocks
}

// failedIn leads to the calls of a function that failed in a block.
type failedIn struct{ Block, Href string }

// nightPlot is the night drawn: a bar for each block on one axis of time.
type nightPlot struct {
	Width, Height int
	Lanes         []lane
	Ticks         []tick
	Bars          template.HTML
}

type lane struct {
	Y    int
	Name string
}

type tick struct {
	X    int
	Text string
}

// Sizes of the drawing, and bounds of the page.
const (
	plotWidth    = 1200
	plotLeft     = 90
	plotTop      = 26
	barHeight    = 22
	laneGap      = 6
	nightRows    = 200
	nightBars    = 1000
	nightOverlap = 12 // rows of a telescope; what overlaps beyond shares the last
	nightFailing = 20
	nightSlow    = 10
	nightHours   = 6 // that are drawn at least
)

// night serves the report on a night.
func (s *Site) night(w http.ResponseWriter, r *http.Request) error {
	params := r.URL.Query()
	clean, already := tidied(params)
	if !clean.Has("date") {
		clean.Set("date", night.Last(nowIn(clean.Get("zone"))))
		already = false
	}
	if !already {
		seeOther(w, "night"+question(clean))
		return nil
	}
	for name := range clean {
		if name != "date" && name != "telescope" && name != "zone" {
			clean.Del(name)
		}
	}
	view := nightView{frame: s.newFrame(r, "Night", "night"), Date: clean.Get("date"), Telescope: clean.Get("telescope"), Zone: clean.Get("zone")}
	view.Crumbs = []crumb{{Name: "Night"}}
	q, err := night.Parse(clean)
	if err != nil {
		view.Faults = faultsIn(err)
		return s.unkept(w, http.StatusBadRequest, "night", view)
	}
	if view.Report, err = s.cfg.Nights.Report(r.Context(), q); err != nil {
		return err
	}
	view.Title, view.Crumbs = "Night of "+view.Date, []crumb{{Name: "Night of " + view.Date}}
	view.Everywhere, view.JSON = "night"+question(without(clean, "telescope", "")), view.Root+"api/v1/night"+question(clean)
	view.lead(clean, nowIn(view.Zone))
	if view.Calls == 0 {
		view.Before, view.After = s.nightsAround(r.Context(), q, clean)
	} else if err := s.fillNight(r.Context(), &view); err != nil {
		return err
	}
	return s.page(w, r, "night", view)
}

// fillNight puts what the report has into the view.
func (s *Site) fillNight(ctx context.Context, view *nightView) error {
	view.Success, view.InCalls = showShare(view.Calls-view.Failures, view.Calls), showElapsed(view.Took)
	blocks := view.Blocks[:min(len(view.Blocks), nightRows)]
	slowest := view.Slowest[:min(len(view.Slowest), nightSlow)]
	titles, err := s.nightTitles(ctx, blocks, slowest)
	if err != nil {
		return err
	}
	for _, b := range blocks {
		view.Rows = append(view.Rows, nightRow{Block: b, Name: titles[b.ID], Telescope: telescopeOf(b), InCalls: showElapsed(b.Took)})
	}
	view.More = len(view.Blocks) - len(view.Rows)
	for _, call := range slowest {
		row := slowRow{SlowCall: call, Title: titles[call.Block], Took: showElapsed(call.Took)}
		_, row.Name = lastName(call.Request)
		row.Href = view.blockHref(call.Block, url.Values{"call": {strconv.FormatInt(call.Sequence, 10)}}) + "#timeline"
		view.Slow = append(view.Slow, row)
	}
	view.fillFailing()
	view.Plot = view.draw(titles)
	return nil
}

// showShare writes a share in per cent. It says all or none only if that is exactly so.
func showShare(n, all int64) string {
	percent := 100 * float64(n) / float64(all)
	switch {
	case n == 0 || n == all:
		return strconv.FormatFloat(percent, 'f', 0, 64) + " %"
	case percent < .1:
		return "< 0.1 %"
	case percent > 99.9:
		return "> 99.9 %"
	}
	return strconv.FormatFloat(percent, 'f', 1, 64) + " %"
}

// nowIn is the time in a zone.
func nowIn(zone string) time.Time {
	in, err := time.LoadLocation(zone)
	if err != nil {
		in = time.UTC // the page with the date says what is wrong with the zone
	}
	return time.Now().In(in)
}

// lead leads to the nights around this one, and to those that people look for most. Params
// are those of the page.
func (v *nightView) lead(params url.Values, now time.Time) {
	to := func(date string) string {
		if date == "" || date == v.Date {
			return ""
		}
		params := with(params, "date", date)
		if _, err := night.Parse(params); err != nil {
			return "" // before the first night of all, or after the last
		}
		return "night" + question(params)
	}
	if day, err := time.Parse(time.DateOnly, v.Date); err == nil {
		v.Earlier, v.Later = to(day.AddDate(0, 0, -1).Format(time.DateOnly)), to(day.AddDate(0, 0, 1).Format(time.DateOnly))
	}
	v.Tonight, v.LastNight = to(night.Tonight(now)), to(night.Last(now))
	v.SoFar = oda.Moment(oda.InstantOf(now)) >= v.From && oda.Moment(oda.InstantOf(now)) < v.To
}

// Bounds of looking for other nights.
const (
	aroundTime  = 500 * time.Millisecond
	aroundTries = 3
)

// nightsAround finds the nearest nights with calls before and after one that has none. It
// is a hint, so it takes little time.
func (s *Site) nightsAround(ctx context.Context, q night.Query, params url.Values) (before, after *otherNight) {
	ctx, cancel := context.WithTimeout(ctx, aroundTime)
	defer cancel()
	until, from := oda.DayOf(q.To-1), oda.DayOf(q.From)
	for range aroundTries {
		earlier, later, err := s.cfg.Nights.DaysAround(ctx, until, from)
		if err != nil {
			break
		}
		if before == nil && earlier != nil {
			before = s.nightOn(ctx, *earlier, params, []int{1, 0, -1, -2}, func(n night.Query) bool { return n.To <= q.From })
			until = *earlier - 1
		}
		if after == nil && later != nil {
			after = s.nightOn(ctx, *later, params, []int{-2, -1, 0, 1}, func(n night.Query) bool { return n.From >= q.To })
			from = *later + 1
		}
		if (before != nil || earlier == nil) && (after != nil || later == nil) {
			break
		}
	}
	return before, after
}

// nightOn finds a night with calls on a day. Which dates it may have depends on the
// zone.
func (s *Site) nightOn(ctx context.Context, day oda.Day, params url.Values, offsets []int, wanted func(night.Query) bool) *otherNight {
	for _, offset := range offsets {
		date := time.Unix(0, 0).UTC().AddDate(0, 0, int(day)+offset).Format(time.DateOnly)
		params := with(params, "date", date)
		n, err := night.Parse(params)
		if err != nil || !wanted(n) || oda.DayOf(n.From) > day || oda.DayOf(n.To-1) < day {
			continue
		}
		if report, err := s.cfg.Nights.Report(ctx, n); err == nil && report.Calls > 0 {
			return &otherNight{date, "night" + question(params)}
		}
	}
	return nil
}

// fillFailing tells of the functions that failed most, with names that tell them apart.
func (v *nightView) fillFailing() {
	requests := v.FailuresByRequest[:min(len(v.FailuresByRequest), nightFailing)]
	names := make([]string, len(requests))
	for i, r := range requests {
		names[i] = r.Request
	}
	for i, name := range tellApart(names) {
		row := failingRow{FailedRequest: requests[i], Name: name}
		blocks := row.Blocks[:min(len(row.Blocks), night.FailedBlocks-1)]
		row.More = len(blocks) < len(row.Blocks)
		for _, id := range blocks {
			params := url.Values{"calls": {"failed"}}
			// No call has a name that the report has cut.
			if row.Request != "" && !strings.HasSuffix(row.Request, "…") {
				params.Set("function", keptName(row.Request))
			}
			row.In = append(row.In, failedIn{id, v.blockHref(id, params) + "#calls"})
		}
		v.Failing = append(v.Failing, row)
	}
	all := int64(len(v.FailuresByRequest))
	v.OfFailing = thousands(all)
	if slices.ContainsFunc(v.FailuresByRequest, func(r night.FailedRequest) bool { return r.Request == night.OtherRequests }) {
		v.OfFailing = "more than " + thousands(all-1)
	}
}

// blockHref is the address of a block with parameters.
func (v *nightView) blockHref(block string, params url.Values) string {
	return v.EntityHref(oda.Ref{Kind: oda.ExecutionBlock, ID: block}) + question(params)
}

// nightTitles are the titles of blocks, by their identifiers.
func (s *Site) nightTitles(ctx context.Context, blocks []night.Block, calls []night.SlowCall) (map[string]string, error) {
	ids := make(map[string]string)
	for _, b := range blocks {
		ids[b.ID] = ""
	}
	for _, c := range calls {
		ids[c.Block] = ""
	}
	var refs []oda.Ref
	for id := range ids {
		refs = append(refs, oda.Ref{Kind: oda.ExecutionBlock, ID: id})
	}
	found, err := s.cfg.Archive.Look(ctx, refs)
	if err != nil {
		return nil, err
	}
	titles, err := s.cfg.Names.Of(ctx, found)
	if err != nil {
		return nil, err
	}
	for i, ref := range refs {
		ids[ref.ID] = titles[i]
	}
	return ids, nil
}

// draw draws the blocks, each from its first call until its last response. Those of a
// telescope that overlap lie below each other.
func (v *nightView) draw(titles map[string]string) nightPlot {
	p := nightPlot{Width: plotWidth + 20}
	first, last := v.hours()
	x := func(at time.Time) int {
		begin := v.From.Time().Add(time.Duration(first) * time.Hour)
		hours := min(at.Sub(begin).Hours(), float64(last-first)) // a call may last beyond the night
		return plotLeft + int(float64(plotWidth-plotLeft)*hours/float64(last-first))
	}
	step := 1
	if last-first > 12 {
		step = 2
	}
	for h := first; h <= last; h += step {
		at := v.From.Time().Add(time.Duration(h) * time.Hour)
		p.Ticks = append(p.Ticks, tick{x(at), at.Format("15:04")})
	}
	blocks := v.Blocks[:min(len(v.Blocks), nightBars)]
	var telescopes []string
	for _, b := range blocks {
		if name := telescopeOf(b); !slices.Contains(telescopes, name) {
			telescopes = append(telescopes, name)
		}
	}
	slices.Sort(telescopes)
	var bars strings.Builder // by hand, because templates take long for a thousand
	y := plotTop
	for _, telescope := range telescopes {
		p.Lanes = append(p.Lanes, lane{y + 15, clipped(showTelescope(telescope), 11)})
		var ends []oda.Moment // of the last bar in each row
		for _, b := range blocks {
			if telescopeOf(b) != telescope {
				continue
			}
			at := slices.IndexFunc(ends, func(end oda.Moment) bool { return end < b.FirstCall })
			if at < 0 && len(ends) == nightOverlap {
				at = nightOverlap - 1
			} else if at < 0 {
				at, ends = len(ends), append(ends, 0)
			}
			ends[at] = max(ends[at], b.LastResponse)
			class := ""
			if b.Failures > 0 {
				class = ` class="failed"`
			}
			title := clipped(titles[b.ID], briefText) + " " + b.ID + ": " + plural(b.Calls, "call") + ", " + thousands(b.Failures) + " failed, from " + b.FirstCall.Time().Format("15:04") + " to " + v.until(b.LastResponse)
			fmt.Fprintf(&bars, `<a href="%s"><title>%s</title><rect%s x="%d" y="%d" width="%d" height="%d" rx="2"/></a>`+"\n",
				template.HTMLEscapeString(v.EntityHref(oda.Ref{Kind: oda.ExecutionBlock, ID: b.ID})), template.HTMLEscapeString(title), class,
				x(b.FirstCall.Time()), y+at*(barHeight+2), max(3, x(b.LastResponse.Time())-x(b.FirstCall.Time())), barHeight)
		}
		y += len(ends)*(barHeight+2) + laneGap
	}
	p.Height = y + 6
	p.Bars = template.HTML(bars.String()) // #nosec G203 -- everything in it was escaped
	return p
}

// until writes when a block ended, with the date if that is not in the night.
func (v *nightView) until(end oda.Moment) string {
	if end >= v.To {
		return end.Time().Format("2006-01-02 15:04")
	}
	return end.Time().Format("15:04")
}

// hours returns the hours of the night in which calls were under way, counted from its
// noon: a night of observing is rarely longer than ten hours, and a phone shows no more.
func (v *nightView) hours() (first, last int) {
	since := func(at oda.Moment) float64 { return at.Time().Sub(v.From.Time()).Hours() }
	first, last = int(math.Ceil(since(v.To))), 0
	all := first
	for _, b := range v.Blocks {
		first = min(first, int(since(b.FirstCall)))
		last = max(last, int(math.Ceil(since(b.LastResponse))))
	}
	first = max(0, min(first, all-nightHours))
	return first, min(all, max(last, first+nightHours))
}

func telescopeOf(b night.Block) string {
	if b.Telescope == nil {
		return ""
	}
	return *b.Telescope
}
