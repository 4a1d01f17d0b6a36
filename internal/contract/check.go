package contract

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"oda"
	"oda/internal/rawjson"
)

// maxFaults is how many faults one answer lists.
const maxFaults = 20

// checker is one pass over one body.
type checker struct {
	data   []byte
	scan   *rawjson.Scanner
	nodes  []rawjson.Node
	faults []oda.Fault
	count  int // of all faults, including those that are not listed
}

// value consumes the next value and checks it against s. It returns only errors of
// the scanner. A value that does not match the schema becomes a fault and the scan
// continues, since a later syntax error is more important.
func (c *checker) value(s *schema, name string, index bool) error {
	kind, err := c.scan.Peek()
	if err != nil {
		return err
	}
	start, node := c.scan.Pos(), len(c.nodes)
	index = index && c.count == 0 // nobody reads the index of a body that is refused
	if index {
		c.nodes = append(c.nodes, rawjson.Node{Name: name, Kind: kind, Start: start})
	}
	below := index && !s.leaf
	if s.document {
		defer c.scan.CountFrom(c.scan.CountFromHere())
	}
	switch {
	case !s.kinds.has(kind):
		c.fault(func() string { return "Must be " + s.expected() + ", not " + article(kind.String()) + "." })
		_, _, err = c.scan.Skip()
	case kind == rawjson.Object && !s.opaque():
		err = c.object(s, below)
	case kind == rawjson.Array && (s.items != nil || s.length != bounds{}):
		err = c.array(s, below)
	default:
		if _, _, err = c.scan.Skip(); err == nil {
			c.scalar(s, kind, c.data[start:c.scan.Pos()])
		}
	}
	if err != nil {
		return err
	}
	if index {
		c.nodes[node].End = c.scan.Pos()
		c.nodes[node].Next = len(c.nodes)
	}
	return nil
}

func (c *checker) object(s *schema, index bool) error {
	if _, err := c.scan.BeginObject(); err != nil {
		return err
	}
	var seen uint64
	size := 0
	for {
		key, more, err := c.scan.NextKey()
		if err != nil {
			return err
		}
		if !more {
			break
		}
		size++
		p, declared := s.properties[string(key)]
		if !declared {
			if s.closed {
				c.unknownMember(s)
			}
			if _, _, err := c.scan.Skip(); err != nil {
				return err
			}
			continue
		}
		seen |= p.bit
		if err := c.value(p.schema, p.name, index); err != nil {
			return err
		}
	}
	for i, name := range s.required {
		if seen&(1<<i) == 0 {
			c.fault(func() string { return "The member " + strconv.Quote(name) + " is missing." })
		}
	}
	c.within(s.size, size, "member")
	return nil
}

func (c *checker) array(s *schema, index bool) error {
	if _, err := c.scan.BeginArray(); err != nil {
		return err
	}
	length := 0
	for {
		more, err := c.scan.NextElement()
		if err != nil {
			return err
		}
		if !more {
			break
		}
		tooLong := s.length.max != nil && length >= *s.length.max
		if tooLong {
			c.scan.Watch(nil) // the body will be refused, so notes would waste memory
		}
		if s.items == nil {
			_, _, err = c.scan.Skip()
		} else {
			err = c.value(s.items, "", index && !tooLong)
		}
		if err != nil {
			return err
		}
		length++
	}
	c.within(s.length, length, "element")
	return nil
}

// scalar checks a text or number against s. Of other values only the type matters,
// which was checked before.
func (c *checker) scalar(s *schema, kind rawjson.Kind, literal []byte) {
	var msg string
	switch kind {
	case rawjson.String:
		if !s.checksText() {
			return
		}
		text := literal[1 : len(literal)-1]
		if bytes.IndexByte(text, '\\') >= 0 {
			text = []byte(rawjson.Unquote(literal))
		}
		msg = s.checkText(text)
	case rawjson.Number:
		msg = s.checkNumber(literal)
	}
	if msg != "" {
		c.fault(func() string { return msg })
	}
}

// within notes a fault if the number of members or elements is out of bounds.
func (c *checker) within(b bounds, n int, what string) {
	if b.min != nil && n < *b.min {
		c.fault(func() string { return fmt.Sprintf("Must have at least %s.", counted(*b.min, what)) })
	}
	if b.max != nil && n > *b.max {
		c.fault(func() string { return fmt.Sprintf("Must have at most %s.", counted(*b.max, what)) })
	}
}

func (c *checker) unknownMember(s *schema) {
	c.fault(func() string {
		known := slices.Sorted(maps.Keys(s.properties))
		return "This member is unknown. Known members: " + strings.Join(known, ", ") + "."
	})
}

// fault notes that the current value is wrong. There may be millions of faults, so
// the text is made only of those that the answer lists. The body will be refused, so
// nothing more is noted of it.
func (c *checker) fault(detail func() string) {
	c.count++
	c.scan.Watch(nil)
	if len(c.faults) < maxFaults {
		c.faults = append(c.faults, oda.Fault{Pointer: c.scan.Pointer(), Detail: detail()})
	}
}

func (c *checker) invalidRequest() *oda.Error {
	first := c.faults[0]
	where := first.Pointer
	if where == "" {
		where = "The document"
	}
	e := oda.Errorf(oda.InvalidRequest, "The body does not match the API description. %s: %s", where, first.Detail)
	if c.count > 1 {
		e.Detail += fmt.Sprintf(" There are %d errors.", c.count)
	}
	e.Faults = c.faults
	return e
}

func invalidJSON(err error) error {
	syntax, ok := errors.AsType[*rawjson.SyntaxError](err)
	if !ok {
		return fmt.Errorf("scan a body: %w", err)
	}
	e := oda.Errorf(oda.InvalidJSON, "The body is not strict JSON: %v.", syntax)
	e.Faults = []oda.Fault{{Pointer: syntax.Pointer, Detail: syntax.Error()}}
	return e
}

// expected names the types that s accepts.
func (s *schema) expected() string {
	var names []string
	for k := rawjson.Object; k >= rawjson.Null; k-- {
		switch {
		case !s.kinds.has(k):
		case k == rawjson.Number && s.integer:
			names = append(names, "an integer")
		default:
			names = append(names, article(k.String()))
		}
	}
	return strings.Join(names, " or ")
}

func article(kind string) string {
	switch kind {
	case "null":
		return kind
	case "array", "object":
		return "an " + kind
	}
	return "a " + kind
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
