package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"

	"oda"
	"oda/client"
	"oda/internal/rawjson"
)

// following is the flag of commands that can follow a list.
type following struct {
	Follow bool `short:"f" help:"Then print new ones as they arrive, until interrupted with Ctrl-C."`
}

// calls prints the records of a block.
type calls struct {
	ID     string `arg:"" name:"id" complete:"id" help:"Identifier of the ExecutionBlock."`
	After  int64  `placeholder:"SEQUENCE" help:"Start after this sequence (default: at the first)."`
	Limit  int    `placeholder:"N" help:"Print at most N; 0 is no limit."`
	Output string `short:"o" default:"auto" enum:"auto,table,json,yaml,csv" placeholder:"FORMAT" help:"Print a table (default on a terminal), json: one record per line (default elsewhere), yaml, or csv: a summary of each call."`
	following
	coloring
	remote
}

// Validate checks numbers.
func (c *calls) Validate() error {
	if c.After < 0 {
		return errors.New("--after must not be negative")
	}
	return validLimit(c.Limit)
}

// Run prints the records in their order.
func (c *calls) Run(ctx context.Context, archive *client.Client, to streams) error {
	list := archive.Records(ctx, c.ID, c.After)
	if c.Follow {
		list = archive.FollowRecords(ctx, c.ID, c.After)
	}
	print := printer[oda.Record]{
		look: c.look(to.out), single: true, follow: c.Follow,
		header: []string{"SEQUENCE", "WHEN (UTC)", "STATUS", "SECONDS", "REQUEST"},
		ends:   true, // a request is the path of a function
		row:    callRow, json: recordJSON,
		columns: []string{"sequence", "request", "sent_at", "received_at", "seconds", "outcome", "recorded_at"}, flat: callJSON,
	}
	return print.all(to.out, c.Output, limited(list, c.Limit), func(err error) error { return explain(archive, c.ID, err) })
}

// callRow returns a call as people see it.
func callRow(r oda.Record) []cell {
	call := oda.CallOf(r.Text)
	seconds := "-"
	if took, known := call.Took(); known {
		seconds = strconv.FormatFloat(took.Seconds(), 'f', 3, 64)
	}
	row := plainCells(strconv.FormatInt(r.Sequence, 10), when(call.At(r.RecordedOn)), "ok", seconds, string(call.Request()))
	if call.Failed {
		row[2] = cell{"failed", red}
	}
	return row
}

// recordJSON returns a record as the archive's interface has it, on one line.
func recordJSON(r oda.Record) []byte {
	r.Text = oneLine(r.Text)
	return r.AppendJSON(nil)
}

// callJSON returns a summary of the call in a record.
func callJSON(r oda.Record) []byte {
	call := oda.CallOf(r.Text)
	text := strconv.AppendInt([]byte(`{"sequence":`), r.Sequence, 10)
	text = rawjson.AppendQuoted(append(text, `,"request":`...), string(call.Request()))
	if sent := call.Sent(); sent != nil {
		text = append(sent.AppendTo(append(text, `,"sent_at":"`...)), '"')
	}
	if received := call.Received(); received != nil {
		text = append(received.AppendTo(append(text, `,"received_at":"`...)), '"')
	}
	if took, known := call.Took(); known {
		text = strconv.AppendFloat(append(text, `,"seconds":`...), took.Seconds(), 'f', -1, 64)
	}
	outcome := "ok"
	if call.Failed {
		outcome = "failed"
	}
	text = rawjson.AppendQuoted(append(text, `,"outcome":`...), outcome)
	return append(r.RecordedOn.AppendTo(append(text, `,"recorded_at":"`...)), '"', '}')
}

// oneLine returns a JSON text without white space between its parts.
func oneLine(text []byte) []byte {
	var out bytes.Buffer
	if json.Compact(&out, text) != nil {
		return text
	}
	return out.Bytes()
}

// changes prints the log of changes.
type changes struct {
	After  *position `placeholder:"POSITION" help:"Start after this position, or now (default: at the first change, or now with --follow)."`
	Last   *int      `placeholder:"N" help:"Start with the last N."`
	Kind   []string  `narrows:"" enum:"sbds,sbis,ebs,prjs,notes" placeholder:"KIND" help:"Only these kinds: sbds, sbis, ebs, prjs, notes."`
	ID     []string  `narrows:"" name:"id" complete:"any" placeholder:"ID" help:"Only these identifiers."`
	Limit  int       `placeholder:"N" help:"Print at most N; 0 is no limit."`
	Output string    `short:"o" default:"auto" enum:"auto,table,json,yaml,csv" placeholder:"FORMAT" help:"Print a table (default on a terminal), json: one change per line (default elsewhere), yaml or csv."`
	following
	coloring
	remote
}

