package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
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

// safe returns a text as it can be shown to people: characters that a terminal
// takes as commands, and those that are not seen, stand as their numbers.
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
