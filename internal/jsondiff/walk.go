package jsondiff

import (
	"bytes"
	"cmp"
	"slices"

	"oda/internal/rawjson"
)

// text is a well-formed JSON document.
type text struct {
	data []byte
	long []child // values that are not looked through to find their end
	sums map[int32]hashed
}

// hashed is the number of a long value, by its start.
type hashed struct {
	sum uint64
	end int
}

// long is the size from which on it is remembered where a value ends. However
// deep values lie within each other, none is then read many times.
const long = 4 << 10

// read finds the long values of a document.
func read(data []byte) text {
	t := text{data: data, sums: map[int32]hashed{}}
	var open []int // values under way, by their places in t.long
	for i := 0; i < len(data) && len(data) >= long; {
		switch data[i] {
		case '"':
			i = t.stringEnd(i)
			continue
		case '{', '[':
			open = append(open, len(t.long))
			t.long = append(t.long, child{start: int32(i)})
		case '}', ']':
			at := open[len(open)-1]
			open = open[:len(open)-1]
			if t.long[at].end = int32(i + 1); i-int(t.long[at].start) < long {
				t.long = t.long[:at] // and so is all that lies within it
			}
		}
		i++
	}
	return t
}

// child is a member of an object or an element of an array.
type child struct {
	key        int32 // where its key begins, if it is a member
	start, end int32 // of its value
}

// root is the document itself.
func (t text) root() child {
	start := t.space(0)
	return child{start: int32(start), end: int32(t.end(start))}
}

func (t text) value(c child) []byte { return t.data[c.start:c.end] }

// name is the key of a member, decoded.
func (t text) name(c child) []byte {
	literal := t.data[c.key:t.stringEnd(int(c.key))]
	if bytes.IndexByte(literal, '\\') < 0 {
		return literal[1 : len(literal)-1]
	}
	return []byte(rawjson.Unquote(literal))
}

// space is the first place from i on that is not white space.
func (t text) space(i int) int { return rawjson.SkipWhite(t.data, i) }

// stringEnd is the place after the string that begins at i.
func (t text) stringEnd(i int) int { return rawjson.EndOfString(t.data, i) }

// end is the place after the value that begins at i.
func (t text) end(i int) int {
	if t.data[i] != '{' && t.data[i] != '[' {
		return rawjson.EndOfValue(t.data, i)
	}
	start := i
	for depth := 0; i-start < long; {
		switch t.data[i] {
		case '"':
			i = t.stringEnd(i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	at, _ := slices.BinarySearchFunc(t.long, int32(start), func(c child, start int32) int { return cmp.Compare(c.start, start) })
	return int(t.long[at].end)
}

// cursor goes through the members of an object or the elements of an array.
type cursor struct {
	text   text
	at     int
	object bool
}

func (t text) inside(c child) cursor {
	return cursor{t, t.space(int(c.start) + 1), t.data[c.start] == '{'}
}

func (c *cursor) next() (child, bool) {
	t := c.text
	switch t.data[c.at] {
	case '}', ']':
		return child{}, false
	case ',':
		c.at = t.space(c.at + 1)
	}
	one := child{key: int32(c.at)}
	if c.object {
		c.at = t.afterKey(c.at)
	}
	one.start, one.end = int32(c.at), int32(t.end(c.at))
	c.at = t.space(int(one.end))
	return one, true
}

// afterKey is where the value begins whose key begins at i.
func (t text) afterKey(i int) int {
	colon := t.space(t.stringEnd(i))
	return t.space(colon + 1)
}

// children are the members or elements of a value, and whether there are no more
// than that.
func (t text) children(c child, most int) (all []child, complete bool) {
	in := t.inside(c)
	for one, more := in.next(); more; one, more = in.next() {
		if len(all) == most {
			return nil, false
		}
		all = append(all, one)
	}
	return all, true
}
