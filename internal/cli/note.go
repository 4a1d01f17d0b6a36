package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"oda"
	"oda/client"
	"oda/internal/rawjson"
)

// note writes a note.
type note struct {
	Text []string `arg:"" help:"What there is to say, in Markdown; - is stdin."`

	About     []subject     `sep:"none" complete:"any" placeholder:"ID" help:"What it is about: an identifier, ID@VERSION, or EB#SEQUENCE for a call. May be given several times."`
	Level     string        `enum:"info,warning,problem," default:"" placeholder:"LEVEL" help:"How much it matters: info (default), warning, or problem, which somebody should solve."`
	Telescope string        `complete:"telescope" placeholder:"NAME" help:"The telescope."`
	From      moment        `placeholder:"TIME" help:"When it was, or began (default now)."`
	To        moment        `placeholder:"TIME" help:"When it ended (default when it began)."`
	Lost      time.Duration `placeholder:"DURATION" help:"How much observing time was lost, such as 40m or 1h30m."`
	Type      string        `enum:"weather,fault,other," default:"" placeholder:"TYPE" help:"What it was lost to: weather, fault or other (default)."`
	Tag       []string      `sep:"none" placeholder:"WORD" help:"A word by which notes are found together. May be given several times."`
	Link      []string      `sep:"none" placeholder:"ADDRESS" help:"Where there is more, such as a picture or a ticket. May be given several times."`
	acting
}

// Help is what "oda note --help" says besides the flags.
func (*note) Help() string {
	return `It prints the identifier of the note. "oda notes search" finds notes, "oda edit" changes
one, and "oda status NOTE Resolved" says that its problem is solved.`
}

// Validate checks that flags fit together.
func (n *note) Validate() error {
	switch {
	case n.Type != "" && n.Lost == 0:
		return errors.New("--type says what time was lost to; say how much with --lost")
	case n.Lost < 0:
		return errors.New("--lost is negative; write it as 40m")
	case strings.TrimSpace(strings.Join(n.Text, " ")) == "":
		return errors.New("the text is empty; is a variable not set?")
	}
	return nil
}

// Run stores the note.
func (n *note) Run(ctx context.Context, archive *client.Client, to streams) error {
	text := strings.Join(n.Text, " ")
	if text == "-" {
		read, err := io.ReadAll(io.LimitReader(to.in, oda.MaxNoteText+1)) // the archive refuses what is longer
		if err != nil {
			return fmt.Errorf("read the text: %w", err)
		}
		text = strings.TrimSpace(string(read))
	}
	body, err := rawjson.Marshal(n.document(text))
	if err != nil {
		return err
	}
	stored, err := archive.Create(ctx, oda.Note, body, "")
	if err != nil {
		return explain(archive, "the note", err)
	}
	return reportStored(to.out, stored.ID)
}

// noteDocument is a note as it is stored.
type noteDocument struct {
	Text      string     `json:"text"`
	Level     string     `json:"level,omitempty"`
	About     []subject  `json:"about,omitempty"`
	Telescope string     `json:"telescope,omitempty"`
	From      *time.Time `json:"from,omitempty"`
	To        *time.Time `json:"to,omitempty"`
	Lost      float64    `json:"time_lost_s,omitempty"`
	LostTo    string     `json:"time_lost_type,omitempty"`
	Tags      []string   `json:"tags,omitempty"`
	URLs      []string   `json:"urls,omitempty"`
}

func (n *note) document(text string) noteDocument {
	d := noteDocument{Text: text, Level: n.Level, About: n.About, Telescope: n.Telescope, Lost: n.Lost.Seconds(), LostTo: n.Type, Tags: n.Tag, URLs: n.Link}
	if !n.From.IsZero() {
		d.From = &n.From.Time
	}
	if !n.To.IsZero() {
		d.To = &n.To.Time
	}
	return d
}

// subject is what a note is about.
type subject struct {
	Kind     string `json:"kind"`
	ID       string `json:"id"`
	Version  int64  `json:"version,omitempty"`
	Sequence int64  `json:"sequence,omitempty"`
}

// UnmarshalText parses an identifier, with or without its kind before it, and with a version
// or a call after it.
func (s *subject) UnmarshalText(text []byte) error {
	rest, sequence, isCall := strings.Cut(string(text), "#")
	rest, version, isVersion := strings.Cut(rest, "@")
	kind, known := kindOf(rest)
	if name, id, named := strings.Cut(rest, "/"); named {
		kind, known = oda.KindOf(name)
		rest = id
	}
	if !known || rest == "" {
		return fmt.Errorf("%q does not tell the kind of entity; write it as sbds/ID, sbis/ID, ebs/ID, prjs/ID or notes/ID", text)
	}
	s.Kind, s.ID = kind.Collection(), rest
	var err error
	if isVersion {
		if s.Version, err = strconv.ParseInt(version, 10, 64); err != nil || s.Version < 1 {
			return fmt.Errorf("%q has no version after the @; write it as %s@2", text, rest)
		}
	}
	if isCall {
		if s.Sequence, err = strconv.ParseInt(sequence, 10, 64); err != nil || s.Sequence < 1 || kind != oda.ExecutionBlock {
			return fmt.Errorf("%q does not name a call; write it as EB#17, with the sequence number of the call", text)
		}
	}
	return nil
}

// findNotes finds notes.
type findNotes struct {
	find
	About     string `placeholder:"ID" complete:"any" group:"Query" help:"About this entity."`
	From      moment `placeholder:"TIME" group:"Query" help:"About this time, or later."`
	To        moment `placeholder:"TIME" group:"Query" help:"About a time before this one."`
	Level     string `enum:"info,warning,problem," default:"" placeholder:"LEVEL" group:"Query" help:"Of this level: info, warning or problem."`
	Tag       string `placeholder:"WORD" group:"Query" help:"With this tag."`
	Withdrawn bool   `group:"Query" help:"Withdrawn ones as well."`
}

// Run prints what it finds, page by page.
func (s *findNotes) Run(ctx context.Context, archive *client.Client, to streams) error {
	asked := s.asked(oda.Note)
	asked.About, asked.From, asked.To = s.About, instantOf(s.From), instantOf(s.To)
	asked.Level, asked.Tag, asked.Withdrawn = oda.Level(s.Level), s.Tag, s.Withdrawn
	return s.print(ctx, archive, asked, to)
}

// notePrinter prints notes as a table.
func notePrinter(l look) *printer[*oda.Found] {
	return &printer[*oda.Found]{
		look: l, header: []string{"IDENTIFIER", "WHEN (UTC)", "LEVEL", "LOST", "WHO", "STATUS", "NOTE"},
		row: func(f *oda.Found) []cell {
			remark := f.Summary.Remark
			from, _ := remark.Interval(f.Metadata.CreatedOn)
			lost, status := "-", "-"
			if remark.Lost > 0 {
				lost = (time.Duration(remark.Lost) * time.Microsecond).Round(time.Second).String()
			}
			switch {
			case remark.Withdrawn:
				status = "withdrawn"
			case f.Unresolved():
				status = cmp.Or(f.Standing.Text, "unresolved")
			case f.Standing.Text != "":
				status = f.Standing.Text
			}
			row := plainCells(f.ID, when(from), string(remark.Level), lost, f.Metadata.CreatedBy, status, f.Summary.Name)
			row[0].ink, row[5].ink = cyan, classInk(f.Standing.Class)
			if f.Unresolved() {
				row[2].ink = red
			}
			return row
		},
	}
}
