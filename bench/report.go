package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// words explains how to read the report, and how to repeat it.
const words = `## How to read and repeat it

- Arms are measured in turn, A B C C B A, and each is warmed up first. One turn is a round. A figure is the median of the
  rounds; the first column and ratios show the smallest and the largest in parentheses. A ratio is taken within a round, between neighbours in time.
- On a virtual machine the host may give processor time to others. A measurement that lost more than 2 % to them is repeated a few times, and the one that lost the least counts.
- **Bare** is a net/http handler that reads the same bodies, writes the same bytes and stores nothing. **pgbench** runs SQL on
  oda's tables over as many connections; **raw SQLite** does so directly from Go, on one connection, with oda's settings. **PocketBase**
  runs with its defaults, under which a power cut may lose commits.
- PostgreSQL has ` + "`shared_buffers` 512MB, `max_wal_size` 4GB" + ` and otherwise its defaults: all its commits are durable, and so are all of oda's.
- A loop is **closed** (the next request follows the answer: the most that a server can do) unless it has a constant rate (**open**:
  latency is measured from when a request was due, so that waiting counts).

` + "```sh" + `
make bench                                        # half an hour and 20 GB; writes this page
make bench BENCH_ONLY='reading|night'             # some of it again; updates this page
make bench BENCH_ONLY=scale                       # 10,000,000 records: a quarter of an hour and 12 GB more
make soak SOAKTIME=8h                             # a mixed night on both engines: fails if anything grows (default 10m)
make bench-against REV=v1 BENCH_ONLY=recording    # in turn with the oda of another revision
` + "```" + `

Everything that was measured, round by round, is in [benchmarks/results.json](benchmarks/results.json). Measure on an
otherwise idle machine: other load causes wide spreads.
`

// report writes the results as a page for people, with its plots next to it.
func (r *results) report(dir string) error {
	plots, err := filepath.Glob(filepath.Join(dir, "benchmarks", "*.svg"))
	if err != nil {
		return err
	}
	for _, old := range plots {
		if err := os.Remove(old); err != nil {
			return err
		}
	}
	var b strings.Builder
	b.WriteString("# Benchmarks\n\n<!-- Written by make bench, whose next run overwrites changes by hand. -->\n\n")
	fmt.Fprintf(&b, "oda %s", r.Version)
	if r.Against != "" {
		fmt.Fprintf(&b, " against %s", r.Against)
	}
	fmt.Fprintf(&b, ", measured in %v. The load generator, the servers and the databases share one machine:\n\n", r.Took.Round(time.Second))
	if r.Quick {
		b.WriteString("**A quick run: it shows that everything works, not how fast it is.**\n\n")
	}
	for _, line := range r.Machine {
		fmt.Fprintf(&b, "- %s: %s\n", line[0], line[1])
	}
	b.WriteString("\n")
	r.writeBudgets(&b)
	for _, s := range r.Sections {
		fmt.Fprintf(&b, "## %s\n\n%s\n\n", s.Title, s.Text)
		if s.Version != r.Version {
			fmt.Fprintf(&b, "Measured at %s on %s.\n\n", s.Version, s.Measured.Format(time.DateOnly))
		}
		for _, t := range s.Tables {
			t.write(&b)
			if t.Plot != nil {
				file := filepath.Join("benchmarks", s.Name+".svg")
				if err := t.draw(filepath.Join(dir, file)); err != nil {
					return fmt.Errorf("plot %s: %w", s.Name, err)
				}
				fmt.Fprintf(&b, "![%s](%s)\n\n", t.Plot.Title, file)
			}
		}
	}
	b.WriteString(words)
	return os.WriteFile(filepath.Join(dir, "benchmarks.md"), []byte(b.String()), 0o644)
}

