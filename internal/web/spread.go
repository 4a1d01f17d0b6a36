package web

import (
	"fmt"
	"net/url"
	"time"

	"oda"
	"oda/calls"
)

// spread is how calls are spread in time, drawn: a bar for each part of it, which leads to
// its calls.
type spread struct {
	Bars  []spreadBar
	Ticks []spreadTick
	Most  int64  // calls of a bar
	Width string // what a bar stands for
	Zone  string // of the upper row of times
	UTC   bool   // there is a lower row
}

// spreadBar is a bar: above, the calls that did not fail.
type spreadBar struct {
	X, Width, Href, Title    string
	OKY, OKHigh, FailY, High int
}

type spreadTick struct{ X, Text, UTC string }

// Sizes of the drawing.
const (
	spreadHeight = 110
	spreadTop    = 16
	spreadBars   = 60 // at most
	spreadTicks  = 6
)

// spreadWidths are how long a bar may stand for.
var spreadWidths = []time.Duration{
	time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 4 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 28 * 24 * time.Hour, 364 * 24 * time.Hour,
}

// barsOf divides a range into bars, which begin at full hours or days of a zone.
func barsOf(from, to oda.Instant, zone *time.Location) calls.Bars {
	_, offset := from.Time().In(zone).Zone()
	shift := oda.Instant(offset) * 1e6
	for i := 0; ; i++ {
		width := spreadWidths[min(i, len(spreadWidths)-1)]
		for range i - len(spreadWidths) + 1 {
			width *= 2
		}
		step := oda.Instant(width / time.Microsecond)
		begin := (from+shift)/step*step - shift
		if begin > from { // before 1970
			begin -= step
		}
		if n := (to - begin + step - 1) / step; n <= spreadBars {
			return calls.Bars{From: begin, Width: step, Number: int(max(n, 1))}
		}
	}
}

// drawSpread draws bars of equal width.
func drawSpread(bars []calls.Bar, width oda.Instant, q calls.Query, filters url.Values, zone *time.Location) spread {
	s := spread{Most: 1, Width: inUnits(time.Duration(width) * time.Microsecond), Zone: zone.String(), UTC: zone.String() != "UTC"}
	for _, b := range bars {
		s.Most = max(s.Most, b.Calls)
	}
	s.mark(bars, width, zone)
	for i, b := range bars {
		if b.Calls > 0 {
			s.Bars = append(s.Bars, s.draw(b, i, len(bars), b.From+width, q, filters, zone))
		}
	}
	return s
}

// mark writes times below some of the bars: where a day begins, if there are several.
func (s *spread) mark(bars []calls.Bar, width oda.Instant, zone *time.Location) {
	const day = oda.Instant(24 * time.Hour / time.Microsecond)
	var marked []int
	days := width*oda.Instant(len(bars)) > day*3/2
	for i := range bars {
		if !days || width >= day || i > 0 && bars[i].From.Time().In(zone).Day() != bars[i-1].From.Time().In(zone).Day() {
			marked = append(marked, i)
		}
	}
	layout, layoutUTC := "15:04", "15:04"
	if days {
		layout, layoutUTC = "2 Jan", "2 Jan 15:04"
	} else if width < oda.Instant(time.Minute/time.Microsecond) {
		layout, layoutUTC = "15:04:05", "15:04:05"
	}
	every := (len(marked) + spreadTicks - 1) / spreadTicks
	for n := 0; n < len(marked); n += every {
		at := bars[marked[n]].From.Time()
		tick := spreadTick{percent(marked[n], len(bars)), at.In(zone).Format(layout), at.Format(layoutUTC)}
		if days && n == 0 {
			tick.Text += at.In(zone).Format(" 2006")
		}
		s.Ticks = append(s.Ticks, tick)
	}
}

func (s *spread) draw(b calls.Bar, i, n int, end oda.Instant, q calls.Query, filters url.Values, zone *time.Location) spreadBar {
	high := func(calls int64) int {
		if calls == 0 {
			return 0
		}
		return max(3, int(calls*(spreadHeight-spreadTop)/s.Most))
	}
	failed, ok := high(b.Failures), high(b.Calls-b.Failures)
	if over := failed + ok - (spreadHeight - spreadTop); over > 0 {
		if ok > failed {
			ok -= over
		} else {
			failed -= over
		}
	}
	from, to := b.From, end
	if q.From != nil {
		from = max(from, *q.From)
	}
	if q.To != nil {
		to = min(to, *q.To)
	}
	params := with(with(filters, "from", inAddress(from)), "to", inAddress(to))
	return spreadBar{
		X: percent(100*i+8, 100*n), Width: percent(84, 100*n), Href: callsHref(params),
		Title: fmt.Sprintf("%s to %s: %s, %s failed", b.From.Time().In(zone).Format("2006-01-02 15:04:05"), end.Time().In(zone).Format("15:04:05 MST"),
			plural(b.Calls, "call"), thousands(b.Failures)),
		OKY: spreadHeight - failed - ok, OKHigh: ok, FailY: spreadHeight - failed, High: failed,
	}
}

// inUnits writes how long a bar stands for.
func inUnits(d time.Duration) string {
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if d%unit.of == 0 {
			return plural(int64(d/unit.of), unit.name)
		}
	}
	return d.String()
}
