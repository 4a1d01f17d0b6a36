package sqlite

import (
	"cmp"
	"slices"
	"sync"

	"oda"
)

// recentMost is how many changes are kept in memory at least, once there were so
// many.
const recentMost = 4096

// recent is the end of the log of changes, as the writer has committed it. Whoever
// follows reads it from here, since reading it back from the tables would take
// processor time from those who write.
type recent struct {
	mu      sync.Mutex
	start   oda.Position // the changes are all that come after it
	changes []oda.Change
}

// add adds what was committed.
func (r *recent) add(changes []oda.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if drop := len(r.changes) - recentMost; drop > recentMost {
		r.start = r.changes[drop-1].Position
		r.changes = slices.Delete(r.changes, 0, drop)
	}
	for _, c := range changes {
		r.changes = join(r.changes, c)
	}
}

// join appends a change, or joins it with the last one.
func join(changes []oda.Change, c oda.Change) []oda.Change {
	if n := len(changes); n > 0 && changes[n-1].Join(c) {
		return changes
	}
	return append(changes, c)
}

// after returns up to limit changes after a position and up to another, none if they
// must be read from the tables.
func (r *recent) after(position, last oda.Position, limit int) []oda.Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	if position < r.start {
		return nil
	}
	behind := func(position oda.Position) int {
		i, _ := slices.BinarySearchFunc(r.changes, position+1, func(c oda.Change, least oda.Position) int { return cmp.Compare(c.Position, least) })
		return i
	}
	first := behind(position)
	found := slices.Clone(r.changes[first:min(first+limit, behind(last))])
	if len(found) > 0 {
		found[0] = found[0].Behind(position)
	}
	return found
}
