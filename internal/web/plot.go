package web

import (
	"cmp"
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

// Wide is a width as a part of that part.
func (p nightPlot) Wide(width int) string { return percent(width, p.Width-plotLeft) }

func percent(part, of int) string {
	return strconv.FormatFloat(100*float64(part)/float64(of), 'f', 2, 64) + "%"
}

// nightPlot is the night drawn: for each telescope how its time was used and a bar for each
// block, on one axis of time.
type nightPlot struct {
	Width, Height int
	Top           int // of what is below the hours
	Lanes         []lane
	Ticks         []tick
	Zone          string // of the upper row of hours
	UTC           bool   // there is a lower row
	Bars          template.HTML
	Labels        []barLabel
	Failures      []failures
	Now           *int // where the line for now is, nil if it is not in the drawing
	Shows         plotShows

	first, last int // the hours that are drawn, from the noon of the night
	from        time.Time
}

// plotShows is what is in the drawing, for the legend.
type plotShows struct{ Failed, Shaded, Idle bool }

type lane struct {
	Y    int
	Name string
}

// barLabel is what a block is called, above its bar.
type barLabel struct {
	X, Y, Width int
	Text        string
}

// failures is how many calls of a block failed.
type failures struct {
	X, Y  int
	Calls int64
}

type tick struct {
	X         int
	Text, UTC string
	Minor     bool // left out where there is little room
}

// Sizes of the drawing.
const (
	plotWidth    = 1200
	plotLeft     = 90
	plotTop      = 24 // of the hours
	zoneHeight   = 14 // of a second row of hours
	useHeight    = 18 // of the strip of a telescope
	useStep      = 6  // of the time that it shows a share of
	labelHeight  = 15
	labelLeast   = 26 // a narrower label says nothing
	barHeight    = 16
	footHeight   = 13 // of a row below its bars, for failed calls and their number
	laneGap      = 12
	nightOverlap = 12 // rows of a telescope; what overlaps beyond shares the last
	nightHours   = 6  // that are drawn at least
)

// draw draws the time of the telescopes, and their blocks, each from its first call until its
// last response. Those of a telescope that overlap lie below each other.
func (v *nightView) draw() nightPlot {
	p := nightPlot{Width: plotWidth + 20, Top: plotTop, Zone: v.From.Time().In(v.zone).Format("MST"), UTC: v.Report.Zone != "UTC", from: v.From.Time()}
	if p.UTC {
		p.Top += zoneHeight
	}
	p.first, p.last = v.hours()
	step := 1
	if p.last-p.first > 12 {
		step = 2
	}
	for h := p.first; h <= p.last; h += step {
		at := p.from.Add(time.Duration(h) * time.Hour)
		p.Ticks = append(p.Ticks, tick{p.x(at), at.In(v.zone).Format("15:04"), at.Format("15:04"), len(p.Ticks)%3 > 0})
	}
	blocks := v.Blocks[:min(len(v.Blocks), nightBars)]
	var bars strings.Builder // by hand, because templates take long for a thousand
	y := p.Top + 4
	for _, use := range v.Use {
		telescope := orEmpty(use.Telescope.Telescope)
		rows := inRows(blocks, telescope, v.overlap)
		if len(rows) == 0 {
			continue // all its blocks are beyond the bound
		}
		p.Lanes = append(p.Lanes, lane{y + 13, clipped(cmp.Or(use.Name, "–"), 11)})
		p.drawUse(&bars, y, &use)
		y += useHeight + 4
		for _, row := range rows {
			foot := 0
			for i, b := range row {
				at := p.bar(b, y+labelHeight)
				next := p.Width
				if i+1 < len(row) {
					next = p.x(row[i+1].FirstCall.Time()) - 4
				}
				p.label(at, next, newNightRow(b).Label())
				v.drawBlock(&bars, at, b)
				p.Shows.Failed = p.Shows.Failed || b.Status.Class == oda.ClassFailed
				if b.Failures > 0 {
					p.Shows.Shaded, foot = true, footHeight
					p.Failures = append(p.Failures, failures{at.x, at.y + barHeight + footHeight, b.Failures})
				}
			}
			y += labelHeight + barHeight + 2 + foot
		}
		y += laneGap
	}
	p.Height = y
	if v.SoFar {
		now := p.x(v.now)
		p.Now = &now
		p.Height += footHeight // for its word
	}
	p.Bars = template.HTML(bars.String()) // #nosec G203 -- everything in it was escaped
	return p
}

// x is where a time is. A call may last beyond the night.
func (p *nightPlot) x(at time.Time) int {
	hours := max(0, min(at.Sub(p.from).Hours()-float64(p.first), float64(p.last-p.first)))
	return plotLeft + int(float64(plotWidth-plotLeft)*hours/float64(p.last-p.first))
}

// bar is where a block is drawn.
type bar struct{ x, y, width int }

func (p *nightPlot) bar(b night.Block, y int) bar {
	x := p.x(b.FirstCall.Time())
	return bar{x, y, max(3, p.x(b.LastResponse.Time())-x)}
}

// label puts a label above a bar, if there is room for it before the next one.
func (p *nightPlot) label(at bar, next int, text string) {
	if width := next - at.x; width >= labelLeast {
		p.Labels = append(p.Labels, barLabel{at.x, at.y - labelHeight, width, clipped(text, briefText)})
	}
}

// drawUse draws how the time of a telescope was used: between its first and its last call it
// was idle or busy, and the height says which part of each few minutes it was busy. What was
// done during observations that failed has a line above it.
func (p *nightPlot) drawUse(to *strings.Builder, y int, use *useRow) {
	first, last := p.x(use.FirstCall.Time()), p.x(use.LastCall.Time())
	fmt.Fprintf(to, `<rect class="idle" x="%d" y="%d" width="%d" height="%d"/>`, first, y, max(2, last-first), useHeight)
	p.Shows.Idle = p.Shows.Idle || use.Telescope.Idle > 0
	ground := y + useHeight
	fmt.Fprintf(to, `<path class="busy" d="`)
	for i, share := range p.shares(use.InCalls) {
		if share > 0 {
			high := max(1, int(math.Round(share*useHeight)))
			fmt.Fprintf(to, "M%d %dv%dh%dv%dz", plotLeft+i*useStep, ground, -high, useStep, high)
		}
	}
	to.WriteString(`"/>`)
	for _, s := range use.Lost {
		from, until := p.x(s.From.Time()), p.x(s.To.Time())
		fmt.Fprintf(to, `<rect class="lost" x="%d" y="%d" width="%d" height="4"/>`, from, y-3, max(3, until-from))
	}
	to.WriteString("\n")
}

// shares is which part of the time was busy, from 0 to 1, for each step of the axis.
func (p *nightPlot) shares(busy []night.Stretch) []float64 {
	steps := (plotWidth - plotLeft) / useStep
	shares := make([]float64, steps)
	begin := float64(oda.InstantOf(p.from.Add(time.Duration(p.first) * time.Hour)))
	width := float64(p.last-p.first) * float64(time.Hour/time.Microsecond) / float64(steps)
	for _, s := range busy {
		from, to := max(0, (float64(s.From)-begin)/width), min(float64(steps), (float64(s.To)-begin)/width)
		for i := int(from); i < steps && float64(i) < to; i++ {
			shares[i] += min(to, float64(i+1)) - max(from, float64(i))
		}
	}
	return shares
}

// inRows divides the blocks of a telescope into rows, so that those in a row do not overlap.
// What would need another row shares the last.
func inRows(blocks []night.Block, telescope string, most int) [][]night.Block {
	var rows [][]night.Block
	var ends []oda.Moment // of the last block in each row
	for _, b := range blocks {
		if telescopeOf(b) != telescope {
			continue
		}
		at := slices.IndexFunc(ends, func(end oda.Moment) bool { return end < b.FirstCall })
		if at < 0 && len(ends) == most {
			at = most - 1
		} else if at < 0 {
			at, ends, rows = len(ends), append(ends, 0), append(rows, nil)
		}
		ends[at], rows[at] = max(ends[at], b.LastResponse), append(rows[at], b)
	}
	return rows
}

// shade is how dark a block is by the share of its calls that failed, from 0 to 4.
func shade(failures, calls int64) int {
	switch {
	case failures == 0:
		return 0
	case 100*failures <= calls:
		return 1
	case 10*failures <= calls:
		return 2
	case 2*failures <= calls:
		return 3
	}
	return 4
}

// drawBlock draws a block: what came of it has a colour and a shape, the share of its calls
// that failed makes it darker, and a thin mark below it says that some did.
func (v *nightView) drawBlock(to *strings.Builder, at bar, b night.Block) {
	title := strings.TrimSpace(clipped(orEmpty(b.Name), briefText)+" "+b.ID) + ": "
	if b.Targets != "" {
		title += clipped(b.Targets, briefText) + ", "
	}
	class := fmt.Sprint("shade", shade(b.Failures, b.Calls))
	if status := b.Status; status.Text != "" {
		class = "status " + status.Class.String() + " " + class
		title += status.Text + ", "
	}
	title += plural(b.Calls, "call") + ", " + thousands(b.Failures) + " failed, from " + v.minute(b.FirstCall) + " to " + v.minute(b.LastResponse)
	fmt.Fprintf(to, `<a href="%s" class="%s"><title>%s</title><rect x="%d" y="%d" width="%d" height="%d" rx="2"/>`,
		template.HTMLEscapeString(v.EntityHref(oda.Ref{Kind: oda.ExecutionBlock, ID: b.ID})), class, template.HTMLEscapeString(title),
		at.x, at.y, at.width, barHeight)
	switch b.Status.Class {
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

// minute writes a time in the zone of the night, with the date if it is not in the night.
func (v *nightView) minute(m oda.Moment) string {
	layout := "15:04"
	if m >= v.To {
		layout = "2006-01-02 15:04"
	}
	return m.Time().In(v.zone).Format(layout)
}

// hours returns the hours of the night in which calls were under way, counted from its
// noon, until now if it is not over: a night of observing is rarely longer than ten hours,
// and a phone shows no more.
func (v *nightView) hours() (first, last int) {
	since := func(at time.Time) float64 { return at.Sub(v.From.Time()).Hours() }
	all := int(math.Ceil(since(v.To.Time())))
	first, last = all, 0
	include := func(from, to time.Time) {
		first, last = min(first, int(since(from))), max(last, int(math.Ceil(since(to))))
	}
	for _, b := range v.Blocks {
		include(b.FirstCall.Time(), b.LastResponse.Time())
	}
	if v.SoFar {
		include(v.now, v.now)
	}
	first = max(0, min(first, all-nightHours))
	return first, min(all, max(last, first+nightHours))
}
