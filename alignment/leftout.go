package alignment

import (
	"slices"

	"oda/internal/rawjson"
)

// leftOut are the names of arguments that every run has others of, whatever it does.
var leftOut = []string{"scan_id", "subarray_id"}

var comma = []byte{','}

// AppendEssential appends the text of a JSON value without the members that every run has
// others of, at any depth, and without blanks between values.
func AppendEssential(text, value []byte) []byte {
	if len(value) == 0 {
		return text
	}
	var separator []byte
	switch value[0] {
	case '{':
		text = append(text, '{')
		for key, member := range rawjson.Members(value) {
			if slices.Contains(leftOut, string(key)) {
				continue
			}
			text = append(rawjson.AppendQuoted(append(text, separator...), string(key)), ':')
			text, separator = AppendEssential(text, member), comma
		}
		return append(text, '}')
	case '[':
		text = append(text, '[')
		for element := range rawjson.Elements(value) {
			text = append(text, separator...)
			text, separator = AppendEssential(text, element), comma
		}
		return append(text, ']')
	}
	return append(text, value...)
}
