package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"oda"
	asking "oda/calls"
	"oda/client"
	"oda/internal/rawjson"
)

// findCalls finds calls, or counts them.
type findCalls struct {
	Words     []string      `arg:"" optional:"" help:"Words that must all occur in the function, the device or the error. The last one may be incomplete."`
	Failed    bool          `narrows:"" help:"Only calls that failed."`
	Since     moment        `narrows:"" placeholder:"TIME" help:"Made then or later."`
	Until     moment        `narrows:"" placeholder:"TIME" help:"Made before."`
	At        moment        `narrows:"" placeholder:"TIME" help:"In progress then, for a second or more."`
	EB        string        `narrows:"" name:"eb" complete:"any" placeholder:"ID" help:"Of this ExecutionBlock."`
	Telescope string        `narrows:"" placeholder:"NAME" complete:"telescope" help:"Of this telescope."`
	Request   string        `narrows:"" placeholder:"NAME" help:"Of this function: its whole name, or the end of it after a dot."`
	Device    string        `narrows:"" placeholder:"NAME" help:"For this device."`
	Error     string        `narrows:"" placeholder:"TYPE" help:"With an error of this type, such as ConnectionError."`
	Longer    time.Duration `narrows:"" name:"longer-than" placeholder:"TIME" help:"Which took longer, such as 10s or 5m."`

	By     string `enum:"request,error,device,telescope,eb,day," default:"" placeholder:"KEY" help:"Count them, by: request, error, device, telescope, eb or day."`
	Oldest bool   `name:"oldest-first" help:"Print the earliest call first, instead of the latest."`
	Limit  int    `placeholder:"N" help:"Print at most N; 0 is no limit."`
	Output string `short:"o" default:"auto" enum:"auto,table,json,yaml,csv,markdown" placeholder:"FORMAT" help:"Print a table (default on a terminal), json: one call per line (default elsewhere), yaml, csv, or markdown."`
	coloring
	remote
}

// Help is what "oda calls --help" says besides the flags.
func (*findCalls) Help() string {
	return `Without --since, --until, --at and --eb, it looks at the last 24 hours; without --failed as
well, at the calls of these hours that failed.`
}

// Validate checks that flags fit together.
func (c *findCalls) Validate() error {
	switch {
	case slices.ContainsFunc(c.Words, func(word string) bool { return strings.TrimSpace(word) == "" }):
		return errors.New("a word is empty; is a variable not set?")
	case !c.At.IsZero() && !(c.Since.IsZero() && c.Until.IsZero()):
		return errors.New("--at is one instant; leave out --since and --until")
	case c.Since.IsZero() && !c.Until.IsZero() && !c.Failed && c.EB == "":
		return errors.New("--until needs a beginning; give it with --since")
	case !c.Since.IsZero() && !c.Until.IsZero() && !c.Until.After(c.Since.Time):
		return errors.New("--until is not after --since, so no call can be found; are they the wrong way round?")
	case c.Longer < 0:
		return errors.New("--longer-than must not be negative")
	case c.By != "" && c.Oldest:
		return errors.New("--oldest-first is for a list of calls; leave out --by")
	}
	return validLimit(c.Limit)
}

// asked returns the question, which has a bound.
func (c *findCalls) asked(now time.Time) asking.Query {
	q := asking.Query{
		Request: c.Request, Device: c.Device, Telescope: c.Telescope, Block: c.EB, Error: c.Error, Words: strings.Join(c.Words, " "),
		OldestFirst: c.Oldest, Limit: min(cmp.Or(c.Limit, asking.MaxLimit), asking.MaxLimit),
	}
	free := c.EB == "" && c.At.IsZero() && c.Since.IsZero() && c.Until.IsZero()
	if free {
		c.Since.Time = now.AddDate(0, 0, -1)
	}
	if c.Failed || free {
		q.Outcome = oda.CallFailed
	}
	if !c.Since.IsZero() && c.Until.IsZero() {
		c.Until.Time = now.AddDate(0, 0, 1) // clocks at telescopes may be ahead
	}
	q.From, q.To, q.At = instantOf(c.Since), instantOf(c.Until), instantOf(c.At)
	if c.Longer > 0 {
		longer := oda.Elapsed(c.Longer / time.Microsecond)
		q.LongerThan = &longer
	}
	return q
}

