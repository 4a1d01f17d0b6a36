package report

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// folder holds the plots and the raw numbers, beside the page.
const folder = "benchmarks"

// Write makes the page dir/benchmarks.md, its plots dir/benchmarks/*.svg and
// the raw numbers dir/benchmarks/results.json. Plots that the earlier run in
// dir made and this one does not are removed; nothing else is.
func Write(dir string, r *Result) error {
	if err := check(r); err != nil {
		return err
	}
	inside := filepath.Join(dir, folder)
	if err := os.MkdirAll(inside, 0o755); err != nil {
		return fmt.Errorf("make a folder for the plots: %w", err)
	}
	results := filepath.Join(inside, "results.json")
	text, err := encode(r)
	if err != nil {
		return err
	}
	plots := r.plots()
	if err := removeStale(inside, results, plots); err != nil {
		return err
	}
	colours := newSlots(plots)
	for _, p := range plots {
		if err := writeFile(plotFile(inside, p), []byte(p.svg(colours))); err != nil {
			return err
		}
	}
	if err := writeFile(results, text); err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, "benchmarks.md"), []byte(page(r)))
}

func writeFile(path string, text []byte) error {
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

func plotFile(dir string, p Plot) string { return filepath.Join(dir, p.ID+".svg") }

// plots are all that a report draws.
func (r *Result) plots() []Plot {
	var plots []Plot
	if len(r.Budgets) > 0 {
		plots = append(plots, budgetsPlot(r.Budgets))
	}
	for _, s := range r.Sections {
		plots = append(plots, s.Plots...)
	}
	return plots
}

// removeStale takes away the plots of an earlier run that are not drawn any
// more. Without a readable results.json of that run it is not known which
// files were its plots, and all stay.
func removeStale(inside, results string, now []Plot) error {
	earlier, err := Read(results)
	if err != nil || check(earlier) != nil {
		return nil
	}
	for _, p := range earlier.plots() {
		if slices.ContainsFunc(now, func(n Plot) bool { return n.ID == p.ID }) {
			continue
		}
		if err := os.Remove(plotFile(inside, p)); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("remove a plot of the earlier run: %w", err)
		}
	}
	return nil
}

var validID = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// check finds what would make two plots the same file or a link lead nowhere.
func check(r *Result) error {
	sections := map[string]bool{}
	plots := map[string]bool{budgetsID: true}
	for _, s := range r.Sections {
		if !validID.MatchString(s.ID) {
			return fmt.Errorf("section %q: its ID %q must be lower-case letters, digits and hyphens", s.Title, s.ID)
		}
		if sections[s.ID] || slices.Contains(anchors, s.ID) {
			return fmt.Errorf("section %q: the ID %q is taken; give it another", s.Title, s.ID)
		}
		sections[s.ID] = true
		for _, p := range s.Plots {
			if !validID.MatchString(p.ID) {
				return fmt.Errorf("plot %q: its ID %q must be lower-case letters, digits and hyphens", p.Title, p.ID)
			}
			if plots[p.ID] {
				return fmt.Errorf("plot %q: the ID %q is taken; give it another", p.Title, p.ID)
			}
			plots[p.ID] = true
		}
		for _, t := range s.Tables {
			for _, row := range t.Rows {
				if len(row) != len(t.Columns) {
					return fmt.Errorf("section %q: a row of table %q has %d cells, the table has %d columns", s.Title, t.Title, len(row), len(t.Columns))
				}
			}
		}
	}
	return nil
}
