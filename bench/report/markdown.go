package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// anchors are the sections that every page has.
var anchors = []string{"budgets", "at-a-glance", "machine", "repeat", "words"}

// page is the whole report in Markdown.
func page(r *Result) string {
	var s strings.Builder
	s.WriteString("# Benchmarks\n\n")
	s.WriteString("<!-- Written by make bench. What is changed here by hand is lost at its next run. -->\n\n")
	writeSummary(&s, r)
	writeBudgets(&s, r.Budgets)
	writeHeadlines(&s, r.Sections)
	for _, section := range r.Sections {
		writeSection(&s, section)
	}
	writeMachine(&s, r)
	s.WriteString(closing)
	return s.String()
}

func writeSummary(s *strings.Builder, r *Result) {
	fmt.Fprintf(s, "oda %s, measured on %s in %s. The machine: %s. The load generator, the servers and the databases share it.\n\n",
		r.Version, r.Started.UTC().Format("2 January 2006"), Duration(r.Took), machineLine(r))
	if r.Quick {
		s.WriteString("> **A quick run.** It shows that everything works; its measurements are too short to quote. `make bench` measures in full.\n\n")
	}
	if len(r.Budgets) > 0 {
		met := 0
		for _, b := range r.Budgets {
			if b.Met() {
				met++
			}
		}
		fmt.Fprintf(s, "**%d of %d budgets are met.** ", met, len(r.Budgets))
	}
	s.WriteString("A figure is the median of several rounds, with the smallest and the largest in parentheses. ")
	s.WriteString("Ratios compare neighbours in time on this one machine, so they say more about another machine than rates and times do. ")
	s.WriteString("The [words](#words) are explained at the end.\n\n")
	links := make([]string, 0, len(r.Sections)+3)
	for _, section := range r.Sections {
		links = append(links, fmt.Sprintf("[%s](#%s)", section.Title, section.ID))
	}
	links = append(links, "[The machine](#machine)", "[How to repeat it](#repeat)")
	s.WriteString(strings.Join(links, " · ") + "\n\n")
}

// machineLine names what decides the numbers: processor, memory, disk.
func machineLine(r *Result) string {
	m := r.Machine
	parts := []string{m.CPU, plural(m.Cores, "core"), Bytes(float64(m.MemoryBytes)) + " of memory", m.OS, m.Disk}
	if m.FsyncP50 > 0 {
		parts = append(parts, fmt.Sprintf("%s to make 4 KiB durable (p99 %s)", Duration(m.FsyncP50), Duration(m.FsyncP99)))
	}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ", ")
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

func heading(s *strings.Builder, id, title string) {
	fmt.Fprintf(s, "<a id=\"%s\"></a>\n\n## %s\n\n", id, title)
}

func writeBudgets(s *strings.Builder, budgets []Budget) {
	if len(budgets) == 0 {
		return
	}
	heading(s, "budgets", "Budgets")
	s.WriteString("What the design promises, and what was measured of it.\n\n")
	s.WriteString("| work | engine | budget | measured | |\n|:---|:---|:---|---:|:---|\n")
	for _, b := range budgets {
		value, verdict := "", "not measured"
		switch {
		case b.Met():
			value, verdict = SpreadValue(b.Value, b.Unit), "✓ met"
		case b.measured():
			value, verdict = "**"+SpreadValue(b.Value, b.Unit)+"**", "✗ **not met**"
		}
		writeRow(s, []string{b.Work, b.Engine, b.limit(), value, verdict})
	}
	s.WriteString("\n")
	notes := false
	for _, b := range budgets {
		if b.Note != "" {
			fmt.Fprintf(s, "- *%s, %s, %s*: %s\n", b.Work, b.Engine, b.limit(), b.Note)
			notes = true
		}
	}
	if notes {
		s.WriteString("\n")
	}
	writePlot(s, budgetsPlot(budgets))
}

func writeHeadlines(s *strings.Builder, sections []Section) {
	first := true
	for _, section := range sections {
		for _, p := range section.Plots {
			if !p.Headline {
				continue
			}
			if first {
				heading(s, "at-a-glance", "At a glance")
				first = false
			}
			writePlot(s, p)
		}
	}
}

func writeSection(s *strings.Builder, section Section) {
	heading(s, section.ID, section.Title)
	for _, paragraph := range section.Text {
		s.WriteString(strings.TrimSpace(paragraph) + "\n\n")
	}
	writeFailures(s, section.Series)
	for _, t := range section.Tables {
		writeTable(s, t)
	}
	for _, p := range section.Plots {
		writePlot(s, p)
	}
}

// writeFailures makes sure that nobody reads a rate without knowing that some
// of the operations behind it failed.
func writeFailures(s *strings.Builder, series []NamedSeries) {
	for _, named := range series {
		for _, arm := range named.Series {
			if failed := arm.Failed(); failed > 0 {
				fmt.Fprintf(s, "> **Failures.** In %s, %s: %d operations failed; the first: `%s`\n\n",
					named.Name, arm.Arm, failed, strings.ReplaceAll(oneLine(arm.FirstFailure()), "`", "'"))
			}
		}
	}
}

func writePlot(s *strings.Builder, p Plot) {
	fmt.Fprintf(s, "![%s](%s/%s.svg)\n\n", strings.NewReplacer("[", "(", "]", ")").Replace(oneLine(p.Title)), folder, p.ID)
}

func writeTable(s *strings.Builder, t Table) {
	if len(t.Columns) == 0 {
		return
	}
	if t.Title != "" {
		fmt.Fprintf(s, "**%s**\n\n", t.Title)
	}
	writeRow(s, t.Columns)
	s.WriteString("|:---|" + strings.Repeat("---:|", len(t.Columns)-1) + "\n")
	for _, row := range t.Rows {
		writeRow(s, row)
	}
	s.WriteString("\n")
}

func writeRow(s *strings.Builder, cells []string) {
	s.WriteString("|")
	for _, cell := range cells {
		s.WriteString(" " + strings.ReplaceAll(oneLine(cell), "|", `\|`) + " |")
	}
	s.WriteString("\n")
}

// oneLine keeps a text from ending the row or the image that it stands in.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func writeMachine(s *strings.Builder, r *Result) {
	heading(s, "machine", "The machine")
	m := r.Machine
	rows := [][]string{
		{"processor", m.CPU},
		{"cores", fmt.Sprint(m.Cores)},
		{"memory", Bytes(float64(m.MemoryBytes))},
		{"system", m.OS},
		{"kernel", m.Kernel},
		{"disk", m.Disk},
		{"durable append of 4 KiB, p50 / p99", Duration(m.FsyncP50) + " / " + Duration(m.FsyncP99)},
		{"load before the run", Num(m.Load1)},
		{"Go", m.Go},
		{"PostgreSQL", m.Postgres},
	}
	for _, name := range slices.Sorted(maps.Keys(r.Peers)) {
		rows = append(rows, []string{name, r.Peers[name]})
	}
	rows = slices.DeleteFunc(rows, func(row []string) bool { return row[1] == "" })
	s.WriteString("| | |\n|:---|:---|\n")
	for _, row := range rows {
		writeRow(s, row)
	}
	s.WriteString("\n")
}