// writeBudgets compares the measurements with the promises.
func (r *results) writeBudgets(w io.Writer) {
	fmt.Fprint(w, "## Budgets\n\n| work | of | budget | measured | |\n|:---|:---|:---|---:|:---|\n")
	for _, s := range r.Sections {
		for _, b := range s.Budgets {
			sign, verdict := "≥", "met"
			values := s.values(b)
			measured := spreadOf(values).median
			if b.AtMost {
				sign = "≤"
			}
			if b.AtMost && measured > b.Limit || !b.AtMost && measured < b.Limit {
				verdict = "**missed**"
			}
			if len(values) == 0 {
				verdict = "not measured"
			}
			limit := format(b.Limit, b.column.unit())
			if strings.Contains(limit, ".") {
				limit = strings.TrimRight(limit, "0")
			}
			if len(b.Over) > 0 && b.Limit < 1 {
				limit += " of " + b.below()
			} else if len(b.Over) > 0 {
				limit += " × " + b.below()
			}
			fmt.Fprintf(w, "| %s | %s | %s %s | %s | %s |\n", b.Work, b.Arm, sign, limit, formatAll(values, b.column.unit()), verdict)
		}
	}
	fmt.Fprintln(w)
}

// unit returns the unit of the figure, or none for a ratio.
func (c column) unit() string {
	if len(c.Over) > 0 {
		return ""
	}
	return c.Figure.unit()
}

// write writes the table, without empty columns.
func (t *table) write(w io.Writer) {
	if t.Title != "" {
		fmt.Fprintf(w, "**%s**\n\n", t.Title)
	}
	var columns []column
	for _, c := range t.Columns {
		for _, one := range t.Series {
			if len(t.values(one.Arm, c)) > 0 {
				columns = append(columns, c)
				break
			}
		}
	}
	head, rule := "| |", "|:---|"
	for _, c := range columns {
		head, rule = head+" "+c.title()+" |", rule+"---:|"
	}
	fmt.Fprintln(w, head+"\n"+rule)
	for _, one := range t.Series {
		if slices.ContainsFunc(columns, func(c column) bool {
			return len(c.Over) == 1 && c.Over[0] == onSmall && strings.HasSuffix(one.Arm, onSmall)
		}) {
			continue // the ratio of the large archive says it
		}
		fmt.Fprintf(w, "| %s |", one.Arm)
		for i, c := range columns {
			values := t.values(one.Arm, c)
			if i > 0 && len(c.Over) == 0 && len(values) > 0 {
				values = []float64{spreadOf(values).median}
			}
			fmt.Fprintf(w, " %s |", formatAll(values, c.unit()))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
}

// formatAll formats the median of values with the smallest and the largest.
func formatAll(values []float64, unit string) string {
	if len(values) == 0 {
		return "–"
	}
	s := spreadOf(values)
	text, low, high := format(s.median, unit), format(s.low, unit), format(s.high, unit)
	if low == high {
		return text
	}
	_, name, _ := strings.Cut(high, " ")
	return fmt.Sprintf("%s (%s–%s)", text, strings.TrimSuffix(low, " "+name), high)
}

// format formats a number with three digits, in a suitable unit.
func format(value float64, unit string) string {
	switch {
	case value == 0:
		return "0"
	case unit == "s" && value < 1e-3:
		return digits(value*1e6) + " µs"
	case unit == "s" && value < 1:
		return digits(value*1e3) + " ms"
	case unit == "s":
		return digits(value) + " s"
	case unit == "B" && value < 10<<10:
		return digits(value) + " B"
	case unit == "B" && value < 1<<20:
		return digits(value/(1<<10)) + " KiB"
	case unit == "B" && value < 10<<30:
		return digits(value/(1<<20)) + " MiB"
	case unit == "B":
		return digits(value/(1<<30)) + " GiB"
	}
	return digits(value)
}

// digits rounds to three digits and separates thousands by commas.
func digits(value float64) string {
	if math.IsInf(value, 0) || math.IsNaN(value) {
		return fmt.Sprint(value)
	}
	if value == math.Trunc(value) && math.Abs(value) < 1000 {
		return strconv.Itoa(int(value))
	}
	magnitude := int(math.Floor(math.Log10(math.Abs(value))))
	if rounded, err := strconv.ParseFloat(strconv.FormatFloat(value, 'g', 3, 64), 64); err == nil {
		value = rounded
	}
	text := strconv.FormatFloat(value, 'f', max(0, 2-magnitude), 64)
	for at := len(text) - 3; at > 0 && magnitude >= 3; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
