package report

import (
	"fmt"
	"strings"

	"oda/bench/measure"
)

// svg draws the plot. The slots hold the colours of the whole report.
func (p Plot) svg(colours slots) string {
	p = p.inWholeUnit()
	switch {
	case len(p.Bars) > 0:
		return drawBars(&p)
	case len(p.Lines) > 0:
		return drawLines(&p, colours)
	default:
		return p.empty()
	}
}

// heading writes the title, and below it what is drawn, so that the vertical
// axis needs no text on its side. It tells where the plot begins.
func (p *Plot) heading(c *canvas) float64 {
	y := 0.0
	for _, line := range wrap(p.Title, titleSize*boldFactor, plotWidth) {
		y += 20
		c.text(0, y, "title ink", line)
	}
	for _, line := range wrap(p.YLabel, textSize, plotWidth) {
		y += 19
		c.text(0, y, "muted", line)
	}
	return y + 18
}

// empty says that nothing was measured, rather than drawing an empty frame.
func (p *Plot) empty() string {
	var c canvas
	y := p.heading(&c) + 4
	c.text(0, y, "muted", "Nothing was measured.")
	return c.picture(p, "Nothing was measured.", y+16)
}

// inWholeUnit turns bytes into KiB, MiB or GiB, so that ticks fall on round
// numbers of those.
func (p Plot) inWholeUnit() Plot {
	if p.Unit != "B" {
		return p
	}
	largest := 0.0
	for _, v := range p.values(axis{}) {
		largest = max(largest, v)
	}
	factor, unit := byteUnit(largest)
	p.Unit = unit
	lines := make([]Line, len(p.Lines))
	for i, l := range p.Lines {
		l.Points = append([]Point(nil), l.Points...)
		for j := range l.Points {
			point := &l.Points[j]
			point.Y, point.Low, point.High = point.Y/factor, point.Low/factor, point.High/factor
		}
		lines[i] = l
	}
	bars := make([]Bar, len(p.Bars))
	for i, b := range p.Bars {
		b.Y, b.Low, b.High = b.Y/factor, b.Low/factor, b.High/factor
		bars[i] = b
	}
	p.Lines, p.Bars = lines, bars
	return p
}

// values are all that the axis of Y must reach.
func (p *Plot) values(a axis) []float64 {
	var values []float64
	add := func(y, low, high float64) {
		if !a.shows(y) {
			return
		}
		values = append(values, y)
		if low, high, known := spread(a, y, low, high); known {
			values = append(values, low, high)
		}
	}
	for _, b := range p.Bars {
		add(b.Y, b.Low, b.High)
	}
	for _, l := range p.Lines {
		for _, point := range l.Points {
			if drawable(point.X) {
				add(point.Y, point.Low, point.High)
			}
		}
	}
	return values
}

// spread is the part of a spread that can be drawn on the axis. An end that
// cannot is left at the value itself.
func spread(a axis, y, low, high float64) (from, to float64, known bool) {
	if low > y || high < y || low >= high {
		return y, y, false
	}
	if !a.shows(low) {
		low = y
	}
	if !a.shows(high) {
		high = y
	}
	return low, high, low < high
}

// describe says in words what the plot shows, for those who do not see it.
func (p *Plot) describe() string {
	var s strings.Builder
	s.WriteString(p.YLabel)
	if p.XLabel != "" {
		s.WriteString(" by " + p.XLabel)
	}
	s.WriteString(".")
	for _, b := range p.Bars {
		name := b.Name
		if b.Group != "" {
			name = b.Group + ", " + name
		}
		value := b.label
		if value == "" {
			value = SpreadValue(measure.Spread{Median: b.Y, Low: b.Low, High: b.High}, p.Unit)
		}
		fmt.Fprintf(&s, " %s: %s", name, value)
		if b.Note != "" {
			s.WriteString(", " + b.Note)
		}
		s.WriteString(".")
	}
	for _, l := range p.Lines {
		fmt.Fprintf(&s, " %s:", l.Name)
		for i, point := range l.Points {
			if i > 0 {
				s.WriteString(",")
			}
			fmt.Fprintf(&s, " %s at %s", Value(point.Y, p.Unit), limit(point.X, p.XUnit))
		}
		s.WriteString(".")
	}
	return s.String()
}
