package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// figure is a quantity that a run of an arm measures.
type figure string

const (
	rate   figure = "per second"
	p50    figure = "p50"
	p99    figure = "p99"
	p999   figure = "p99.9"
	took   figure = "time"
	memory figure = "memory"
	disk   figure = "on disk"
	stolen figure = "stolen" // share of the processor time that the host gave to others
	// cost is the time that one operation takes on the busy machine, the
	// inverse of the rate. It is computed, not stored.
	cost figure = "cost"
)

// unit is the unit of a figure: seconds, bytes or, if empty, a plain number.
func (f figure) unit() string {
	switch f {
	case p50, p99, p999, took, cost:
		return "s"
	case memory, live, disk, written, logged, walSize, perWrite, lines, moved:
		return "B"
	}
	return ""
}

// sample is what one run of an arm measured.
type sample map[figure]float64

// arm is one of the things compared.
type arm struct {
	name string
	// line and x are its place in the plot of the table, if there is one.
	line string
	x    float64
	// run works for about this long. Any failure ends the scenario: a quick
	// refusal must not look like a quick answer.
	run func(ctx context.Context, length time.Duration) (sample, error)
}

// table is a comparison of arms, as stored in results.json.
type table struct {
	Title   string   `json:"title,omitempty"`
	Columns []column `json:"columns"`
	Series  []series `json:"series"`
	Plot    *plotted `json:"plot,omitempty"`

	sized bool // its arms do a certain work, however long that takes
}

// series has the measurements of one arm, round by round.
type series struct {
	Arm    string               `json:"arm"`
	Line   string               `json:"line,omitempty"`
	X      float64              `json:"x,omitempty"`
	Rounds map[figure][]float64 `json:"rounds"`
}

// column shows a figure of each arm. With Over, it is divided by the sum of
// that figure for other arms; a name that begins with a space is appended to
// that of the arm itself.
type column struct {
	Figure figure   `json:"figure"`
	Over   []string `json:"over,omitempty"`
}

// title returns the heading of the column.
func (c column) title() string {
	if len(c.Over) == 0 {
		return string(c.Figure)
	}
	return "÷ " + c.below()
}

// below names the divisor of the figure.
func (c column) below() string {
	if len(c.Over) > 1 {
		return "(" + strings.Join(c.Over, " + ") + ")"
	}
	return strings.TrimPrefix(strings.TrimPrefix(c.Over[0], " at "), ", ")
}

// plain returns columns without a divisor.
func plain(figures ...figure) []column {
	columns := make([]column, len(figures))
	for i, f := range figures {
		columns[i].Figure = f
	}
	return columns
}

// budget is a promise of the design.
type budget struct {
	Work   string  `json:"work"`
	Arm    string  `json:"arm"`
	column         // what is measured
	Limit  float64 `json:"limit"`
	AtMost bool    `json:"at_most,omitempty"` // otherwise at least
}

// sizedRounds is the number of rounds if arms do a certain work, and so take long.
const sizedRounds = 5

// measure warms the arms up, then measures them in turn, so that other load on
// the machine affects all of them alike. Every other round goes backwards, so
// that no arm always follows the same one. A measurement during which the host
// withheld processor time is repeated.
func (s *stage) measure(ctx context.Context, t table, arms []arm) error {
	if s.against() {
		main := t.Columns[0].Figure
		t.Columns = slices.DeleteFunc(slices.Clone(t.Columns), func(c column) bool { return len(c.Over) > 0 })
		t.Columns = slices.Insert(t.Columns, 1, over(main, s.odas[1].suffix))
	}
	for _, a := range arms {
		t.Series = append(t.Series, series{Arm: a.name, Line: a.line, X: a.x, Rounds: map[figure][]float64{}})
	}
	round, length := 1, s.plan.length
	if s.plan.warm > 0 {
		round, length = 0, s.plan.warm
	}
	rounds := s.plan.rounds
	if t.sized {
		rounds = min(rounds, sizedRounds)
	}
	for backwards := false; round <= rounds; round, backwards = round+1, !backwards {
		for i := range arms {
			if backwards {
				i = len(arms) - 1 - i
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			got, err := undisturbed(4*length, func() (sample, error) { return arms[i].run(ctx, length) })
			if err != nil {
				return fmt.Errorf("%s: %w", arms[i].name, err)
			}
			if round == 0 {
				continue
			}
			s.say("  %d of %d  %-28s %v", round, rounds, arms[i].name, got)
			for f, value := range got {
				t.Series[i].Rounds[f] = append(t.Series[i].Rounds[f], value)
			}
		}
		length = s.plan.length
	}
	s.section.Tables = append(s.section.Tables, &t)
	return nil
}

// String formats the figures for progress messages.
func (s sample) String() string {
	var all []string
	for _, f := range []figure{rate, p50, p99, took, memory, disk, stolen} {
		if value, ok := s[f]; ok {
			all = append(all, string(f)+" "+format(value, f.unit()))
		}
	}
	return strings.Join(all, ", ")
}

// of returns one figure of an arm, round by round.
func (t *table) of(arm string, f figure) []float64 {
	for _, one := range t.Series {
		switch {
		case one.Arm != arm:
		case f == cost:
			var inverse []float64
			for _, perSecond := range one.Rounds[rate] {
				inverse = append(inverse, 1/perSecond)
			}
			return inverse
		default:
			return one.Rounds[f]
		}
	}
	return nil
}

// values returns a column of an arm, round by round: a ratio is taken between
// measurements of the same round. It is empty if the arm, or one that it is
// compared with, was not measured.
func (t *table) values(arm string, c column) []float64 {
	values := slices.Clone(t.of(arm, c.Figure))
	if len(c.Over) == 0 {
		return values
	}
	below := make([]float64, len(values))
	for _, name := range c.Over {
		if strings.HasPrefix(name, " ") || strings.HasPrefix(name, ",") {
			name = arm + name
		}
		other := t.of(name, c.Figure)
		if len(other) < len(values) {
			return nil
		}
		for i := range values {
			below[i] += other[i]
		}
	}
	for i := range values {
		values[i] /= below[i]
	}
	return values
}

// spread is the median of a few values, with the smallest and the largest.
type spread struct{ median, low, high float64 }

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	median := sorted[middle]
	if len(sorted)%2 == 0 {
		median = (sorted[middle-1] + median) / 2
	}
	return spread{median, sorted[0], sorted[len(sorted)-1]}
}
