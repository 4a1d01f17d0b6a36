package cli

import (
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
	Zone      string `narrows:"" default:"UTC" placeholder:"ZONE" complete:"zone" help:"Time zone, such as Africa/Johannesburg: a night lasts from noon to noon (default ${default})."`
	Telescope string `narrows:"" placeholder:"NAME" complete:"telescope" help:"Only this telescope."`
	Output    string `short:"o" default:"auto" enum:"auto,table,json,yaml,csv" placeholder:"FORMAT" help:"Print tables (default), json, yaml, or csv: the blocks."`
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
	date := nightDate(n.Date, n.Zone, time.Now())
	night, err := archive.Night(ctx, client.Night{Date: date, Zone: n.Zone, Telescope: n.Telescope})
	if err != nil {
		return explain(archive, "the night of "+date, err)
	}
	look := n.look(to.out)
	switch n.Output {
	case "json", "yaml":
		return look.printResult(to.out, n.Output, night)
	case "csv":
		columns := []string{"id", "telescope", "created_by", "first_call", "last_call", "calls", "failures", "seconds_in_calls"}
		return printRows(look, to.out, columns, night.Blocks)
	}
	return printNight(to.out, look, night)
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

// printNight prints a report for people.
func printNight(out io.Writer, look look, night *night.Report) error {
	took := time.Duration(min(night.Took, math.MaxInt64/1000)) * time.Microsecond // it may be longer than Go can express
	fmt.Fprintf(out, "From %s to %s UTC: %s in %s, %s, %s in calls.\n",
		when(oda.Instant(night.From)), when(oda.Instant(night.To)), manyOf(night.Calls, "call"), manyOf(int64(len(night.Blocks)), "block"),
		look.paint(failedInk(night.Failures), grouped(night.Failures)+" failed"), took.Round(time.Second))
	blocks := &table{look: look, header: []string{"BLOCK", "FROM (UTC)", "TO (UTC)", "CALLS", "FAILED", "WHO", "TELESCOPE"}}
	for _, b := range night.Blocks {
		telescope := "-"
		if b.Telescope != nil {
			telescope = *b.Telescope
		}
		row := plainCells(b.ID, when(oda.Instant(b.FirstCall)), when(oda.Instant(b.LastCall)), grouped(b.Calls), grouped(b.Failures), b.CreatedBy, telescope)
		row[0].ink, row[4].ink = cyan, failedInk(b.Failures)
		blocks.add(row...)
	}
	failures := &table{look: look, header: []string{"FAILED", "OF", "REQUEST"}, ends: true}
	for _, f := range night.FailuresByRequest {
		row := plainCells(grouped(f.Failures), grouped(f.Calls), f.Request)
		row[0].ink = red
		failures.add(row...)
	}
	slowest := &table{look: look, header: []string{"SECONDS", "WHEN (UTC)", "BLOCK", "SEQUENCE", "SLOWEST REQUESTS"}, ends: true}
	for _, s := range night.Slowest {
		row := plainCells(strconv.FormatFloat(s.Took.Seconds(), 'f', 3, 64), when(oda.Instant(s.SentAt)), s.Block, strconv.FormatInt(s.Sequence, 10), s.Request)
		row[2].ink = cyan
		slowest.add(row...)
	}
	for _, t := range []*table{blocks, failures, slowest} {
		if len(t.rows) > 0 {
			fmt.Fprintln(out)
		}
		if err := t.flush(out); err != nil {
			return err
		}
	}
	return nil
}

func failedInk(n int64) ink {
	if n > 0 {
		return red
	}
	return plainInk
}
