// Package report turns what was measured into what is read: a page of tables
// (benchmarks.md), a plot for every comparison (SVG), and the raw numbers
// (results.json).
//
// A run fills a Result and calls Write. Nothing here measures anything, and the
// same Result always gives the same bytes, so the difference between two runs
// can be read in the history of the repository. Read takes a results.json back,
// and the page can be made again from it.
//
// Start at write.go. The page is made in markdown.go and words.go. A plot is
// either bars (bars.go) or lines (lines.go); both stand on an axis (axis.go),
// are set in text whose width is only estimated (text.go), and share one set of
// colours (style.go). There is no chart library below: a plot is a few hundred
// elements, and drawing them here keeps labels from colliding, follows the
// reader's light or dark mode, and adds no dependency.
package report

import (
	"time"

	"oda/bench/machine"
	"oda/bench/measure"
)

// Result is all that one run found out.
type Result struct {
	// Version is the version of oda that was measured.
	Version string `json:"version"`
	// Quick says that the run was short and its figures are rough.
	Quick   bool                `json:"quick"`
	Started time.Time           `json:"started"`
	Took    time.Duration       `json:"took_ns"`
	Machine machine.Description `json:"machine"`
	// Peers has the version of everything that was measured beside oda.
	Peers    map[string]string `json:"peers"`
	Budgets  []Budget          `json:"budgets"`
	Sections []Section         `json:"sections"`
}

// Budget is one promise of the design, and what was measured of it.
type Budget struct {
	// Work is what is done, for instance "GET one entity, 5 KB".
	Work string `json:"work"`
	// Engine is where the archive keeps its data, for instance "SQLite".
	Engine string `json:"engine"`
	// Measured says what the number counts: "of bare", "× PocketBase".
	Measured string  `json:"measured"`
	Limit    float64 `json:"limit"`
	// AtMost is set where less is better: the limit is the most allowed.
	AtMost bool `json:"at_most"`
	// Unit is as in Value; empty for a ratio.
	Unit string `json:"unit"`
	// Value is zero (all of it) where it was not measured.
	Value measure.Spread `json:"value"`
	// Note says why, in Markdown, where a budget is not met.
	Note string `json:"note,omitempty"`
}

// Met tells whether the median keeps to the limit. What was not measured is
// not met.
func (b Budget) Met() bool {
	switch {
	case !b.measured():
		return false
	case b.AtMost:
		return b.Value.Median <= b.Limit
	default:
		return b.Value.Median >= b.Limit
	}
}

// measured is false for a spread of nothing, which is zero: it must not pass
// for a cost of nothing.
func (b Budget) measured() bool {
	return b.Value != measure.Spread{} && drawable(b.Value.Median)
}

// Section is one kind of work: what was done, and what came of it.
type Section struct {
	// ID is the section's anchor in the page.
	ID    string `json:"id"`
	Title string `json:"title"`
	// Text has paragraphs in Markdown.
	Text   []string `json:"text"`
	Tables []Table  `json:"tables,omitempty"`
	Plots  []Plot   `json:"plots,omitempty"`
	// Series has every sample; it goes to results.json only.
	Series []NamedSeries `json:"series,omitempty"`
}

// NamedSeries is one comparison: the series of all its arms.
type NamedSeries struct {
	Name   string           `json:"name"`
	Series []measure.Series `json:"series"`
}

// Table is set with its first column to the left and the others to the right.
type Table struct {
	Title   string     `json:"title,omitempty"`
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
}

// Plot has lines or bars. Numbers that cannot be drawn (NaN, infinities, and on
// a logarithmic axis what is not above zero) are left out.
type Plot struct {
	// ID names the file; lower-case letters, digits and hyphens.
	ID    string `json:"id"`
	Title string `json:"title"`
	// XLabel names the horizontal axis of lines. Bars have none: they grow
	// along the axis that YLabel names.
	XLabel string `json:"x_label,omitempty"`
	YLabel string `json:"y_label"`
	// XUnit and Unit are the units of X and Y, as in Value.
	XUnit string `json:"x_unit,omitempty"`
	Unit  string `json:"unit,omitempty"`
	LogX  bool   `json:"log_x,omitempty"`
	LogY  bool   `json:"log_y,omitempty"`
	// Baseline is where bars begin on a logarithmic axis, which has no zero.
	// Without one, a dot is set instead of a bar.
	Baseline float64 `json:"baseline,omitempty"`
	// Headline puts the plot at the top of the page too.
	Headline bool   `json:"headline,omitempty"`
	Lines    []Line `json:"lines,omitempty"`
	Bars     []Bar  `json:"bars,omitempty"`
}

// Line is one curve.
type Line struct {
	Name string `json:"name"`
	// Reference marks what the others are held against (bare, pgbench): it is
	// drawn grey and dashed.
	Reference bool    `json:"reference,omitempty"`
	Points    []Point `json:"points"`
}

// Point is a median with its spread. Low and High may be left out (both zero).
type Point struct{ X, Y, Low, High float64 }

// Bar is a median with its spread. Low and High may be left out (both zero).
type Bar struct {
	// Group is a heading over neighbouring bars with the same Group.
	Group string
	Name  string
	// Note follows the value, for instance "0.83 of bare".
	Note         string
	Y, Low, High float64
	// Highlight marks oda among its peers.
	Highlight bool
	// warn marks what misses a budget, and label stands in for the value: both
	// for the plot of the budgets, whose bars are drawn in parts of the limit.
	warn  bool
	label string
}
