package main

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	_ "gonum.org/v1/plot/vg/vgsvg" // writes SVG
)

// plotted says how the series of a table are drawn: a line through those of the
// same name.
type plotted struct {
	Title string `json:"title"`
	X     string `json:"x"`
	Y     figure `json:"y"`
	LogX  bool   `json:"log_x,omitempty"`
}

// colors are distinguishable for everybody.
var colors = []color.RGBA{{0, 0x72, 0xb2, 255}, {0xd5, 0x5e, 0, 255}, {0, 0x9e, 0x73, 255}, {0xcc, 0x79, 0xa7, 255}}

// draw writes an SVG file.
func (t *table) draw(path string) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = t.Plot.Title, t.Plot.X, string(t.Plot.Y)
	p.Legend.Top, p.Legend.Left = true, true
	if t.Plot.LogX {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, labelled{plot.LogTicks{}, ""}
	} else {
		p.X.Tick.Marker = labelled{plot.DefaultTicks{}, ""}
	}
	p.Y.Tick.Marker = labelled{plot.DefaultTicks{}, t.Plot.Y.unit()}
	p.Y.Min = 0
	p.Add(plotter.NewGrid())
	var names []string
	points := map[string]plotter.XYs{}
	for _, one := range t.Series {
		values := t.values(one.Arm, column{Figure: t.Plot.Y})
		if len(values) == 0 {
			continue
		}
		if points[one.Line] == nil {
			names = append(names, one.Line)
		}
		points[one.Line] = append(points[one.Line], plotter.XY{X: one.X, Y: spreadOf(values).median})
	}
	for i, name := range names {
		line, dots, err := plotter.NewLinePoints(points[name])
		if err != nil {
			return err
		}
		line.Color, dots.Color = colors[i%len(colors)], colors[i%len(colors)]
		p.Add(line, dots)
		p.Legend.Add(name, line, dots)
	}
	// Leave space for the legend, and for the last number of the axis.
	p.Y.Max, p.X.Max = 1.3*p.Y.Max, 1.1*p.X.Max
	return p.Save(7*vg.Inch, 4*vg.Inch, path)
}

// labelled formats the numbers of an axis as in the tables.
type labelled struct {
	plot.Ticker
	unit string
}

func (l labelled) Ticks(low, high float64) []plot.Tick {
	ticks := l.Ticker.Ticks(low, high)
	for i, tick := range ticks {
		if tick.Label != "" {
			ticks[i].Label = format(tick.Value, l.unit)
		}
	}
	return ticks
}
