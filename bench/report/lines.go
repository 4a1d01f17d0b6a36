package report

import (
	"fmt"
	"strings"
)

// Measures of a plot of lines.
const (
	linesHeight = 300.0
	labelStep   = 17.0
	legendStep  = 20.0
	widestLabel = 260.0
)

// curve is a line with its look: the classes of its stroke and its fill, how it
// is dashed, and its marker.
type curve struct {
	Line
	ink, fill, dash string
	shape           int
}

// drawLines draws curves with their names at their ends, where the eye already
// is; only where they do not fit there is a legend.
func drawLines(p *Plot, colours slots) string {
	var c canvas
	top := p.heading(&c) + 6
	curves := look(p.Lines, colours)
	var xs []float64
	for _, l := range p.Lines {
		for _, point := range l.Points {
			if drawable(point.Y) {
				xs = append(xs, point.X)
			}
		}
	}
	x, y := tightAxis(xs, p.LogX, 7), niceAxis(p.values(axis{log: p.LogY}), p.LogY, 5)
	y.from, y.to = top+linesHeight, top

	ticks := tickLabels(y.ticks, p.Unit, y.log)
	x.from = widest(ticks, smallSize) + 20
	ends := endLabels(p, curves, x, y)
	settled := settleEnds(ends, top, y.from)
	if len(ends) > 0 && settled == nil {
		top += drawLegend(&c, curves, top-2)
		y.from, y.to = top+linesHeight, top
	}
	margin := max(16, widest(tickLabels(x.ticks, p.XUnit, true), smallSize)/2)
	if settled != nil {
		margin = max(margin, widestEnd(ends)+26)
	}
	x.to = plotWidth - margin

	for i, v := range y.ticks {
		c.line(x.from-10, y.at(v), x.to+8, y.at(v), "grid")
		c.text(x.from-16, y.at(v)+4, "small end muted", ticks[i])
	}
	drawFoot(&c, x, p, y.from)
	// Whiskers lie behind all curves. Caps tell them from lines, but many caps
	// make a thicket.
	for _, l := range curves {
		drawWhiskers(&c, l, x, y, len(curves) <= 3)
	}
	for _, l := range curves {
		drawCurve(&c, l, x, y)
	}
	for i, end := range ends {
		if settled != nil {
			drawEnd(&c, end, x, settled[i])
		}
	}
	return c.picture(p, p.describe(), y.from+50)
}

// look gives every line its colour and marker.
func look(lines []Line, colours slots) []curve {
	curves := make([]curve, len(lines))
	for i, slot := range colours.of(lines) {
		lap, colour := slot/len(palette), slot%len(palette)
		l := curve{Line: lines[i], ink: fmt.Sprintf("s%d", colour), fill: fmt.Sprintf("f%d", colour), shape: colour + 3*lap}
		if lap > 0 {
			l.dash = "broken "
		}
		if l.Reference {
			l.ink, l.fill, l.dash = "sr", "fr", "dashed "
		}
		curves[i] = l
	}
	return curves
}

// end is the name of a curve beside its last point.
type end struct {
	curve
	x, y  float64 // the last point: value of X, place of Y
	value string
}

func endLabels(p *Plot, curves []curve, x, y axis) []end {
	var ends []end
	for _, l := range curves {
		for i := len(l.Points) - 1; i >= 0; i-- {
			if point := l.Points[i]; x.shows(point.X) && y.shows(point.Y) {
				ends = append(ends, end{l, point.X, y.at(point.Y), Value(point.Y, p.Unit)})
				break
			}
		}
	}
	return ends
}

// settleEnds finds a place for each end, or none if they need a legend.
func settleEnds(ends []end, top, bottom float64) []float64 {
	if widestEnd(ends) > widestLabel {
		return nil
	}
	wanted := make([]float64, len(ends))
	for i, e := range ends {
		wanted[i] = e.y
	}
	return settle(wanted, labelStep, top, bottom)
}

func widestEnd(ends []end) float64 {
	width := 0.0
	for _, e := range ends {
		width = max(width, textWidth(e.Name+"  "+e.value, textSize))
	}
	return width
}

// drawEnd writes the name, with a thin line to the point where the two are
// apart.
func drawEnd(c *canvas, e end, x axis, y float64) {
	from, to := x.at(e.x)+8, x.to+18
	if from < x.to {
		// Dots, since a line would look as if it had been measured.
		c.line(from, e.y, x.to+6, e.y, "whisker dotted "+e.ink)
	}
	if abs(y-e.y) > 3 || from < x.to {
		c.line(x.to+8, e.y, to, y, "whisker faint "+e.ink)
	}
	c.tagged(to+4, y+4.5, e.fill, e.Name, e.value)
}

// drawLegend writes the names above the plot and tells how much it took.
func drawLegend(c *canvas, curves []curve, top float64) float64 {
	x, y := 0.0, top+6
	for _, l := range curves {
		width := textWidth(l.Name, textSize) + 44
		if x > 0 && x+width > plotWidth {
			x, y = 0, y+legendStep
		}
		c.line(x, y, x+22, y, "curve "+l.dash+l.ink)
		if !l.Reference {
			c.marker(l.shape, x+11, y, l.fill)
		}
		c.text(x+28, y+4.5, "ink", l.Name)
		x += width
	}
	return y - top + legendStep
}

// drawFoot draws the horizontal axis. Ticks that would touch the one before
// are left without a number.
func drawFoot(c *canvas, x axis, p *Plot, bottom float64) {
	c.line(x.from-10, bottom, x.to+8, bottom, "base")
	reach := -1e9
	labels := tickLabels(x.ticks, p.XUnit, true)
	for i, v := range x.ticks {
		at := x.at(v)
		c.line(at, bottom, at, bottom+5, "base")
		half := textWidth(labels[i], smallSize) / 2
		if at-half < reach+8 {
			continue
		}
		c.text(at, bottom+19, "small middle muted", labels[i])
		reach = at + half
	}
	c.text((x.from+x.to)/2, bottom+40, "middle muted", p.XLabel)
}

func drawWhiskers(c *canvas, l curve, x, y axis, capped bool) {
	for _, point := range l.Points {
		if !x.shows(point.X) || !y.shows(point.Y) {
			continue
		}
		if low, high, known := spread(y, point.Y, point.Low, point.High); known {
			c.upright(x.at(point.X), y.at(low), y.at(high), capped, "whisker faint "+l.ink)
		}
	}
}

// drawCurve draws the line through the points, and the points. Where a point
// cannot be drawn the line is broken: nothing is known in between.
func drawCurve(c *canvas, l curve, x, y axis) {
	var d strings.Builder
	step := "M"
	for _, point := range l.Points {
		if !x.shows(point.X) || !y.shows(point.Y) {
			step = "M"
			continue
		}
		fmt.Fprintf(&d, "%s%s %s", step, px(x.at(point.X)), px(y.at(point.Y)))
		step = "L"
	}
	if d.Len() == 0 {
		return
	}
	c.path(d.String(), "curve "+l.dash+l.ink)
	for _, point := range l.Points {
		if x.shows(point.X) && y.shows(point.Y) && (!l.Reference || len(l.Points) == 1) {
			c.marker(l.shape, x.at(point.X), y.at(point.Y), l.fill)
		}
	}
}
