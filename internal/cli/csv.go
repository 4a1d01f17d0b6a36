package cli

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"oda/internal/rawjson"
	"oda/internal/sheet"
)

// csvTable writes JSON values as the rows of a table for other programs. Its columns are
// members of the values, or of objects in them (sheet.Cells).
type csvTable struct {
	look
	out     *csv.Writer
	columns []string
}

// newCSV begins a table.
func newCSV(w io.Writer, l look, columns []string) (*csvTable, error) {
	t := &csvTable{l, csv.NewWriter(w), columns}
	return t, t.write(columns)
}

// add writes a row. A value that is no object is the only cell of its row.
func (t *csvTable) add(value []byte) error {
	if value[0] != '{' {
		row := make([]string, len(t.columns))
		row[0] = csvCell(value)
		return t.write(row)
	}
	return t.write(sheet.Cells(t.columns, oneLine(value)))
}

// write writes cells at once.
func (t *csvTable) write(row []string) error {
	shown := make([]string, len(row))
	for i, text := range row {
		shown[i] = t.safe(text)
	}
	_ = t.out.Write(shown) // Error has it
	t.out.Flush()
	return t.out.Error()
}

// csvCell returns a JSON value as a cell.
func csvCell(value []byte) string { return sheet.Cell(oneLine(value)) }

// printPlaces prints a document as a table of its values, each with the JSON pointer to it.
func (l look) printPlaces(out io.Writer, document []byte) error {
	t, err := newCSV(out, l, []string{"pointer", "value"})
	if err != nil {
		return err
	}
	return t.places("", bytes.TrimSpace(document))
}

// places writes the values in a value of a document, which is at a pointer.
func (t *csvTable) places(pointer string, value []byte) (err error) {
	n := 0
	for key, member := range rawjson.Members(value) {
		name := strings.NewReplacer("~", "~0", "/", "~1").Replace(string(key))
		if err = t.places(pointer+"/"+name, member); err != nil {
			return err
		}
		n++
	}
	for element := range rawjson.Elements(value) {
		if err = t.places(fmt.Sprintf("%s/%d", pointer, n), element); err != nil {
			return err
		}
		n++
	}
	if n > 0 {
		return nil
	}
	return t.write([]string{pointer, csvCell(value)})
}

// reporting is how commands print a result that people read as text.
type reporting struct {
	Output string `short:"o" default:"auto" enum:"auto,json,yaml,csv" placeholder:"FORMAT" help:"Print the result as json, yaml or csv, instead of text for people."`
}

// format returns the format that was asked for; empty for people.
func (r *reporting) format() string {
	if r.Output == "auto" {
		return ""
	}
	return r.Output
}

// printResult prints a result for programs.
func (l look) printResult(out io.Writer, format string, result any) error {
	text, err := rawjson.Marshal(result)
	if err != nil {
		return err
	}
	return l.printDocument(out, format, text)
}

// printRows prints values as a table of CSV.
func printRows[T any](l look, out io.Writer, columns []string, values []T) error {
	t, err := newCSV(out, l, columns)
	for i := 0; i < len(values) && err == nil; i++ {
		var text []byte
		if text, err = json.Marshal(values[i]); err == nil {
			err = t.add(text)
		}
	}
	return err
}
