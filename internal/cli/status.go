package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/alecthomas/kong"

	"oda"
	"oda/client"
)

// status prints the statuses of an entity, or says one.
type status struct {
	named
	Status *string `arg:"" optional:"" complete:"status" help:"The status to say, such as Observed; without it, those that were said are printed."`

	Reason    string  `narrows:"" group:"Saying a status" placeholder:"TEXT" help:"Why."`
	Class     string  `narrows:"" group:"Saying a status" enum:"planned,running,done,failed,stopped," default:"" placeholder:"CLASS" help:"What it means: planned, running, done, failed or stopped (default: what it means by its words)."`
	At        moment  `narrows:"" group:"Saying a status" placeholder:"TIME" help:"When that was (default now)."`
	OfVersion int64   `narrows:"" group:"Saying a status" placeholder:"N" help:"The version that is meant (default the current one)."`
	Previous  *string `narrows:"" group:"Saying a status" xor:"previous" complete:"status" placeholder:"STATUS" help:"Say it only if this is the current status."`
	First     bool    `group:"Saying a status" xor:"previous" help:"Say it only if there is no status yet."`

	Limit  int    `placeholder:"N" help:"Print the newest N only; 0 is no limit."`
	Output string `short:"o" default:"auto" enum:"auto,table,json,yaml,csv" placeholder:"FORMAT" help:"Print a table (default on a terminal), json, yaml or csv."`
	coloring
	acting
}

// Help is what "oda status --help" says besides the flags.
func (*status) Help() string {
	return `Without STATUS, it prints what was said, newest first. The current status has a * before
it: the one with the latest time. As long as nobody has said one, it is that in the
document. Any status may follow any other. The document stays as it is.`
}

// Validate checks that flags fit together.
func (s *status) Validate(ctx *kong.Context) error {
	says := s.Reason != "" || s.Class != "" || !s.At.IsZero() || s.OfVersion != 0 || s.Previous != nil || s.First
	switch {
	case s.Status == nil && says:
		return errors.New("these flags are about a status to say; give it after the identifier")
	case s.Status != nil && (s.Limit != 0 || s.Output != "auto"):
		return errors.New("--limit and --output are about printing statuses; leave them out to say one")
	case s.Status != nil && strings.TrimSpace(*s.Status) == "":
		return errors.New("the status is empty; is a variable not set?")
	case s.Previous != nil && *s.Previous == "":
		return errors.New("--previous is empty; is a variable not set? If there must be no status yet, use --first")
	}
	return errors.Join(validVersion(ctx, "--of-version", s.OfVersion), validLimit(s.Limit))
}

// Run prints the statuses, or says one.
func (s *status) Run(ctx context.Context, archive *client.Client, kind oda.Kind, to streams) error {
	ref := oda.Ref{Kind: kind, ID: s.ID}
	if s.Status != nil {
		return s.say(ctx, archive, ref, to)
	}
	current, err := archive.Status(ctx, ref)
	if err != nil {
		return explain(archive, s.ID, err)
	}
	return s.printer(s.look(to.out), &current).all(to.out, s.Output, limited(statuses(ctx, archive, &current), s.Limit),
		func(err error) error { return explain(archive, s.ID, err) })
}

// statuses returns what was said of an entity, or else what its document says.
func statuses(ctx context.Context, archive *client.Client, current *oda.Status) iter.Seq2[oda.Status, error] {
	if current.Sequence > 0 {
		return archive.Statuses(ctx, current.Ref)
	}
	return func(yield func(oda.Status, error) bool) {
		if current.Text != "" {
			yield(*current, nil)
		}
	}
}

func (s *status) printer(l look, current *oda.Status) *printer[oda.Status] {
	return &printer[oda.Status]{
		look: l, header: []string{"", "STATUS", "CLASS", "SINCE (UTC)", "WHO", "REASON"},
		line: func(one oda.Status) string {
			if one.Sequence == 0 {
				return "0 - - " + one.Text
			}
			return fmt.Sprintf("%d %s %s %s", one.Sequence, one.At, one.By, one.Text)
		},
		row: func(one oda.Status) []cell {
			mark, at := "", "-"
			if one.Sequence == current.Sequence {
				mark = "*"
			}
			if one.Sequence > 0 {
				at = when(one.At)
			}
			row := plainCells(mark, one.Text, one.Class.String(), at, one.By, strings.Join(strings.Fields(one.Reason), " "))
			row[1].ink = classInk(one.Class)
			return row
		},
		json:    func(one oda.Status) []byte { return one.AppendJSON(nil) },
		columns: []string{"kind", "id", "sequence", "status", "class", "reason", "at", "version", "previous", "by", "on"},
	}
}

// classInk is the colour of a status.
func classInk(class oda.Class) ink {
	switch class {
	case oda.ClassRunning:
		return blue
	case oda.ClassDone:
		return green
	case oda.ClassFailed:
		return red
	case oda.ClassStopped:
		return magenta
	}
	return plainInk
}

// say says a status.
func (s *status) say(ctx context.Context, archive *client.Client, ref oda.Ref, to streams) error {
	say := client.NewStatus{Status: *s.Status, Reason: s.Reason, At: s.At.Time, Version: s.OfVersion, Previous: s.Previous}
	say.Class, _ = oda.ClassNamed(s.Class) // the flag allows no others
	if s.First {
		say.Previous = new(string)
	}
	entry, err := archive.Say(ctx, ref, say)
	if err != nil && lost(err) {
		return explain(archive, "it may or may not be stored; check with \"oda status "+s.ID+"\"", err)
	}
	if err != nil {
		return explain(archive, s.ID, err)
	}
	line := fmt.Sprintf("%s status %d: %s", entry.ID, entry.Sequence, entry.Text)
	if !s.At.IsZero() {
		// What is said of an earlier time may leave the current status as it is.
		current, err := archive.Status(ctx, ref)
		if err == nil && current.Sequence != entry.Sequence {
			line += fmt.Sprintf("; the current one is %s, since %s UTC", current.Text, when(current.At))
		}
	}
	return reportStored(to.out, line)
}
