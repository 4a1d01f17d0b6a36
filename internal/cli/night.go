package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"oda"
	"oda/client"
	"oda/night"
)

// nightReport reports on a night.
type nightReport struct {
	Date      string `arg:"" optional:"" default:"last-night" help:"Date on which the night began, yesterday or last-night (default), or today; or a time in the night, such as 2026-01-31T22:00Z or 3d, which is three days ago."`
	Zone      string `narrows:"" placeholder:"ZONE" complete:"zone" help:"Time zone, such as Africa/Johannesburg: a night lasts from noon to noon (default: that of the telescope, or of the archive)."`
	Telescope string `narrows:"" placeholder:"NAME" complete:"telescope" help:"Only this telescope."`
	Output    string `short:"o" default:"auto" enum:"auto,table,json,yaml,csv,markdown" placeholder:"FORMAT" help:"Print tables (default), json, yaml, csv: the blocks, or markdown: a shift log to paste into a message."`
	coloring
	remote
}

// Validate checks which night is meant.
func (n *nightReport) Validate() error {
	if n.Date == "" {
		return errors.New("the date is empty; is a variable not set?")
	}
	if _, err := time.Parse(time.DateOnly, nightDate(n.Date, n.Zone, time.Now())); err != nil {
		return fmt.Errorf("%q is not a night; write the date on which it began, such as 2026-01-31, or last-night, today, or a time in it", n.Date)
	}
	return nil
}

// Run prints the report.
func (n *nightReport) Run(ctx context.Context, archive *client.Client, to streams) error {
	which, report, err := n.ask(ctx, archive)
	var text string
	if err == nil && n.Output == "markdown" {
		text, err = archive.ShiftLog(ctx, which)
	}
	if err != nil {
		return explain(archive, "the night of "+which.Date, err)
	}
	look := n.look(to.out)
	switch n.Output {
	case "markdown":
		_, err := io.WriteString(to.out, text)
		return err
	case "json", "yaml":
		return look.printResult(to.out, n.Output, report)
	case "csv":
		return printRows(look, to.out, night.BlockColumns, report.Blocks)
	}
	return printNight(to.out, look, report)
}

// ask asks for the night. Only the archive knows its zone: if last night or today is another
// night there than in UTC, it is asked again.
func (n *nightReport) ask(ctx context.Context, archive *client.Client) (client.Night, *night.Report, error) {
	now := time.Now()
	which := client.Night{Date: nightDate(n.Date, n.Zone, now), Zone: n.Zone, Telescope: n.Telescope}
	report, err := archive.Night(ctx, which)
	if err != nil {
		return which, nil, err
	}
	if date := nightDate(n.Date, report.Zone, now); date != which.Date {
		which.Date = date
		report, err = archive.Night(ctx, which)
	}
	return which, report, err
}

// nightDate returns the date on which a night began, from what a person calls the night.
// It returns a text that it does not understand unchanged.
func nightDate(text, zone string, now time.Time) string {
	if place, err := time.LoadLocation(zone); err == nil {
		now = now.In(place)
	}
	switch text {
	case "yesterday", "last-night":
		return night.Last(now)
	case "today", "tonight":
		return now.Format(time.DateOnly)
	}
	at, ok := spoken(text, now)
	if !ok && len(text) > len(time.DateOnly) { // a date alone names the night
		parsed, err := oda.ParseTime(text)
		at, ok = parsed.In(now.Location()), err == nil
	}
	if ok { // the night that includes this time
		if at.Hour() < 12 {
			at = at.AddDate(0, 0, -1)
		}
		return at.Format(time.DateOnly)
	}
	return text
}