// position is a position in the log of changes. The word now is its end.
type position oda.Position

// UnmarshalText parses a position.
func (p *position) UnmarshalText(text []byte) error {
	if string(text) == "now" {
		*p = position(client.Now)
		return nil
	}
	n, err := strconv.ParseUint(string(text), 10, 63)
	if err != nil {
		return fmt.Errorf("%q is not a position; write a number from the archive, 0 for all changes, or now for new ones", text)
	}
	*p = position(n)
	return nil
}

// Validate checks numbers.
func (c *changes) Validate() error {
	switch {
	case c.Last != nil && *c.Last < 1:
		return errors.New("--last must be 1 or more")
	case c.Last != nil && c.After != nil:
		return errors.New("--last and --after both say where to start; leave one out")
	}
	return validLimit(c.Limit)
}

// Run prints the changes in their order.
func (c *changes) Run(ctx context.Context, archive *client.Client, to streams) error {
	var after oda.Position
	switch {
	case c.After != nil:
		after = oda.Position(*c.After)
	case c.Follow:
		after = client.Now
	}
	filter := oda.ChangeFilter{IDs: c.ID}
	for _, name := range c.Kind {
		kind, _ := oda.KindOf(name) // the flag allows no others
		filter.Kinds = append(filter.Kinds, kind)
	}
	if c.Last != nil {
		var err error
		if after, err = beforeLast(ctx, archive, filter, *c.Last); err != nil {
			return explain(archive, "changes", err)
		}
	}
	list := pages(ctx, archive, after, filter)
	if c.Follow {
		list = archive.Follow(ctx, after, filter)
	}
	print := printer[oda.Change]{
		look: c.look(to.out), single: true, follow: c.Follow,
		header: []string{"POSITION", "WHEN (UTC)", "WHO", "KIND", "IDENTIFIER", "CHANGE"},
		row:    changeRow, json: changeJSON,
		columns: []string{"position", "kind", "id", "change", "version", "first_sequence", "last_sequence", "sequence", "status", "class", "at", "current", "by", "on"},
	}
	return print.all(to.out, c.Output, limited(list, c.Limit), func(err error) error { return explain(archive, "changes", err) })
}

func changeJSON(c oda.Change) []byte { return c.AppendJSON(nil) }

// pages returns the changes that there are.
func pages(ctx context.Context, archive *client.Client, after oda.Position, filter oda.ChangeFilter) iter.Seq2[oda.Change, error] {
	return func(yield func(oda.Change, error) bool) {
		for {
			page, err := archive.Changes(ctx, client.ChangesQuery{After: after, Filter: filter})
			if err != nil {
				yield(oda.Change{}, err)
				return
			}
			for _, c := range page.Changes {
				if !yield(c, nil) {
					return
				}
			}
			if page.Next == after {
				return
			}
			after = page.Next
		}
	}
}

// beforeLast returns the position after which there are the last changes.
func beforeLast(ctx context.Context, archive *client.Client, filter oda.ChangeFilter, count int) (oda.Position, error) {
	end, err := archive.Changes(ctx, client.ChangesQuery{After: client.Now, Limit: 1})
	if err != nil {
		return 0, err
	}
	// A filter may leave out most changes, so it looks back further and further.
	for width := oda.Position(count); ; width *= 8 {
		from := max(0, end.Next-width)
		var found []oda.Position // before each change
		for c, err := range pages(ctx, archive, from, filter) {
			if err != nil {
				return 0, err
			}
			found = append(found, c.Position-oda.Position(c.LastSequence-c.FirstSequence)-1)
		}
		if len(found) > count { // the first may have begun earlier
			return found[len(found)-count], nil
		}
		if from == 0 {
			return 0, nil
		}
	}
}

func changeRow(c oda.Change) []cell {
	what := fmt.Sprintf("version %d", c.Version)
	switch {
	case c.Stored():
	case c.Said != nil:
		what = fmt.Sprintf("status %d: %s", c.Said.Sequence, c.Said.Text)
	case c.FirstSequence == c.LastSequence:
		what = fmt.Sprintf("record %d", c.LastSequence)
	default:
		what = fmt.Sprintf("records %d to %d", c.FirstSequence, c.LastSequence)
	}
	row := plainCells(strconv.FormatInt(int64(c.Position), 10), when(c.On), c.By, c.Kind.Collection(), c.ID, what)
	row[4].ink = cyan
	return row
}
