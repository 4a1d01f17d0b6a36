package web

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"oda"
	"oda/night"
)

// nightView is the data for the page of a night.
type nightView struct {
	frame
	Date, Telescope, Zone string            // as they stand in the form
	Usual                 string            // the zone of the night if none is given
	Faults                map[string]string // by the name of the parameter; then there is no report
	*night.Report
	Rows           []nightRow
	More           int // blocks that are not in the table
	Plot           nightPlot
	Earlier, Later string      // addresses
	Tonight        string      // of the night that has begun today, empty on its page and before noon
	LastNight      string      // empty on its page
	SoFar          bool        // the night is not over
	Everywhere     string      // the address of the night with all telescopes
	JSON, Log      string      // addresses of the report as JSON, and as a shift log
	Before, After  *otherNight // with calls, if this one has none
	Success        string
	Wrong          []wrongRow // observations that failed
	MoreWrong      int
	Use            []useRow
	MoreUse        int // telescopes
	Failing        []failureTable
	Odd            []oddRow
	Weeks          nightWeeks
	Said           []noteRow
	Open           []noteRow
	LostTo         []lostTo

	zone    *time.Location // of the night
	now     time.Time
	overlap int // rows of a telescope at most
	known   map[string]*night.Block
}

// otherNight leads to another night.
type otherNight struct{ Date, Href string }

// nightRow is a block in the table of a night.
type nightRow struct {
	night.Block
	Name, Telescope, Lasted string
}

// wrongRow is an observation that failed.
type wrongRow struct {
	nightRow
	Reason string      // what somebody said of it
	Last   *failedCall // the last of its calls that failed
}

// useRow is how the time of a telescope was used.
type useRow struct {
	night.Telescope
	Name                      string
	BusyFor, IdleFor, LostFor string
	Failed                    int             // observations
	Lost                      []night.Stretch // from their first calls until their last responses
}

// oddRow is a call that took unusually long. The title is that of its block.
type oddRow struct {
	night.UnusualCall
	Name, Title, Took, Ratio, Href string
}

// Bounds of the page.
const (
	nightRows       = 200
	nightBars       = 1000
	nightTelescopes = 100
	nightFailing    = 10 // rows of each table
	nightOdd        = 10
	nightWrong      = 10
)