// printNight prints a report for people, with times in its zone.
func printNight(out io.Writer, look look, report *night.Report) error {
	zone, err := time.LoadLocation(report.Zone)
	if err != nil {
		zone = time.UTC
	}
	when := func(at oda.Moment) string { return at.Time().In(zone).Format("2006-01-02 15:04:05") }
	fmt.Fprintf(out, "From %s to %s %s: %s in %s, %s, busy for %s, idle for %s.\n",
		when(report.From), when(report.To), report.Zone, manyOf(report.Calls, "call"), manyOf(int64(len(report.Blocks)), "block"),
		look.paint(failedInk(report.Failures), grouped(report.Failures)+" failed"), lasting(report.Busy), lasting(report.Idle))
	blocks := &table{look: look, header: []string{"BLOCK", "NAME", "FROM", "TO", "CALLS", "FAILED", "BUSY", "STATUS", "WHO", "TELESCOPE"}}
	for _, b := range report.Blocks {
		row := plainCells(b.ID, orHyphen(b.Name), when(b.FirstCall), when(b.LastCall), grouped(b.Calls), grouped(b.Failures), lasting(b.Busy), cmp.Or(b.Status.Text, "-"), b.CreatedBy, orHyphen(b.Telescope))
		row[0].ink, row[5].ink = cyan, failedInk(b.Failures)
		blocks.add(row...)
	}
	telescopes := &table{look: look, header: []string{"TELESCOPE", "BLOCKS", "CALLS", "FAILED", "BUSY", "IDLE"}}
	for _, t := range report.Telescopes {
		row := plainCells(orHyphen(t.Telescope), grouped(t.Blocks), grouped(t.Calls), grouped(t.Failures), lasting(t.Busy), lasting(t.Idle))
		row[3].ink = failedInk(t.Failures)
		telescopes.add(row...)
	}
	failures := &table{look: look, header: []string{"FAILED", "OF", "REQUEST"}, ends: true}
	for _, f := range report.FailuresByRequest {
		row := plainCells(grouped(f.Failures), grouped(f.Calls), f.Request)
		row[0].ink = red
		failures.add(row...)
	}
	errors := &table{look: look, header: []string{"CALLS", "BLOCKS", "FIRST", "TYPE", "ERROR"}, ends: true}
	for _, e := range report.Errors {
		row := plainCells(grouped(e.Calls), grouped(e.Blocks), e.First.Block+" "+strconv.FormatInt(e.First.Sequence, 10), orHyphen(e.Type), orHyphen(e.Detail))
		row[0].ink, row[2].ink = red, cyan
		errors.add(row...)
	}
	slowest := &table{look: look, header: []string{"SECONDS", "WHEN", "BLOCK", "SEQUENCE", "SLOWEST REQUESTS"}, ends: true}
	for _, s := range report.Slowest {
		row := plainCells(seconds(s.Took), when(s.SentAt), s.Block, strconv.FormatInt(s.Sequence, 10), s.Request)
		row[2].ink = cyan
		slowest.add(row...)
	}
	unusual := &table{look: look, header: []string{"SECONDS", "USUALLY", "WHEN", "BLOCK", "SEQUENCE", "UNUSUALLY LONG REQUESTS"}, ends: true}
	for _, u := range report.Unusual {
		row := plainCells(seconds(u.Took), seconds(u.Median), when(u.SentAt), u.Block, strconv.FormatInt(u.Sequence, 10), u.Request)
		row[3].ink = cyan
		unusual.add(row...)
	}
	for _, t := range []*table{telescopes, blocks, failures, errors, unusual, slowest} {
		if len(t.rows) > 0 {
			fmt.Fprintln(out)
		}
		if err := t.flush(out); err != nil {
			return err
		}
	}
	return nil
}

// lasting writes a length of time in whole seconds.
func lasting(took oda.Elapsed) string {
	return (time.Duration(min(took, math.MaxInt64/1000)) * time.Microsecond).Round(time.Second).String() // it may be longer than Go can express
}

func seconds(took oda.Elapsed) string { return strconv.FormatFloat(took.Seconds(), 'f', 3, 64) }

func orHyphen(text *string) string {
	if text == nil {
		return "-"
	}
	return *text
}

func failedInk(n int64) ink {
	if n > 0 {
		return red
	}
	return plainInk
}
