package web

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"oda"
	"oda/night"
)

// The drawing of a night is as wide as the window, and fits the height of a sheet of
// paper. So the bars are stretched; the texts are not, and are placed in per cent.

// Box is the part of the drawing that is stretched, right of the names.
func (p nightPlot) Box() string {
	return fmt.Sprintf("%d 0 %d %d", plotLeft, p.Width-plotLeft, p.Height)
}

// Across places a coordinate in the width of that part.
func (p nightPlot) Across(x int) string { return percent(x-plotLeft, p.Width-plotLeft) }

// Down places a coordinate in the height.
func (p nightPlot) Down(y int) string { return percent(y, p.Height) }

func percent(part, of int) string {
	return strconv.FormatFloat(100*float64(part)/float64(of), 'f', 2, 64) + "%"
}

// nightPlot is the night drawn: a bar for each block on one axis of time.
type nightPlot struct {
	Width, Height int
	Lanes         []lane
	Ticks         []tick
	Bars          template.HTML
	Failures      []failures
}

type lane struct {
	Y    int
	Name string
}

// failures is how many calls of a block failed.
type failures struct {
	X, Y  int
	Calls int64
}

type tick struct {
	X    int
	Text string
}

// Sizes of the drawing.
const (
	plotWidth    = 1200
	plotLeft     = 90
	plotTop      = 26
	barHeight    = 22
	footHeight   = 13 // of a row below its bars, for failed calls and their number
	laneGap      = 6
	nightOverlap = 12 // rows of a telescope; what overlaps beyond shares the last
	nightHours   = 6  // that are drawn at least
)

// draw draws the blocks, each from its first call until its last response. Those of a
// telescope that overlap lie below each other.
func (v *nightView) draw(known map[string]nightBlock) nightPlot {
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
		for _, row := range inRows(blocks, telescope) {
			foot := 0
			for _, b := range row {
				begin := x(b.FirstCall.Time())
				v.drawBlock(&bars, bar{begin, y, max(3, x(b.LastResponse.Time())-begin)}, b, known[b.ID])
				if b.Failures > 0 {
					foot = footHeight
					p.Failures = append(p.Failures, failures{begin, y + barHeight + footHeight, b.Failures})
				}
			}
			y += barHeight + 2 + foot
		}
		y += laneGap
	}
	p.Height = y + 6
	p.Bars = template.HTML(bars.String()) // #nosec G203 -- everything in it was escaped
	return p
}

// inRows divides the blocks of a telescope into rows, so that those in a row do not overlap.
func inRows(blocks []night.Block, telescope string) [][]night.Block {
	var rows [][]night.Block
	var ends []oda.Moment // of the last block in each row
	for _, b := range blocks {
		if telescopeOf(b) != telescope {
			continue
		}
		at := slices.IndexFunc(ends, func(end oda.Moment) bool { return end < b.FirstCall })
		if at < 0 && len(ends) == nightOverlap {
			at = nightOverlap - 1
		} else if at < 0 {
			at, ends, rows = len(ends), append(ends, 0), append(rows, nil)
		}
		ends[at], rows[at] = max(ends[at], b.LastResponse), append(rows[at], b)
	}
	return rows
}

// bar is where a block is drawn.
type bar struct{ x, y, width int }

// drawBlock draws a block: what came of it has a colour and a shape. If some of its calls
// failed, a thin mark below it says so.
func (v *nightView) drawBlock(to *strings.Builder, at bar, b night.Block, known nightBlock) {
	title := strings.TrimSpace(clipped(known.title, briefText)+" "+b.ID) + ": "
	class := ""
	if status := known.status; status.Text != "" {
		class = ` class="status ` + status.Class.String() + `"`
		title += status.Text + ", "
	}
	title += plural(b.Calls, "call") + ", " + thousands(b.Failures) + " failed, from " + b.FirstCall.Time().Format("15:04") + " to " + v.until(b.LastResponse)
	fmt.Fprintf(to, `<a href="%s"%s><title>%s</title><rect x="%d" y="%d" width="%d" height="%d" rx="2"/>`,
		template.HTMLEscapeString(v.EntityHref(oda.Ref{Kind: oda.ExecutionBlock, ID: b.ID})), class, template.HTMLEscapeString(title),
		at.x, at.y, at.width, barHeight)
	switch known.status.Class {
	case oda.ClassFailed:
		fmt.Fprintf(to, `<path d="M%d %dl%d %dm0 %dl%d %d"/>`, at.x, at.y, at.width, barHeight, -barHeight, -at.width, barHeight)
	case oda.ClassStopped:
		fmt.Fprintf(to, `<path d="M%d %dl%d %d"/>`, at.x, at.y+barHeight, at.width, -barHeight)
	}
	if b.Failures > 0 {
		fmt.Fprintf(to, `<rect class="calls" x="%d" y="%d" width="%d" height="%d"/>`, at.x, at.y+barHeight+2, at.width, 2)
	}
	to.WriteString("</a>\n")
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
