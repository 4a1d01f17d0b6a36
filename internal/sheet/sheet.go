// Package sheet writes JSON values as tables in CSV (RFC 4180), for spreadsheets and other
// programs. Texts in a table cannot become formulas.
package sheet

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"unicode"

	"oda/internal/rawjson"
)

// Media is the media type of a table.
const Media = "text/csv"

// Table writes values as rows. Its columns are members of the values; of a member that is
// an object, they are its members, as in error_type. Those of metadata and status also have
// columns without that beginning.
type Table struct {
	out     io.Writer
	columns []string
	show    func(text string) string
	end     string // of a line
	line    []byte
}

// New begins a table as the archive sends it, without characters that command a terminal.
func New(w io.Writer, columns []string) (*Table, error) {
	return begin(&Table{out: w, columns: columns, show: tame, end: "\r\n"})
}

// NewShown begins a table in which texts are as show returns them, with lines as programs
// on this machine end them.
func NewShown(w io.Writer, columns []string, show func(text string) string) (*Table, error) {
	return begin(&Table{out: w, columns: columns, show: show, end: "\n"})
}

func begin(t *Table) (*Table, error) { return t, t.Write(t.columns) }

// tame replaces the characters of a text that a terminal would obey.
func tame(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !strings.ContainsRune("\t\r\n", r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// Add writes a row. A value that is no object is the only cell of its row.
func (t *Table) Add(value []byte) error {
	row := make([]string, len(t.columns))
	if value[0] != '{' {
		row[0] = Cell(value)
		return t.Write(row)
	}
	put := func(column string, value []byte) {
		if i := slices.Index(t.columns, column); i >= 0 {
			row[i] = Cell(value)
		}
	}
	for key, member := range rawjson.Members(value) {
		put(string(key), member)
		if member[0] != '{' {
			continue
		}
		for inner, value := range rawjson.Members(member) {
			put(string(key)+"_"+string(inner), value)
			if string(key) == "metadata" || string(key) == "status" {
				put(string(inner), value)
			}
		}
	}
	return t.Write(row)
}

// AddAll writes values as rows, in the form that they have as JSON.
func AddAll[T any](t *Table, values []T) error {
	for i := range values {
		text, err := json.Marshal(values[i])
		if err == nil {
			err = t.Add(text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Write writes a row at once.
func (t *Table) Write(cells []string) error {
	t.line = t.line[:0]
	for i, text := range cells {
		if i > 0 {
			t.line = append(t.line, ',')
		}
		if text = t.show(text); strings.ContainsAny(text, "\",\r\n") || strings.HasPrefix(text, " ") {
			text = `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
		}
		t.line = append(t.line, text...)
	}
	t.line = append(t.line, t.end...)
	_, err := t.out.Write(t.line)
	return err
}

// Cell returns a JSON value as a cell. A text that a spreadsheet would take for a
// formula has a ' before it.
func Cell(value []byte) string {
	switch {
	case string(value) == "null":
		return ""
	case value[0] != '"':
		return oneLine(value)
	}
	text := rawjson.Unquote(value)
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}

// oneLine returns a JSON value without blanks between its parts.
func oneLine(value []byte) string {
	var b bytes.Buffer
	if err := json.Compact(&b, value); err != nil {
		return string(value)
	}
	return b.String()
}
