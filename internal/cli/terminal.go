package cli

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"

	"oda"
)

// coloring is the flag about colours.
type coloring struct {
	Color string `default:"auto" enum:"auto,always,never" placeholder:"WHEN" help:"Use colours: always, never, or auto (default), which is on a terminal unless NO_COLOR is set."`
}

// look is how a command prints: for people at a terminal, or for programs.
type look struct {
	people bool // what is printed is read by a person
	color  bool
	width  int // of the terminal in characters; 0 if there is none
}

// look returns how to print to an output.
func (c coloring) look(out io.Writer) look {
	var l look
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		l.people = true
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			l.width = width
		}
	}
	switch c.Color {
	case "always":
		l.people, l.color = true, true
	case "auto":
		l.color = l.people && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	return l
}

// terminal reports whether a person can be asked something: input comes from a
// terminal.
func (s streams) terminal() bool { return isTerminal(s.in) }

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// ink is a colour of the terminal, by its number.
type ink string

const (
	plainInk ink = ""
	bold     ink = "1"
	faint    ink = "2"
	red      ink = "31"
	green    ink = "32"
	blue     ink = "34"
	magenta  ink = "35"
	cyan     ink = "36"
)

// paint colours a text.
func (l look) paint(i ink, text string) string {
	if !l.color || i == plainInk || text == "" {
		return text
	}
	return "\x1b[" + string(i) + "m" + text + "\x1b[0m"
}

// safe returns a text that can be shown to people: characters that a terminal
// would obey, and invisible ones, are written as their numbers.
func (l look) safe(text string) string {
	if !l.people {
		return text
	}
	return visible(text)
}

// visible returns a text in which every character can be seen.
func visible(text string) string {
	if !strings.ContainsFunc(text, hides) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == utf8.RuneError: // a byte that is no character, or the character for that
			b.WriteRune(r)
		case r > 0xffff && hides(r):
			fmt.Fprintf(&b, `\U%08x`, r)
		case hides(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// hides reports whether a character commands the terminal, or cannot be seen: it
// may turn the direction of the text, or end the line.
func hides(r rune) bool {
	return r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// visibleLines is visible for a text of several lines.
func visibleLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = visible(line)
	}
	return strings.Join(lines, "\n")
}

// visibleCells is visible for a text with tabs.
func visibleCells(line string) string {
	cells := strings.Split(line, "\t")
	for i := range cells {
		cells[i] = visible(cells[i])
	}
	return strings.Join(cells, "\t")
}

// cell is a text in a table.
type cell struct {
	text string
	ink  ink
}

// plainCells returns cells without colours.
func plainCells(texts ...string) []cell {
	cells := make([]cell, len(texts))
	for i, text := range texts {
		cells[i].text = text
	}
	return cells
}

// table prints rows in aligned columns. Each flush prints the rows since the last one:
// columns may become wider later, but never narrower. On a terminal the last column
// is cut at the end of the line. Tables are for people, even in a pipe, so no text in
// them can command a terminal.
type table struct {
	look
	header []string
	ends   bool // the last column is cut at its beginning
	rows   [][]cell
	widths []int
	begun  bool
}

// tableRows is how many rows of a long list are aligned with each other.
const tableRows = 200

// add adds a row.
func (t *table) add(row ...cell) {
	for i := range row {
		row[i].text = visible(row[i].text)
	}
	t.rows = append(t.rows, row)
}

// flush prints the rows that were added since the last time. A table without rows
// has no header either.
func (t *table) flush(out io.Writer) error {
	if len(t.rows) == 0 {
		return nil
	}
	rows := t.rows
	t.rows = nil
	if !t.begun {
		header := plainCells(t.header...)
		for i := range header {
			header[i].ink = bold
		}
		rows = append([][]cell{header}, rows...)
		t.widths, t.begun = make([]int, len(t.header)), true
	}
	for _, row := range rows {
		for i, c := range row {
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(c.text))
		}
	}
	w := bufio.NewWriter(out)
	for _, row := range rows {
		w.WriteString(t.line(row) + "\n")
	}
	return w.Flush()
}

// line returns a row as it is printed.
func (t *table) line(row []cell) string {
	var b strings.Builder
	at := 0
	for i, c := range row {
		if i == len(row)-1 {
			b.WriteString(t.paint(c.ink, t.cut(c.text, at)))
			break
		}
		b.WriteString(t.paint(c.ink, c.text))
		b.WriteString(strings.Repeat(" ", t.widths[i]-utf8.RuneCountInString(c.text)+2))
		at += t.widths[i] + 2
	}
	return strings.TrimRight(b.String(), " ")
}

// cut shortens a text that would not fit into the rest of the line.
func (t *table) cut(text string, at int) string {
	const least = 10 // characters; narrower terminals break the line
	room := max(t.width-at, least)
	if t.width == 0 || utf8.RuneCountInString(text) <= room {
		return text
	}
	runes := []rune(text)
	if t.ends {
		return "…" + string(runes[len(runes)-room+1:])
	}
	return string(runes[:room-1]) + "…"
}

// when writes a time for people, in UTC.
func when(at oda.Instant) string { return at.Time().Format(time.DateTime) }
