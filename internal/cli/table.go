package cli

import (
	"bufio"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"oda"
)

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

// table prints rows in aligned columns. It prints what it has whenever it is
// flushed: columns may become wider later, but never narrower. On a terminal the
// last column ends where the line does. A table is read by people, also where it
// passes through a pipe on the way, so no text in it can command a terminal.
type table struct {
	look
	header []string
	ends   bool // what does not fit into the last column is left out at its beginning
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