// night serves the report on a night.
func (s *Site) night(w http.ResponseWriter, r *http.Request) error {
	params := r.URL.Query()
	clean, already := tidied(params)
	if !clean.Has("date") {
		clean.Set("date", night.Last(s.nowIn(clean)))
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
	view := &nightView{frame: s.newFrame(r, "Night", "night"), Date: clean.Get("date"), Telescope: clean.Get("telescope"), Zone: clean.Get("zone")}
	view.Crumbs = []crumb{{Name: "Night"}}
	view.Usual = s.cfg.Nights.Zones().Of(view.Telescope)
	q, err := s.cfg.Nights.Zones().Parse(clean)
	if err != nil {
		view.Faults = faultsIn(err)
		return s.unkept(w, http.StatusBadRequest, "night", view)
	}
	if view.Report, err = s.cfg.Nights.Report(r.Context(), q); err != nil {
		return err
	}
	view.Title, view.Crumbs = "Night of "+view.Date, []crumb{{Name: "Night of " + view.Date}}
	view.Everywhere, view.JSON = "night"+question(without(clean, "telescope", "")), view.Root+"api/v1/night"+question(clean)
	view.Log, view.now, view.overlap = "night/log"+question(clean), s.nowIn(clean), nightOverlap
	view.zone = view.now.Location()
	view.lead(clean, s.cfg.Nights.Zones())
	view.Weeks = s.nightWeeks(r.Context(), view, clean)
	if err := s.fillSaid(r.Context(), view, q); err != nil {
		return err
	}
	if view.Calls == 0 {
		view.Before, view.After = s.nightsAround(r.Context(), q, clean)
	} else if err := s.fillNight(r.Context(), view); err != nil {
		return err
	}
	return s.page(w, r, "night", view)
}

// nightLog serves the report on a night as a shift log, in Markdown that any browser shows.
func (s *Site) nightLog(w http.ResponseWriter, r *http.Request) error {
	q, err := s.cfg.Nights.Zones().Parse(r.URL.Query())
	if err != nil {
		return err
	}
	report, err := s.cfg.Nights.Report(r.Context(), q)
	if err != nil {
		return err
	}
	text, err := s.cfg.Nights.ShiftLog(r.Context(), q, report)
	if err != nil {
		return err
	}
	newFile("text/plain; charset=utf-8", text).serve(w, r, privateCache, pagePolicy)
	return nil
}

// lostTo is how much time was lost to something.
type lostTo struct {
	Type oda.Loss
	For  string
}

// fillSaid tells what people said about the night, and what is unresolved.
func (s *Site) fillSaid(ctx context.Context, view *nightView, q night.Query) error {
	view.Said = view.noteRows(view.Notes, view.zone, false)
	open, err := s.cfg.Nights.Unresolved(ctx, q)
	if err != nil {
		return err
	}
	open = slices.DeleteFunc(open, func(f oda.Found) bool { // of the night itself
		from, _ := f.Summary.Remark.Interval(f.Metadata.CreatedOn)
		return from >= q.From
	})
	view.Open = view.noteRows(open, view.zone, true)
	for _, one := range view.TimeLost {
		view.LostTo = append(view.LostTo, lostTo{one.Type, showElapsed(one.Lost)})
	}
	return nil
}

// fillNight puts what the report has into the view.
func (s *Site) fillNight(ctx context.Context, view *nightView) error {
	view.Success = showShare(view.Calls-view.Failures, view.Calls)
	view.known = make(map[string]*night.Block)
	for i := range view.Blocks {
		view.known[view.Blocks[i].ID] = &view.Blocks[i]
	}
	for _, b := range view.Blocks[:min(len(view.Blocks), nightRows)] {
		view.Rows = append(view.Rows, newNightRow(b))
	}
	view.More = len(view.Blocks) - len(view.Rows)
	if err := s.fillWrong(ctx, view); err != nil {
		return err
	}
	view.fillUse()
	view.Failing = s.nightFailures(ctx, view)
	view.fillOdd()
	view.Plot = view.draw()
	return nil
}

func newNightRow(b night.Block) nightRow {
	row := nightRow{Block: b, Telescope: telescopeOf(b), Lasted: showElapsed(b.Busy)}
	if b.Name != nil {
		row.Name = *b.Name
	}
	return row
}

// Label is what a block is called in few words: by its targets, its name or its identifier.
func (r nightRow) Label() string { return cmp.Or(r.Targets, r.Name, r.ID) }

// fillWrong tells of the observations that failed, with what people said of them.
func (s *Site) fillWrong(ctx context.Context, view *nightView) error {
	for _, b := range view.Blocks {
		if b.Status.Class != oda.ClassFailed {
			continue
		}
		if len(view.Wrong) == nightWrong {
			view.MoreWrong++
			continue
		}
		row := wrongRow{nightRow: newNightRow(b)}
		said, err := s.cfg.Archive.Status(ctx, oda.Ref{Kind: oda.ExecutionBlock, ID: b.ID})
		if err != nil {
			return err
		}
		row.Reason, row.Last = said.Reason, s.lastFailed(ctx, view, b.ID)
		view.Wrong = append(view.Wrong, row)
	}
	return nil
}

// fillUse tells how the time of the telescopes was used. Of observations that failed, what
// overlaps counts once.
func (v *nightView) fillUse() {
	failed := make(map[string]*useRow)
	for _, t := range v.Telescopes {
		failed[orEmpty(t.Telescope)] = &useRow{Telescope: t, Name: showTelescope(orEmpty(t.Telescope)), BusyFor: showElapsed(t.Busy), IdleFor: showElapsed(t.Idle)}
	}
	for _, b := range v.Blocks { // in the order of their first calls
		if b.Status.Class == oda.ClassFailed {
			failed[telescopeOf(b)].lose(night.Stretch{From: oda.Instant(b.FirstCall), To: oda.Instant(b.LastResponse)})
		}
	}
	for _, t := range v.Telescopes[:min(len(v.Telescopes), nightTelescopes)] {
		row := failed[orEmpty(t.Telescope)]
		sum := oda.Elapsed(0)
		for _, s := range row.Lost {
			sum += oda.Elapsed(s.To - s.From)
		}
		row.LostFor = showElapsed(sum)
		v.Use = append(v.Use, *row)
	}
	v.MoreUse = len(v.Telescopes) - len(v.Use)
}

// lose adds an observation that failed, which began after those before it.
func (u *useRow) lose(one night.Stretch) {
	u.Failed++
	if n := len(u.Lost); n > 0 && one.From <= u.Lost[n-1].To {
		u.Lost[n-1].To = max(u.Lost[n-1].To, one.To)
		return
	}
	u.Lost = append(u.Lost, one)
}

// fillOdd tells of the calls that took unusually long.
func (v *nightView) fillOdd() {
	for _, call := range v.Unusual[:min(len(v.Unusual), nightOdd)] {
		row := oddRow{UnusualCall: call, Took: showElapsed(call.Took), Href: v.callHref(call.CallPlace)}
		_, row.Name = lastName(call.Request)
		row.Ratio = strconv.FormatFloat(float64(call.Took)/float64(call.Median), 'f', 1, 64) + " × the usual " + showElapsed(call.Median)
		if b := v.known[call.Block]; b != nil {
			row.Title = newNightRow(*b).Label()
		}
		v.Odd = append(v.Odd, row)
	}
}

// callHref is the address of a call in the timeline of its block.
func (v *nightView) callHref(call night.CallPlace) string {
	return v.blockHref(call.Block, url.Values{"call": {strconv.FormatInt(call.Sequence, 10)}}) + "#timeline"
}

// clock is a time of the night.
type clock struct{ Local, UTC string }

// Clock is a time in the zone of the night, and in UTC if that is another.
func (v *nightView) Clock(m oda.Moment) clock {
	at := clock{Local: m.Time().In(v.zone).Format("15:04:05")}
	if v.Report.Zone != "UTC" {
		at.UTC = m.Time().Format("15:04:05")
	}
	return at
}

// Number is how many blocks there are.
func (v *nightView) Number() int64 { return int64(len(v.Blocks)) }

// Printed is how many blocks are printed, so that a night is printed on one page.
func (v *nightView) Printed() int {
	if len(v.Said) > 0 {
		return 6
	}
	return 25
}

// FailedObservations is how many of them failed.
func (v *nightView) FailedObservations() int { return len(v.Wrong) + v.MoreWrong }

// Begin is when the night begins, in its zone.
func (v *nightView) Begin() string { return v.From.Time().In(v.zone).Format("2006-01-02 15:04") }

// End is when the night ends, in its zone.
func (v *nightView) End() string { return v.To.Time().In(v.zone).Format("2006-01-02 15:04") }

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

// nowIn is the time in the zone of the night that parameters ask for.
func (s *Site) nowIn(params url.Values) time.Time {
	zone := cmp.Or(params.Get("zone"), s.cfg.Nights.Zones().Of(params.Get("telescope")))
	in, err := time.LoadLocation(zone)
	if err != nil {
		in = time.UTC // the page with the date says what is wrong with the zone
	}
	return time.Now().In(in)
}

// lead leads to the nights around this one, and to those that people look for most. Params
// are those of the page.
func (v *nightView) lead(params url.Values, zones *night.Zones) {
	now := v.now
	to := func(date string) string {
		if date == "" || date == v.Date {
			return ""
		}
		params := with(params, "date", date)
		if _, err := zones.Parse(params); err != nil {
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
		n, err := s.cfg.Nights.Zones().Parse(params)
		if err != nil || !wanted(n) || oda.DayOf(n.From) > day || oda.DayOf(n.To-1) < day {
			continue
		}
		if report, err := s.cfg.Nights.Report(ctx, n); err == nil && report.Calls > 0 {
			return &otherNight{date, "night" + question(params)}
		}
	}
	return nil
}

// blockHref is the address of a block with parameters.
func (v *nightView) blockHref(block string, params url.Values) string {
	return v.EntityHref(oda.Ref{Kind: oda.ExecutionBlock, ID: block}) + question(params)
}

func telescopeOf(b night.Block) string { return orEmpty(b.Telescope) }

func orEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