// instantOf returns the first instant that is not before a time, nil if there is none.
func instantOf(at moment) *oda.Instant { return oda.SpanOf(at.Time, time.Time{}).After }

// Run prints the calls, or counts.
func (c *findCalls) Run(ctx context.Context, archive *client.Client, to streams) error {
	q, look := c.asked(time.Now().UTC()), c.look(to.out)
	failed := func(err error) error { return explain(archive, "calls", err) }
	if c.By == "" {
		print := printer[oda.CallEntry]{
			look: look, single: true, header: []string{"WHEN (UTC)", "TELESCOPE", "BLOCK", "CALL", "FUNCTION", "DEVICE", "TOOK", "OUTCOME"},
			row: entryRow, json: marshal[oda.CallEntry], columns: asking.Columns,
		}
		return print.all(to.out, c.Output, limited(archive.Calls(ctx, q), c.Limit), failed)
	}
	_, by, err := asking.ParseTally(map[string][]string{"by": {c.By}, "outcome": {string(oda.CallFailed)}})
	if err != nil {
		return err
	}
	tally, err := archive.TallyCalls(ctx, q, by)
	if err != nil {
		return failed(err)
	}
	if !tally.Complete {
		fmt.Fprintln(to.err, "oda: not all calls were counted; ask for a shorter time")
	}
	print := printer[asking.Count]{
		look: look, single: true, header: []string{strings.ToUpper(c.By), "CALLS", "FAILED", "IN CALLS"},
		row: countRow, json: marshal[asking.Count], columns: asking.TallyColumns,
	}
	return print.all(to.out, c.Output, limited(allOf(tally.Tally), c.Limit), failed)
}

// entryRow returns a call as people see it.
func entryRow(e oda.CallEntry) []cell {
	at := "-"
	if e.At != 0 {
		at = when(e.At)
	}
	took := "-"
	if e.Took != nil {
		took = shortly(*e.Took)
	}
	row := plainCells(at, firstOf(e.Telescope), e.Block, fmt.Sprint("#", e.Sequence), oda.Function(e.Request), firstOf(e.Device), took, string(e.Outcome))
	row[2].ink = cyan
	if e.Outcome == oda.CallFailed {
		row[7] = cell{errorText(e.Error), red}
	}
	return row
}

// errorText returns an error in one line.
func errorText(e *oda.CallError) string {
	if e == nil || e.Type == nil && e.Detail == nil {
		return string(oda.CallFailed)
	}
	text := firstOf(e.Type)
	if e.Detail != nil {
		detail, _, _ := strings.Cut(strings.TrimSpace(*e.Detail), "\n")
		if e.Type == nil || strings.HasPrefix(detail, *e.Type) {
			return detail
		}
		text += ": " + detail
	}
	return text
}

// shortly writes how long something took: to the millisecond while it is short.
func shortly(took oda.Elapsed) string {
	d := time.Duration(min(took, 1<<63/1000-1)) * time.Microsecond // it may be longer than Go can express
	if d < time.Minute {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

func countRow(c asking.Count) []cell {
	row := plainCells(firstOf(c.Key), grouped(c.Calls), grouped(c.Failures), shortly(c.Took))
	row[2].ink = failedInk(c.Failures)
	return row
}

// marshal returns a value as JSON on one line.
func marshal[T any](value T) []byte {
	text, err := rawjson.Marshal(value)
	if err != nil {
		panic(err) // it was read from JSON
	}
	return text
}

// allOf yields values that can be read.
func allOf[T any](values []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, value := range values {
			if !yield(value, nil) {
				return
			}
		}
	}
}
