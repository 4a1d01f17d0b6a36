package report

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Between least and most, no sum, difference or quotient of two values leaves
// what a float64 can hold.
const (
	least = 1e-18
	most  = 1e18
)

// drawable tells whether a number has a place in a plot.
func drawable(v float64) bool { return math.Abs(v) <= most }

// axis maps values to a length in the picture.
type axis struct {
	log      bool
	lo, hi   float64 // values at the ends
	from, to float64 // where the ends are drawn
	ticks    []float64
}

// at is where a value is drawn. What lies outside is drawn at the end.
func (a axis) at(v float64) float64 {
	lo, hi := a.lo, a.hi
	v = min(max(v, lo), hi)
	if a.log {
		lo, hi, v = math.Log(lo), math.Log(hi), math.Log(v)
	}
	return a.from + (a.to-a.from)*(v-lo)/(hi-lo)
}

// shows tells whether a value can be drawn on the axis at all.
func (a axis) shows(v float64) bool { return drawable(v) && (!a.log || v >= least) }

// niceAxis takes the values that are to be drawn, and gives an axis that begins
// and ends on a round number. A linear axis begins at zero, since a length that
// does not would mislead.
func niceAxis(values []float64, log bool, wanted int) axis {
	a := axis{log: log}
	values = slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return !a.shows(v) })
	if log {
		return niceLog(values, wanted)
	}
	lo, hi := 0.0, 0.0
	for _, v := range values {
		lo, hi = min(lo, v), max(hi, v)
	}
	if hi-lo < least {
		lo, hi = 0, 1
	}
	step := roundUp((hi - lo) / float64(wanted))
	a.lo, a.hi = math.Floor(lo/step)*step, math.Ceil(hi/step)*step
	a.ticks = linearTicks(a.lo, a.hi, step)
	return a
}

func niceLog(values []float64, wanted int) axis {
	if len(values) == 0 {
		values = []float64{1}
	}
	a := axis{log: true, lo: roundDown(slices.Min(values)), hi: roundUp(slices.Max(values))}
	if a.hi < a.lo*1.5 {
		a.lo, a.hi = roundDown(a.lo*0.7), roundUp(a.hi*1.5)
	}
	a.ticks = logTicks(a.lo, a.hi, wanted)
	return a
}

// tightAxis begins and ends with the values themselves, for the horizontal
// axis of lines. If the values are few they are the ticks.
func tightAxis(values []float64, log bool, wanted int) axis {
	a := axis{log: log}
	values = slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return !a.shows(v) })
	slices.Sort(values)
	values = slices.Compact(values)
	if len(values) < 2 || values[len(values)-1]-values[0] < least {
		a = niceAxis(values, log, wanted)
		a.ticks = values[:min(len(values), 1)]
		return a
	}
	a.lo, a.hi = values[0], values[len(values)-1]
	switch {
	case len(values) <= wanted+2:
		a.ticks = values
	case log:
		a.ticks = logTicks(a.lo, a.hi, wanted)
	default:
		a.ticks = linearTicks(a.lo, a.hi, roundUp((a.hi-a.lo)/float64(wanted)))
	}
	return a
}

// linearTicks are the multiples of step from lo to hi.
func linearTicks(lo, hi, step float64) []float64 {
	first, last := math.Ceil(lo/step-1e-9), math.Floor(hi/step+1e-9)
	ticks := make([]float64, 0, 16)
	for i := first; i <= last && len(ticks) < 32; i++ {
		ticks = append(ticks, tidy(i*step))
	}
	return ticks
}

// logTicks are 1, 2 and 5 in each decade from lo to hi, or the decades alone
// where that gives too many, or every second or third of them.
func logTicks(lo, hi float64, wanted int) []float64 {
	first := int(math.Floor(math.Log10(lo) + 1e-9))
	last := int(math.Ceil(math.Log10(hi) - 1e-9))
	every := 1
	for (last-first)/every > wanted {
		every++
	}
	factors := []float64{1, 2, 5}
	if math.Log10(hi/lo)*3 > float64(wanted) {
		factors = factors[:1]
	}
	ticks := make([]float64, 0, 16)
	for decade := first; decade <= last; decade += every {
		for _, factor := range factors {
			v := tidy(factor * math.Pow10(decade))
			if v >= lo*(1-1e-9) && v <= hi*(1+1e-9) {
				ticks = append(ticks, v)
			}
		}
	}
	return ticks
}

// roundUp is the next number of the form 1, 2 or 5 times a power of ten.
func roundUp(v float64) float64 {
	decade := math.Pow10(int(math.Floor(math.Log10(v))))
	for _, factor := range []float64{1, 2, 5} {
		if v <= factor*decade*(1+1e-9) {
			return tidy(factor * decade)
		}
	}
	return tidy(10 * decade)
}

// roundDown is the last such number that is not greater.
func roundDown(v float64) float64 {
	decade := math.Pow10(int(math.Floor(math.Log10(v) + 1e-12)))
	for _, factor := range []float64{5, 2} {
		if v >= factor*decade*(1-1e-9) {
			return tidy(factor * decade)
		}
	}
	return tidy(decade)
}

// tidy takes off what binary fractions add, so that 3 × 0.1 is 0.3.
func tidy(v float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 12, 64), 64)
	if err != nil {
		return v
	}
	return rounded
}

// tickLabels names ticks as short as can be. On a linear axis all are in the
// unit of the largest; on a logarithmic one each has its own.
func tickLabels(ticks []float64, unit string, log bool) []string {
	largest := 0.0
	for _, v := range ticks {
		largest = max(largest, math.Abs(v))
	}
	labels := make([]string, len(ticks))
	for i, v := range ticks {
		size := v
		if !log {
			size = largest
		}
		labels[i] = tickLabel(v, size, largest, unit)
	}
	return labels
}

func tickLabel(v, size, largest float64, unit string) string {
	if v == 0 {
		return "0"
	}
	factor := 1.0
	switch unit {
	case "s":
		factor, unit = timeUnit(size)
	case "B":
		factor, unit = byteUnit(size)
	}
	number := compact(v/factor, largest/factor)
	switch unit {
	case "":
		return number
	case "×":
		return number + unit
	default:
		return number + " " + unit
	}
}

// compact writes thousands as K and millions as M once the numbers of an axis
// grow long.
func compact(v, largest float64) string {
	suffix := ""
	switch {
	case largest < 10_000:
	case math.Abs(v) >= 1e6:
		v, suffix = v/1e6, "M"
	case math.Abs(v) >= 1e3:
		v, suffix = v/1e3, "K"
	}
	text := strconv.FormatFloat(v, 'f', -1, 64)
	if _, fraction, _ := strings.Cut(text, "."); len(fraction) > 4 {
		text = strconv.FormatFloat(v, 'g', 3, 64)
	}
	return group(text) + suffix
}
