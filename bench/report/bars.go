package report

// Measures of a plot of bars.
const (
	barHeight   = 16.0
	rowGap      = 10.0
	lineHeight  = 16.0
	groupHeight = 24.0
	groupGap    = 10.0
	nameGap     = 12.0
	labelGap    = 8.0
	widestName  = 250.0
)

// drawBars draws horizontal bars: names to the left, where long ones can be
// read, and the value behind each bar, so that nobody has to measure it.
func drawBars(p *Plot) string {
	var c canvas
	rows, left, bottom := layRows(p, p.heading(&c))
	a := barAxis(p, left)
	base := a.at(barBase(p, a))
	for _, r := range rows {
		if r.heading != "" {
			c.text(0, r.top-10, "strong ink", r.heading)
		}
		drawGrid(&c, p, a, r)
		class := "end ink"
		if r.bar.Highlight {
			class += " strong"
		}
		first := r.middle() - lineHeight*float64(len(r.name)-1)/2
		for j, line := range r.name {
			c.text(left-nameGap, first+lineHeight*float64(j)+4.5, class, line)
		}
		drawBar(&c, p, a, r.bar, base, r.middle())
		c.line(base, r.top, base, r.bottom, "base")
	}
	drawTicks(&c, a, p.Unit, bottom)
	return c.picture(p, p.describe(), bottom+26)
}

// row is the strip of one bar, with the heading above it if it has one.
type row struct {
	bar         Bar
	heading     string
	name        []string
	top, bottom float64
}

func (r row) middle() float64 { return (r.top + r.bottom) / 2 }

// layRows places the bars below each other from the top on. It tells where the
// names end on their right, and where the last row ends.
func layRows(p *Plot, top float64) (rows []row, left, bottom float64) {
	left, bottom = 40, top
	group := ""
	for i, b := range p.Bars {
		r := row{bar: b, name: wrap(b.Name, textSize, widestName)}
		for _, line := range r.name {
			left = max(left, min(boldWidth(line, textSize), plotWidth/2))
		}
		if b.Group != group && b.Group != "" {
			r.heading = b.Group
			bottom += groupHeight
			if i > 0 {
				bottom += groupGap
			}
		}
		group = b.Group
		r.top = bottom
		r.bottom = r.top + max(barHeight, lineHeight*float64(len(r.name))) + rowGap
		bottom = r.bottom
		rows = append(rows, r)
	}
	return rows, left + nameGap, bottom
}

// barAxis is as long as leaves room for every label behind its bar.
func barAxis(p *Plot, left float64) axis {
	a := axis{log: p.LogY}
	a = niceAxis(append(p.values(a), p.Baseline), p.LogY, 6)
	a.from, a.to = left, left+1
	length := plotWidth - left - 30
	for _, b := range p.Bars {
		room := plotWidth - left - labelGap - labelWidth(p, b)
		if share := a.at(barReach(p, a, b)) - left; share > 0 {
			length = min(length, room/share)
		}
	}
	a.to = left + max(length, 80)
	return a
}

// barBase is the value at which bars begin.
func barBase(p *Plot, a axis) float64 {
	switch {
	case !a.log:
		return 0
	case a.shows(p.Baseline):
		return p.Baseline
	default:
		return a.lo
	}
}

// barReach is the value up to which a bar, or its whisker, is drawn.
func barReach(p *Plot, a axis, b Bar) float64 {
	base := barBase(p, a)
	if !a.shows(b.Y) {
		return base
	}
	_, high, _ := spread(a, b.Y, b.Low, b.High)
	return max(high, base)
}

func barValue(p *Plot, b Bar) string {
	if a := (axis{log: p.LogY}); !a.shows(b.Y) {
		return "not measured"
	}
	if b.label != "" {
		return b.label
	}
	return Value(b.Y, p.Unit)
}

func labelWidth(p *Plot, b Bar) float64 {
	width := boldWidth(barValue(p, b), textSize)
	if b.Note != "" {
		width += noteGap + textWidth(b.Note, textSize)
	}
	return width
}

func drawBar(c *canvas, p *Plot, a axis, b Bar, base, y float64) {
	if !a.shows(b.Y) {
		c.text(labelStart(p, a, b), y+4.5, "muted", barValue(p, b))
		return
	}
	class := "plain"
	switch {
	case b.warn:
		class = "warn"
	case b.Highlight:
		class = "accent"
	}
	x := a.at(b.Y)
	// The length of a bar says nothing on an axis without a zero.
	dot := a.log && !a.shows(p.Baseline)
	if !dot && abs(x-base) >= 0.5 {
		c.bar(base, x, y-barHeight/2, barHeight, class)
	}
	if low, high, known := spread(a, b.Y, b.Low, b.High); known {
		c.whisker(a.at(low), a.at(high), y, "whisker error")
	}
	if dot {
		c.dot(x, y, class)
	}
	c.label(labelStart(p, a, b), y+4.5, barValue(p, b), b.Note, b.Highlight)
}

// labelStart is where the value of a bar is written: behind whatever reaches
// farthest.
func labelStart(p *Plot, a axis, b Bar) float64 {
	return a.at(barReach(p, a, b)) + labelGap
}

// drawGrid draws the ticks as lines through a row, but not through its label.
func drawGrid(c *canvas, p *Plot, a axis, r row) {
	from := labelStart(p, a, r.bar)
	to := from + labelWidth(p, r.bar)
	for _, v := range a.ticks {
		if x := a.at(v); x < from-2 || x > to+2 {
			c.line(x, r.top, x, r.bottom, "grid")
		}
	}
}

// drawTicks writes the values of the ticks below the last row, as far as they
// do not touch.
func drawTicks(c *canvas, a axis, unit string, y float64) {
	labels := tickLabels(a.ticks, unit, a.log)
	reach := -1e9
	for i, v := range a.ticks {
		half := textWidth(labels[i], smallSize) / 2
		if a.at(v)-half < reach+6 {
			continue
		}
		c.text(a.at(v), y+16, "small middle muted", labels[i])
		reach = a.at(v) + half
	}
}
