package work

import (
	"maps"
	"slices"
	"time"

	"oda/bench/report"
)

// Merge puts the sections and budgets of a later run into an earlier result.
// What was measured again takes the place of what is there, and says so, since
// the machine may have had another day.
func Merge(earlier, later *report.Result) *report.Result {
	merged := *earlier
	merged.Sections = slices.Clone(earlier.Sections)
	merged.Budgets = slices.Clone(earlier.Budgets)
	for _, section := range later.Sections {
		if !later.Started.IsZero() {
			section.Text = append(section.Text, "Measured in a run of its own, on "+later.Started.Format(time.DateOnly)+".")
		}
		same := func(s report.Section) bool { return s.ID == section.ID }
		if at := slices.IndexFunc(merged.Sections, same); at >= 0 {
			merged.Sections[at] = section
		} else {
			merged.Sections = append(merged.Sections, section)
		}
	}
	for _, budget := range later.Budgets {
		same := func(b report.Budget) bool {
			return b.Work == budget.Work && b.Engine == budget.Engine && b.Measured == budget.Measured
		}
		if at := slices.IndexFunc(merged.Budgets, same); at >= 0 {
			merged.Budgets[at] = budget
		} else {
			merged.Budgets = append(merged.Budgets, budget)
		}
	}
	merged.Peers = maps.Clone(earlier.Peers)
	if merged.Peers == nil {
		merged.Peers = map[string]string{}
	}
	maps.Copy(merged.Peers, later.Peers)
	return &merged
}
