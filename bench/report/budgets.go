package report

import "oda/bench/measure"

// budgetsID names the plot of the budgets.
const budgetsID = "budgets"

// mostRoom bounds what is drawn of a cost of next to nothing.
const mostRoom = 100.0

// sign is how a limit is to be read.
func (b Budget) sign() string {
	if b.AtMost {
		return "≤"
	}
	return "≥"
}

// limit is the promise in words: "≥ 0.6 of bare".
func (b Budget) limit() string {
	text := b.sign() + " " + limit(b.Limit, b.Unit)
	if b.Measured != "" {
		text += " " + b.Measured
	}
	return text
}

// room is how many times better than its limit a value is: below 1 the budget
// is missed.
func (b Budget) room(value float64) float64 {
	switch {
	case !b.AtMost:
		return min(value/b.Limit, mostRoom)
	case value <= b.Limit/mostRoom:
		return mostRoom
	default:
		return b.Limit / value
	}
}

// budgetsPlot draws all budgets on one scale: bars to the right of the limit
// keep to it, bars to the left miss it.
func budgetsPlot(budgets []Budget) Plot {
	p := Plot{
		ID:       budgetsID,
		Title:    "How far from the budget",
		YLabel:   "times better than the limit; a bar to the left of 1× misses it",
		Unit:     "×",
		LogY:     true,
		Baseline: 1,
	}
	for _, b := range budgets {
		bar := Bar{Group: b.Work, Name: b.Engine, Note: b.limit(), Highlight: true}
		if b.measured() {
			bar.label = SpreadValue(measure.Spread{Median: b.Value.Median}, b.Unit)
			bar.Y, bar.Low, bar.High = b.room(b.Value.Median), b.room(b.Value.Low), b.room(b.Value.High)
			if bar.Low > bar.High {
				bar.Low, bar.High = bar.High, bar.Low
			}
			bar.warn = !b.Met()
			bar.label += mark(b.Met())
		}
		p.Bars = append(p.Bars, bar)
	}
	return p
}

// mark says the same as the colour, for those who do not see it.
func mark(met bool) string {
	if met {
		return " ✓"
	}
	return " ✗"
}
