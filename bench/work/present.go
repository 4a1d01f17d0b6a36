package work

import (
	"fmt"
	"math"
	"strings"

	"oda/bench/measure"
	"oda/bench/report"
)

// compared is one comparison: the series of arms that were measured in turn.
type compared struct {
	name   string
	series []measure.Series
}

// of finds the series of an arm.
func (c compared) of(arm string) (measure.Series, bool) {
	for _, s := range c.series {
		if s.Arm == arm {
			return s, true
		}
	}
	return measure.Series{}, false
}

// ratio is the rate of one arm as a part of that of another; it is NaN where
// one of them was not measured.
func (c compared) ratio(arm, reference string) measure.Spread {
	a, foundA := c.of(arm)
	b, foundB := c.of(reference)
	if !foundA || !foundB {
		return unknown()
	}
	return measure.Ratio(a, b)
}

func unknown() measure.Spread {
	return measure.Spread{Median: math.NaN(), Low: math.NaN(), High: math.NaN()}
}

// table shows every arm with its rate, its rate as a part of that of each of
// the references, and its latencies. unit is what an operation is.
func (c compared) table(unit string, references ...string) report.Table {
	t := report.Table{Title: c.name, Columns: []string{"", unit + "/s"}}
	for _, reference := range references {
		if _, found := c.of(reference); found {
			t.Columns = append(t.Columns, "÷ "+reference)
		}
	}
	t.Columns = append(t.Columns, "p50", "p99", "p99.9")
	for _, s := range c.series {
		name := s.Arm
		if s.Failed() > 0 {
			name += " **(failures)**"
		}
		row := []string{name, report.Times(s.Rate())}
		for _, reference := range references {
			if _, found := c.of(reference); found {
				row = append(row, ratioText(c, s.Arm, reference))
			}
		}
		t.Rows = append(t.Rows, append(row,
			latency(s.Quantile(measure.P50)), latency(s.Quantile(measure.P99)), latency(s.Quantile(measure.P999))))
	}
	return t
}

func ratioText(c compared, arm, reference string) string {
	if arm == reference {
		return "1"
	}
	return report.Times(c.ratio(arm, reference))
}

// latency writes seconds; pgbench does not tell all quantiles.
func latency(s measure.Spread) string {
	if s.Median <= 0 {
		return "–"
	}
	return report.Value(s.Median, "s")
}

// bars draws the rates of the arms, with the part of the reference beside it.
func (c compared) bars(id, title, unit, reference string) report.Plot {
	plot := report.Plot{ID: id, Title: title, YLabel: unit + " in a second"}
	for _, s := range c.series {
		rate := s.Rate()
		bar := report.Bar{
			Name: s.Arm, Y: rate.Median, Low: rate.Low, High: rate.High, Highlight: ours(s.Arm),
		}
		if s.Arm != reference {
			if ratio := c.ratio(s.Arm, reference); !math.IsNaN(ratio.Median) {
				bar.Note = report.Num(ratio.Median) + " of " + reference
			}
		}
		plot.Bars = append(plot.Bars, bar)
	}
	return plot
}

// ours tells oda from what it is compared with.
func ours(arm string) bool { return strings.HasPrefix(arm, "oda") }

// reference tells what shows the limit of the machine from what is compared.
func reference(arm string) bool {
	return arm == bare || arm == pgbench || strings.HasPrefix(arm, rawSQLite)
}

// lines gathers points into one line for each arm, in the order in which the
// arms appear.
type lines struct{ all []report.Line }

func (l *lines) add(arm string, x float64, y measure.Spread) {
	point := report.Point{X: x, Y: y.Median, Low: y.Low, High: y.High}
	for i := range l.all {
		if l.all[i].Name == arm {
			l.all[i].Points = append(l.all[i].Points, point)
			return
		}
	}
	l.all = append(l.all, report.Line{Name: arm, Reference: reference(arm), Points: []report.Point{point}})
}

// cost is the time that one operation takes of a busy server: the inverse of
// the rate, in seconds.
func cost(s measure.Series) measure.Spread {
	rate := s.Rate()
	if rate.Low <= 0 {
		return unknown()
	}
	return measure.Spread{Median: 1 / rate.Median, Low: 1 / rate.High, High: 1 / rate.Low}
}

// costRatio compares what one operation costs, round by round.
func costRatio(a, b measure.Series) measure.Spread { return measure.Ratio(b, a) }

// atLeast adds a budget that is a floor.
func (s *stage) atLeast(work, engine, measured string, limit float64, value measure.Spread) {
	s.budget(report.Budget{Work: work, Engine: engine, Measured: measured, Limit: limit, Value: value})
}

// atMost adds a budget that is a ceiling.
func (s *stage) atMost(work, engine, measured string, limit float64, unit string, value measure.Spread) {
	s.budget(report.Budget{Work: work, Engine: engine, Measured: measured, Limit: limit, Unit: unit, Value: value, AtMost: true})
}

// budget adds a budget, with a warning where the numbers are not to be trusted.
func (s *stage) budget(b report.Budget) {
	if s.failed["oda on "+b.Engine] {
		b.Note = "operations failed while it was measured; the section says which."
	}
	s.budgets = append(s.budgets, b)
}

// thousands writes a count that was chosen.
func thousands(n int) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
