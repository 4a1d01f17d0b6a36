package night

import (
	"cmp"
	"slices"

	"oda"
)

// errorName tells errors apart; empty is what a call does not say.
type errorName struct{ kind, detail string }

func (n errorName) compare(other errorName) int {
	return cmp.Or(cmp.Compare(n.kind, other.kind), cmp.Compare(n.detail, other.detail))
}

// errorSum counts the calls with an error.
type errorSum struct {
	calls, blocks int64
	first         CallPlace
	at            oda.Instant // of the first
}

// fail counts a call of a block that has failed.
func (s *total) fail(c *oda.Call, at oda.Instant, place CallPlace) {
	var name errorName
	if e := c.Error(); e != nil {
		if e.Type != nil {
			name.kind = *e.Type
		}
		if e.Detail != nil {
			name.detail = *e.Detail
		}
	}
	one := s.failure(name)
	one.join(&errorSum{1, 0, place, at})
	one.blocks = 1
}

// failure returns the counts of an error.
func (s *total) failure(name errorName) *errorSum {
	known := s.errors[name]
	if known == nil {
		if len(s.errors) >= 2*maxErrors {
			s.bound()
		}
		known = &errorSum{}
		s.errors[name] = known
	}
	return known
}

// join adds the counts of other blocks.
func (e *errorSum) join(other *errorSum) {
	if e.calls == 0 || earlier(other, e) < 0 {
		e.first, e.at = other.first, other.at
	}
	e.calls += other.calls
	e.blocks += other.blocks
}

// earlier compares which error came first.
func earlier(a, b *errorSum) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.first.Block, b.first.Block), cmp.Compare(a.first.Sequence, b.first.Sequence))
}

// mostFrequent returns the errors that most calls have, in order.
func mostFrequent(errors map[errorName]*errorSum) []Error {
	names := make([]errorName, 0, len(errors))
	for name := range errors {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b errorName) int {
		return cmp.Or(cmp.Compare(errors[b].calls, errors[a].calls), a.compare(b))
	})
	most := []Error{}
	for _, name := range names[:min(len(names), frequentOnes)] {
		e := errors[name]
		most = append(most, Error{orNil(name.kind), orNil(name.detail), e.calls, e.blocks, e.first})
	}
	return most
}

func orNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
