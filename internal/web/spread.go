package web

import (
	"fmt"
	"net/url"
	"strconv"
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
	days := width*oda.Instant(len(bars)) > oda.Instant(36*time.Hour/time.Microsecond)
	for i, b := range bars {
		if i%max(1, (len(bars)+spreadTicks-1)/spreadTicks) == 0 {
			at := b.From.Time()
			s.Ticks = append(s.Ticks, spreadTick{percent(i, len(bars)), tickText(at.In(zone), days, i == 0), tickText(at, days, i == 0)})
		}
		if b.Calls > 0 {
			s.Bars = append(s.Bars, s.draw(b, i, len(bars), b.From+width, q, filters, zone))
		}
	}
	return s
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

// tickText writes a time below the drawing: days where there are several.
func tickText(at time.Time, days, first bool) string {
	switch {
	case days && first:
		return at.Format("2 Jan 2006")
	case days:
		return at.Format("2 Jan")
	case at.Second() != 0:
		return at.Format("15:04:05")
	}
	return at.Format("15:04")
}

// inUnits writes how long a bar stands for.
func inUnits(d time.Duration) string {
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if d%unit.of == 0 {
			if n := int64(d / unit.of); n > 1 {
				return strconv.FormatInt(n, 10) + " " + unit.name + "s"
			}
			return unit.name
		}
	}
	return d.String()
}
