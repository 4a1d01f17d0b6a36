// Package sheet makes tables that spreadsheets read, in the CSV of RFC 4180.
package sheet

import (
	"slices"
	"strings"

	"oda/internal/rawjson"
)

// Media is the media type of a table.
const Media = "text/csv"

// Table returns a line with the names of columns, and one for each row, which is a JSON
// object. Texts are guarded (Guard).
func Table(columns []string, rows [][]byte) []byte {
	text := AppendLine(nil, columns)
	for _, row := range rows {
		text = AppendLine(text, Cells(columns, row))
	}
	return text
}

// Cells returns the cells of a row, which is a JSON object: its members, and the members
// of objects in it, which may have the name of the object before theirs, as in error_type.
func Cells(columns []string, row []byte) []string {
	cells := make([]string, len(columns))
	set := func(name string, value []byte) {
		if i := slices.Index(columns, name); i >= 0 {
			cells[i] = Cell(value)
		}
	}
	for name, value := range rawjson.Members(row) {
		set(string(name), value)
		if len(value) > 0 && value[0] == '{' {
			for inner, value := range rawjson.Members(value) {
				set(string(inner), value)
				set(string(name)+"_"+string(inner), value)
			}
		}
	}
	return cells
}

// Cell returns a JSON value as a cell. A text is guarded, and null is empty.
func Cell(value []byte) string {
	switch {
	case string(value) == "null":
		return ""
	case len(value) > 0 && value[0] == '"':
		return Guard(rawjson.Unquote(value))
	}
	return string(value)
}

// Guard returns a text with a ' before it if a spreadsheet would take it for a formula.
func Guard(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}

// AppendLine appends a line with cells.
func AppendLine(text []byte, cells []string) []byte {
	for i, cell := range cells {
		if i > 0 {
			text = append(text, ',')
		}
		if !strings.ContainsAny(cell, "\",\r\n") {
			text = append(text, cell...)
			continue
		}
		text = append(text, '"')
		text = append(text, strings.ReplaceAll(cell, `"`, `""`)...)
		text = append(text, '"')
	}
	return append(text, "\r\n"...)
}
