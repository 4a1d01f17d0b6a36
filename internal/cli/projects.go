package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"oda"
	"oda/client"
	reports "oda/progress"
)

// projects are the commands for Projects.
type projects struct {
	entities
	Progress projectProgress `cmd:"" reads:"" help:"Print how far a Project is: the runs of each of its SBDefinitions."`
}

// projectProgress prints how far a Project is.
type projectProgress struct {
	ID     string `arg:"" name:"id" complete:"id" help:"Identifier."`
	Output string `short:"o" default:"auto" enum:"auto,table,json,yaml,csv" placeholder:"FORMAT" help:"Print a table (default), json, yaml, or csv: one run per line."`
	coloring
	remote
}

// Help is what "oda prjs progress --help" says besides the flags.
func (*projectProgress) Help() string {
	return `Each run of an SBDefinition is a mark: ✓ done, ✗ failed, ▶ running, ○ planned, ■ stopped,
– not known.`
}

// Run prints the progress.
func (p *projectProgress) Run(ctx context.Context, archive *client.Client, to streams) error {
	report, err := archive.Progress(ctx, p.ID)
	if err != nil {
		return explain(archive, p.ID, err)
	}
	look := p.look(to.out)
	if report.Truncated {
		fmt.Fprintf(to.err, "oda: %s: there is more than this; the archive reports at most 1,000 SBDefinitions and 10,000 runs, and adds up calls for 5 seconds\n", p.ID)
	}
	switch p.Output {
	case "json", "yaml":
		return look.printResult(to.out, p.Output, report)
	case "csv":
		columns := []string{
			"obs_block_id", "obs_block_name", "sbd_id", "sbd_name", "current_version", "sbd_done", "changed_since_last_run",
			"sbi_id", "eb_id", "sbd_version", "status", "class", "started", "ended", "busy_seconds", "calls", "failures",
		}
		return printRows(look, to.out, columns, runsOf(report))
	}
	return printProgress(to.out, look, report)
}

// runRow is a run, or an SBDefinition that has none, as CSV has it.
type runRow struct {
	Group      *string `json:"obs_block_id"`
	GroupName  *string `json:"obs_block_name"`
	Definition string  `json:"sbd_id"`
	Name       *string `json:"sbd_name"`
	Current    *int64  `json:"current_version"`
	Done       bool    `json:"sbd_done"`
	Changed    *bool   `json:"changed_since_last_run"`
	*reports.Run
}

func runsOf(report *reports.Report) (rows []runRow) {
	for _, b := range report.Blocks {
		for _, d := range b.Definitions {
			row := runRow{b.ID, b.Name, d.ID, d.Name, d.Version, d.Done, d.Changed, nil}
			if len(d.Runs) == 0 {
				rows = append(rows, row)
			}
			for i := range d.Runs {
				row.Run = &d.Runs[i]
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// runMarks has a mark for each class, in the order of the classes.
var runMarks = [...]string{
	oda.NoClass: "–", oda.ClassPlanned: "○", oda.ClassRunning: "▶", oda.ClassDone: "✓", oda.ClassFailed: "✗", oda.ClassStopped: "■",
}

// printProgress prints a line for each SBDefinition.
func printProgress(out io.Writer, look look, report *reports.Report) error {
	fmt.Fprintf(out, "%d of %s done.\n", report.Done, manyOf(int64(report.Definitions), "SBDefinition"))
	lines := &table{look: look, header: []string{"OBSERVING BLOCK", "SBDEFINITION", "RUNS", "LAST RUN (UTC)", "IN CALLS", "NAME"}, ends: true}
	for _, b := range report.Blocks {
		for _, d := range b.Definitions {
			marks, last, busy := sumOf(d.Runs)
			row := plainCells(firstOf(b.Name, b.ID), d.ID, marks, last, busy, firstOf(d.Name))
			if row[1].ink = cyan; d.Done {
				row[2].ink = green
			}
			lines.add(row...)
		}
	}
	if len(lines.rows) > 0 {
		fmt.Fprintln(out)
	}
	return lines.flush(out)
}

// sumOf sums up the runs of an SBDefinition.
func sumOf(runs []reports.Run) (marks, last, busy string) {
	var took oda.Elapsed
	var each []string
	last, busy = "-", "-"
	for _, r := range runs {
		each = append(each, runMarks[min(int(r.Class), len(runMarks)-1)])
		if r.Started != nil {
			last = when(oda.Instant(*r.Started))
		}
		if r.Busy != nil {
			took += *r.Busy
			busy = (time.Duration(took) * time.Microsecond).Round(time.Second).String()
		}
	}
	const shown = 20
	if len(each) > shown {
		each = append([]string{strconv.Itoa(len(each)-shown) + " more"}, each[len(each)-shown:]...)
	}
	if len(each) == 0 {
		return "-", last, busy
	}
	return strings.Join(each, " "), last, busy
}

// firstOf returns the first text that there is.
func firstOf(texts ...*string) string {
	for _, text := range texts {
		if text != nil {
			return *text
		}
	}
	return "-"
}
