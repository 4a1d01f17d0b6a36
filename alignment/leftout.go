package alignment

import (
	"slices"

	"oda/internal/rawjson"
)

// leftOut are the names of arguments that every run has others of, whatever it does.
var leftOut = []string{"scan_id", "subarray_id"}

// Essential gives the text of a JSON value piece by piece, without blanks between values and
// without the members, at any depth, that every run has others of. If it is to be exact, it
// has these too.
func Essential(value []byte, isExact bool, give func(piece []byte)) {
	e := essential{isExact, give}
	e.value(value)
}

type essential struct {
	isExact bool
	give    func(piece []byte)
}

var (
	comma, colon    = []byte(","), []byte(":")
	braces, squares = []byte("{}"), []byte("[]")
)

func (e *essential) value(value []byte) {
	if len(value) == 0 {
		return
	}
	var separator []byte
	switch value[0] {
	case '{':
		e.give(braces[:1])
		for key, member := range rawjson.Members(value) {
			if !e.isExact && slices.Contains(leftOut, string(key)) {
				continue
			}
			e.give(separator)
			e.give(rawjson.AppendQuoted(nil, string(key)))
			e.give(colon)
			e.value(member)
			separator = comma
		}
		e.give(braces[1:])
	case '[':
		e.give(squares[:1])
		for element := range rawjson.Elements(value) {
			e.give(separator)
			e.value(element)
			separator = comma
		}
		e.give(squares[1:])
	default:
		e.give(value)
	}
}
