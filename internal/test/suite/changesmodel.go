package suite

import (
	"cmp"
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"oda"
	"oda/archive"
)

// compareLog reads the log as a follower does that is interrupted again and
// again, and compares what it has seen with the model: everything once, nothing
// of an entity before what came earlier, and nothing before what was acknowledged
// before it was sent.
func (m *machine) compareLog(t *rapid.T) {
	seen := m.follow(t, m.from)
	want := map[string]logged{}
	for _, l := range m.model.log {
		want[unit(l.change)] = l
	}
	request := 0
	last := map[oda.Ref]logged{}
	for _, c := range seen {
		l, known := want[unit(c)]
		if !known {
			t.Fatalf("the log has %s, which did not happen, or twice", unit(c))
		}
		delete(want, unit(c))
		if l.request < request {
			t.Fatalf("the log has %s behind what was acknowledged later", unit(c))
		}
		request = l.request
		if before := last[c.Ref]; c.Said == nil && before.change.On >= c.On {
			t.Fatalf("the log has %s behind a later change of the same entity", unit(c))
		}
		if c.Said == nil { // a status is of when it was said, and changes no instant
			last[c.Ref] = l
		}
	}
	for _, l := range want {
		t.Fatalf("the log lacks %s", unit(l.change))
	}
	// A follower that begins anywhere sees what is behind, and nothing else.
	from := rapid.Int64Range(int64(m.from), int64(m.desk.end())).Draw(t, "from")
	i, _ := slices.BinarySearchFunc(seen, oda.Position(from)+1, func(c oda.Change, at oda.Position) int { return cmp.Compare(c.Position, at) })
	same(t, fmt.Sprintf("the changes behind %d", from), m.follow(t, oda.Position(from)), append([]oda.Change{}, seen[i:]...))
}

// unit writes a version, a record or a status.
func unit(c oda.Change) string {
	text := fmt.Sprintf("%s/%s v%d by %s on %s", c.Kind.Collection(), c.ID, c.Version, c.By, c.On)
	if c.Recorded() {
		text += fmt.Sprintf(" #%d", c.LastSequence)
	}
	if c.Said != nil {
		text += fmt.Sprintf(" %+v", *c.Said)
	}
	return text
}

// follow reads the log to its end, in pages of any length. It sometimes forgets a
// part of a page and goes on where it was. What stands as one change for several
// records is taken apart; their instants are the model's, but for the last.
func (m *machine) follow(t *rapid.T, after oda.Position) []oda.Change {
	seen := []oda.Change{}
	for {
		page, err := m.desk.store.Changes(m.desk.ctx, archive.Following{After: after, Limit: rapid.IntRange(1, 5).Draw(t, "limit")})
		if err != nil {
			t.Fatalf("changes after %d: %v", after, err)
		}
		changes := page.Changes
		if len(changes) > 1 && rapid.IntRange(0, 3).Draw(t, "interrupted") == 0 {
			changes = changes[:rapid.IntRange(1, len(changes)-1).Draw(t, "handled")]
			page.Next, page.AtEnd = changes[len(changes)-1].Position, false
		}
		for _, c := range changes {
			if c.Position <= after || c.Position > page.Next {
				t.Fatalf("a change at %d is not behind %d, or not up to %d", c.Position, after, page.Next)
			}
			for sequence := c.FirstSequence; sequence <= c.LastSequence; sequence++ {
				one := c
				one.Position -= oda.Position(c.LastSequence - sequence)
				one.FirstSequence, one.LastSequence = sequence, sequence
				if c.Recorded() {
					one.On = m.model.recordedOn(c.Ref, sequence)
				}
				seen = append(seen, one)
			}
			after = c.Position
			if last := seen[len(seen)-1]; last.On != c.On {
				t.Fatalf("the log says of %s that it was on %s", unit(last), c.On)
			}
		}
		if after = page.Next; page.AtEnd {
			return seen
		}
	}
}

// recordedOn gives when a record came.
func (m *model) recordedOn(block oda.Ref, sequence int64) oda.Instant {
	for _, l := range m.log {
		if l.change.Ref == block && l.change.LastSequence == sequence {
			return l.change.On
		}
	}
	return 0
}
