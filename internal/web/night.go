package web

import (
	"cmp"
	"context"
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
	Usual                 string            // the zone of the night if none is given
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
	Status                   oda.Standing
}

// nightBlock is what the page adds to what the report has of a block.
type nightBlock struct {
	title  string
	status oda.Standing
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

// Bounds of the page.
const (
	nightRows    = 200
	nightBars    = 1000
	nightFailing = 20
	nightSlow    = 10
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
	view.lead(clean, s.nowIn(clean), s.cfg.Nights.Zones())
	if view.Calls == 0 {
		view.Before, view.After = s.nightsAround(r.Context(), q, clean)
	} else if err := s.fillNight(r.Context(), view); err != nil {
		return err
	}
	return s.page(w, r, "night", view)
}

// fillNight puts what the report has into the view.
func (s *Site) fillNight(ctx context.Context, view *nightView) error {
	view.Success, view.InCalls = showShare(view.Calls-view.Failures, view.Calls), showElapsed(view.Took)
	blocks := view.Blocks[:min(len(view.Blocks), nightRows)]
	slowest := view.Slowest[:min(len(view.Slowest), nightSlow)]
	known, err := s.nightBlocks(ctx, view.Blocks[:min(len(view.Blocks), nightBars)], blocks, slowest)
	if err != nil {
		return err
	}
	for _, b := range blocks {
		view.Rows = append(view.Rows, nightRow{b, known[b.ID].title, telescopeOf(b), showElapsed(b.Took), known[b.ID].status})
	}
	view.More = len(view.Blocks) - len(view.Rows)
	for _, call := range slowest {
		row := slowRow{SlowCall: call, Title: known[call.Block].title, Took: showElapsed(call.Took)}
		_, row.Name = lastName(call.Request)
		row.Href = view.blockHref(call.Block, url.Values{"call": {strconv.FormatInt(call.Sequence, 10)}}) + "#timeline"
		view.Slow = append(view.Slow, row)
	}
	view.fillFailing()
	view.Plot = view.draw(known)
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

// nowIn is the time in the zone of the night that parameters ask for.
func (s *Site) nowIn(params url.Values) time.Time {
	zone := cmp.Or(params.Get("zone"), s.cfg.Nights.Zones().Of(params.Get("telescope")))
	in, err := time.LoadLocation(zone)
	if err != nil {
		in = time.UTC // the page with the date says what is wrong with the zone
	}
	return time.Now().In(in)
}

// zone is the time zone of the archive, in which people write times of a night.
func (s *Site) zone() *time.Location { return s.nowIn(nil).Location() }

// lead leads to the nights around this one, and to those that people look for most. Params
// are those of the page.
func (v *nightView) lead(params url.Values, now time.Time, zones *night.Zones) {
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

// FailedHref is the address of the calls that failed in the night.
func (v *nightView) FailedHref() string {
	return callsHref(withoutEmpty(url.Values{
		"outcome": {string(oda.CallFailed)}, "from": {inAddress(oda.Instant(v.From))}, "to": {inAddress(oda.Instant(v.To))}, "telescope": {v.Telescope},
	}))
}

// Legend says what is red in the drawing.
func (v *nightView) Legend() string {
	var says []string
	if slices.ContainsFunc(v.Rows, func(r nightRow) bool { return r.Status.Class == oda.ClassFailed }) {
		says = append(says, "A red block with a cross failed.")
	}
	if v.Failures > 0 {
		says = append(says, "A thin red mark has the number of calls that failed.")
	}
	return strings.Join(says, " ")
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

// nightBlocks looks up the blocks that are drawn. Those of the rows and of the calls have
// titles.
func (s *Site) nightBlocks(ctx context.Context, drawn, rows []night.Block, calls []night.SlowCall) (map[string]nightBlock, error) {
	blocks := make(map[string]nightBlock)
	var refs []oda.Ref
	add := func(id string) {
		if _, known := blocks[id]; !known {
			blocks[id] = nightBlock{}
			refs = append(refs, oda.Ref{Kind: oda.ExecutionBlock, ID: id})
		}
	}
	for _, b := range rows {
		add(b.ID)
	}
	for _, c := range calls {
		add(c.Block)
	}
	named := len(refs)
	for _, b := range drawn {
		add(b.ID)
	}
	found, err := s.cfg.Archive.Look(ctx, refs)
	if err != nil {
		return nil, err
	}
	titles, err := s.cfg.Names.Of(ctx, found[:named])
	if err != nil {
		return nil, err
	}
	for i, one := range found {
		if one == nil {
			continue
		}
		block := nightBlock{status: one.Standing}
		if i < named {
			block.title = titles[i]
		}
		blocks[one.ID] = block
	}
	return blocks, nil
}

func telescopeOf(b night.Block) string {
	if b.Telescope == nil {
		return ""
	}
	return *b.Telescope
}
