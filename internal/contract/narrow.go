package contract

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// narrow returns a schema for values that match both s and also. It is compiled
// once, so that a check costs no more than one against s.
func (c *compiler) narrow(s, also *schema) (*schema, error) {
	pair := [2]*schema{s, also}
	if known := c.narrowed[pair]; known != nil {
		return known, nil
	}
	n := new(schema)
	c.narrowed[pair] = n // before its members, which may refer to it
	*n = *s
	n.kinds = s.kinds & also.kinds
	n.integer = s.integer || also.integer
	n.leaf = s.leaf || also.leaf
	n.timestamp = s.timestamp || also.timestamp
	n.size, n.length, n.text = s.size.within(also.size), s.length.within(also.length), s.text.within(also.text)
	n.minimum, n.maximum = larger(s.minimum, also.minimum), smaller(s.maximum, also.maximum)
	switch {
	case also.pattern == nil && also.enum == nil && also.notEnum == nil:
	case s.pattern == nil && s.enum == nil && s.notEnum == nil && s.rule == "":
		n.pattern, n.enum, n.notEnum, n.rule = also.pattern, also.enum, also.notEnum, also.rule
	default:
		return nil, errors.New("both restrict the text")
	}
	if err := c.narrowItems(n, also); err != nil {
		return nil, err
	}
	return n, c.narrowMembers(n, also)
}

func (c *compiler) narrowItems(n, also *schema) (err error) {
	switch {
	case also.items == nil:
	case n.items == nil:
		n.items = also.items
	default:
		if n.items, err = c.narrow(n.items, also.items); err != nil {
			return fmt.Errorf("items: %w", err)
		}
	}
	return nil
}

func (c *compiler) narrowMembers(n, also *schema) error {
	if also.closed {
		return errors.New("an addition to a schema cannot forbid its members")
	}
	n.required = slices.Concat(n.required, also.required)
	slices.Sort(n.required)
	n.required = slices.Compact(n.required)
	n.properties = maps.Clone(n.properties)
	for name, p := range also.properties {
		before, ok := n.properties[name]
		switch {
		case !ok && n.closed:
			return fmt.Errorf("the member %q is unknown", name)
		case ok:
			member, err := c.narrow(before.schema, p.schema)
			if err != nil {
				return fmt.Errorf("the member %q: %w", name, err)
			}
			p.schema = member
		}
		n.properties[name] = p
	}
	return n.mark()
}

// within returns the intersection of both bounds.
func (b bounds) within(other bounds) bounds {
	return bounds{larger(b.min, other.min), smaller(b.max, other.max)}
}

func larger[T int | int64](a, b *T) *T {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

func smaller[T int | int64](a, b *T) *T {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}
