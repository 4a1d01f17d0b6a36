package jsondiff

import (
	"iter"
	"strings"
)

// line is a line of a document as people read it: a value, the beginning of one
// or its end, perhaps after its key. It is a piece of the text; only white
// space differs.
type line struct {
	start, end int32 // end is that of the value; a key before it begins at start
	indent     uint16
	flags      uint8
}

// What a line is besides its piece of the text.
const (
	hasKey   = 1 << iota
	isEmpty  // a list or object without anything in it: the closing bracket stands here too
	hasComma // something follows
)

// pretty prints a document, a value to a line.
type pretty struct {
	text
	hidden map[string]map[string]bool // members of members that are left out
}

// hide makes of pointers with two parts what pretty takes.
func hide(pointers []string) map[string]map[string]bool {
	hidden := make(map[string]map[string]bool)
	for _, pointer := range pointers {
		parts := strings.Split(pointer, "/")
		if hidden[parts[1]] == nil {
			hidden[parts[1]] = make(map[string]bool)
		}
		hidden[parts[1]][parts[2]] = true
	}
	return hidden
}

// lines gives the lines of the document.
func (p pretty) lines() iter.Seq[line] {
	return func(yield func(line) bool) {
		root := p.root()
		p.walk(yield, root, line{start: root.start}, nil, 0)
	}
}

// walk gives the lines of a value, of which one is the first. Depth counts the
// values around it.
func (p pretty) walk(yield func(line) bool, v child, one line, without map[string]bool, depth int) bool {
	comma := one.flags & hasComma
	if c := p.data[v.start]; c != '{' && c != '[' {
		one.end = v.end
		return yield(one)
	}
	in := p.inside(v)
	c, more := p.shown(&in, without)
	one.end = v.start + 1
	if !more {
		one.flags |= isEmpty
		return yield(one)
	}
	one.flags &^= hasComma
	if !yield(one) {
		return false
	}
	for more {
		next, another := p.shown(&in, without)
		inner := line{start: c.start, indent: one.indent + 1}
		var below map[string]bool
		if in.object {
			inner.start, inner.flags = c.key, hasKey
			if depth == 0 {
				below = p.hidden[string(p.name(c))]
			}
		}
		if another {
			inner.flags |= hasComma
		}
		if !p.walk(yield, c, inner, below, depth+1) {
			return false
		}
		c, more = next, another
	}
	return yield(line{start: v.end - 1, end: v.end, indent: one.indent, flags: comma})
}

// shown gives the next child that is not left out.
func (p pretty) shown(in *cursor, without map[string]bool) (child, bool) {
	c, more := in.next()
	for more && in.object && without[string(p.name(c))] {
		c, more = in.next()
	}
	return c, more
}

// deepest is how far lines are indented: what lies deeper in a document could
// otherwise make its lines very long.
const deepest = 100

// append writes a line, without its end.
func (p pretty) append(dst []byte, l line) []byte {
	for range min(l.indent, deepest) {
		dst = append(dst, "  "...)
	}
	return p.appendText(dst, l)
}

// appendText writes a line without its indentation.
func (p pretty) appendText(dst []byte, l line) []byte {
	start := l.start
	if l.flags&hasKey != 0 {
		dst = append(dst, p.data[start:p.stringEnd(int(start))]...)
		dst = append(dst, ": "...)
		start = int32(p.afterKey(int(start)))
	}
	dst = append(dst, p.data[start:l.end]...)
	if l.flags&isEmpty != 0 {
		dst = append(dst, p.data[start]+2) // } is { + 2, and ] is [ + 2
	}
	if l.flags&hasComma != 0 {
		dst = append(dst, ',')
	}
	return dst
}
