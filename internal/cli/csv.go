package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"oda/internal/rawjson"
	"oda/internal/sheet"
)

// printPlaces prints a document as a table of its values, each with the JSON pointer to it.
func (l look) printPlaces(out io.Writer, document []byte) error {
	t, err := sheet.NewShown(out, []string{"pointer", "value"}, l.safe)
	if err != nil {
		return err
	}
	return addPlaces(t, "", bytes.TrimSpace(document))
}

// addPlaces writes the values in a value of a document, which is at a pointer.
func addPlaces(t *sheet.Table, pointer string, value []byte) (err error) {
	n := 0
	for key, member := range rawjson.Members(value) {
		name := strings.NewReplacer("~", "~0", "/", "~1").Replace(string(key))
		if err = addPlaces(t, pointer+"/"+name, member); err != nil {
			return err
		}
		n++
	}
	for element := range rawjson.Elements(value) {
		if err = addPlaces(t, fmt.Sprintf("%s/%d", pointer, n), element); err != nil {
			return err
		}
		n++
	}
	if n > 0 {
		return nil
	}
	return t.Write([]string{pointer, sheet.Cell(value)})
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
	t, err := sheet.NewShown(out, columns, l.safe)
	if err != nil {
		return err
	}
	return sheet.AddAll(t, values)
}
