package web

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"oda"
	"oda/calls"
	"oda/night"
)

// nightWeeks is a strip of nights, the one of the page among them.
type nightWeeks struct {
	Nights  []weekNight
	Most    int64 // calls of a night
	Unknown bool  // not all nights were counted in time
}

// weekNight is a night of the strip.
type weekNight struct {
	Date, Day, Month, Href string
	Here, Known            bool
	Calls, Failures        int64
	High, Low              int // of the bars: all calls upwards, the failed ones downwards

	query night.Query
}

// Says tells of the night in words.
func (n weekNight) Says() string {
	switch {
	case !n.Known:
		return n.Date + ": not counted yet"
	case n.Calls == 0:
		return n.Date + ": no calls"
	}
	return fmt.Sprintf("%s: %s, %s failed", n.Date, plural(n.Calls, "call"), thousands(n.Failures))
}

// Bounds and sizes of the strip.
const (
	stripNights = 28
	stripAfter  = 13 // nights after the one of the page, if there are so many
	stripTime   = 300 * time.Millisecond
	stripHigh   = 30
	stripLow    = 12
)

// nightWeeks counts the calls of the nights around one. That takes a bounded time: what was
// counted is known the next time, and the nights that are near come first.
func (s *Site) nightWeeks(ctx context.Context, v *nightView, params url.Values) nightWeeks {
	here, err := time.Parse(time.DateOnly, v.Date)
	if err != nil {
		return nightWeeks{}
	}
	latest, _ := time.Parse(time.DateOnly, cmp.Or(night.Tonight(v.now), night.Last(v.now)))
	last := here.AddDate(0, 0, stripAfter)
	if last.After(latest) {
		last = latest
	}
	if last.Before(here) {
		last = here // to come
	}
	var w nightWeeks
	for i := range stripNights {
		day := last.AddDate(0, 0, i-stripNights+1)
		n := weekNight{Date: day.Format("2006-01-02"), Day: day.Format("2"), Here: day.Equal(here)}
		params := with(params, "date", n.Date)
		if n.query, err = s.cfg.Nights.Zones().Parse(params); err != nil {
			continue // before the first night of all
		}
		if len(w.Nights) == 0 || day.Day() == 1 {
			n.Month = day.Format("Jan")
		}
		n.Href = "night" + question(params)
		w.Nights = append(w.Nights, n)
	}
	s.countNights(ctx, v, w.Nights)
	w.draw()
	return w
}

// countNights counts the calls of nights, the nearest to the one of the page first.
func (s *Site) countNights(ctx context.Context, v *nightView, nights []weekNight) {
	at := slices.IndexFunc(nights, func(n weekNight) bool { return n.Here })
	order := make([]int, len(nights))
	for i := range order {
		order[i] = i
	}
	away := func(i int) int { return max(i-at, at-i) }
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(away(a), away(b)), cmp.Compare(a, b)) })
	late := time.Now().Add(stripTime)
	s.knowEmpty(ctx, nights)
	for _, i := range order {
		n := &nights[i]
		if n.Here {
			n.Calls, n.Failures, n.Known = v.Calls, v.Failures, true
		}
		if n.Known {
			continue
		}
		from, to := n.query.From, n.query.To
		q := calls.Query{From: &from, To: &to, Telescope: n.query.Telescope, Within: time.Until(late)}
		if q.Within <= 0 {
			return
		}
		tally, err := s.cfg.Calls.Tally(ctx, q, calls.ByTelescope)
		if err != nil {
			return
		}
		for _, c := range tally.Tally {
			n.Calls += c.Calls
			n.Failures += c.Failures
		}
		n.Known = tally.Complete
	}
}

// knowEmpty marks the nights without calls: there are none on their days, which
// an index knows.
func (s *Site) knowEmpty(ctx context.Context, nights []weekNight) {
	if len(nights) == 0 {
		return
	}
	day, last := oda.DayOf(nights[0].query.From), oda.DayOf(nights[len(nights)-1].query.To-1)
	busy := make(map[oda.Day]bool)
	for day <= last {
		_, after, err := s.cfg.Nights.DaysAround(ctx, day, day)
		if err != nil {
			return
		}
		if after == nil {
			break
		}
		busy[*after] = true
		day = *after + 1
	}
	for i := range nights {
		n := &nights[i]
		n.Known = !busy[oda.DayOf(n.query.From)] && !busy[oda.DayOf(n.query.To-1)]
	}
}

// draw gives the nights their bars.
func (w *nightWeeks) draw() {
	failed := int64(1)
	w.Most = 1
	for _, n := range w.Nights {
		w.Unknown = w.Unknown || !n.Known
		if n.Known {
			w.Most, failed = max(w.Most, n.Calls), max(failed, n.Failures)
		}
	}
	high := func(n, most int64, pixels int) int {
		if n == 0 {
			return 0
		}
		return max(2, int(float64(pixels)*float64(n)/float64(most)))
	}
	for i := range w.Nights {
		if n := &w.Nights[i]; n.Known {
			n.High, n.Low = high(n.Calls, w.Most, stripHigh), high(n.Failures, failed, stripLow)
		}
	}
}

// Top is where the bar of the calls of a night begins.
func (n weekNight) Top() int { return stripHigh - n.High }

// Foot is where the bar of its failed calls begins.
func (weekNight) Foot() int { return stripHigh + 1 }
