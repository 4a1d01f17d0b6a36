package load

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"oda"
)

// Unit is what a write makes: a version of an entity, a record, or a status. The other
// numbers are 0.
type Unit struct {
	oda.Ref
	Version  int64
	Sequence int64 // of the record
	Status   int64 // its sequence
}

// VersionOf returns a version of an entity as a unit.
func VersionOf(ref oda.Ref, n int64) Unit { return Unit{Ref: ref, Version: n} }

// RecordOf returns the record of a block at a sequence as a unit.
func RecordOf(ref oda.Ref, sequence int64) Unit { return Unit{Ref: ref, Sequence: sequence} }

// StatusOf returns the status of an entity at a sequence as a unit.
func StatusOf(ref oda.Ref, sequence int64) Unit { return Unit{Ref: ref, Status: sequence} }

// alike reports whether another unit is one of the same entity and list.
func (u Unit) alike(other Unit) bool {
	return u.Ref == other.Ref && (u.Sequence == 0) == (other.Sequence == 0) && (u.Status == 0) == (other.Status == 0)
}

func (u Unit) String() string {
	switch {
	case u.Sequence != 0:
		return fmt.Sprintf("record %d of %s", u.Sequence, u.ID)
	case u.Status != 0:
		return fmt.Sprintf("status %d of %s", u.Status, u.ID)
	}
	return fmt.Sprintf("version %d of %s", u.Version, u.ID)
}

// Write is one request of a writer.
type Write struct {
	Mark     string // is in all that it writes
	User     string
	Sent     time.Duration // since the beginning
	Answered time.Duration // Never, until it is acknowledged

	units   int // that it makes
	refused bool
}

// Never is later than anything.
const Never = time.Duration(math.MaxInt64)

// Fact is what is known of a unit.
type Fact struct {
	Write *Write
	Block int64       // for a record or a status: the version of the entity; 0 if unknown
	On    oda.Instant // 0 if unknown
}

// ledger has every write that was sent, and what the archive answered. It is
// safe for concurrent use.
type ledger struct {
	series  string
	started time.Time

	mu     sync.Mutex
	writes map[string]*Write // by mark
	acked  map[Unit]Fact
	read   map[Unit]string // marks
	faults []string        // contradictions between answers
	counts map[string]int
	last   time.Duration // when something was acknowledged
	next   chan struct{} // is closed when something is acknowledged
	quiet  time.Duration
}

func newLedger() ledger {
	return ledger{
		series: newSeries(), started: time.Now(),
		writes: map[string]*Write{}, acked: map[Unit]Fact{}, read: map[Unit]string{}, counts: map[string]int{}, next: make(chan struct{}),
	}
}

// Now returns the time since the beginning.
func (l *ledger) Now() time.Duration { return time.Since(l.started) }

// send notes that a write of so many units is about to be sent.
func (l *ledger) send(mark, user string, units int) *Write {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := &Write{Mark: mark, User: user, Sent: l.Now(), Answered: Never, units: units}
	l.writes[mark] = w
	return w
}

// acknowledge notes that a write was acknowledged just now, and what it made.
func (l *ledger) acknowledge(w *Write, action string, made map[Unit]Fact) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.Answered = l.Now()
	l.quiet, l.last = max(l.quiet, w.Answered-l.last), w.Answered
	l.counts[action]++
	close(l.next)
	l.next = make(chan struct{})
	if len(made) != w.units {
		l.faults = append(l.faults, fmt.Sprintf("%s was acknowledged as %v, which is not %d", w.Mark, slices.Collect(maps.Keys(made)), w.units))
	}
	for u, f := range made {
		f.Write = w
		if before, known := l.acked[u]; known {
			l.faults = append(l.faults, fmt.Sprintf("both %s and %s were acknowledged as %v", before.Write.Mark, w.Mark, u))
		}
		l.acked[u] = f
	}
}

// refuse notes that the archive said that it has not stored a write.
func (l *ledger) refuse(w *Write) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.refused = true
	l.counts["refused"]++
}

// lose notes that a write has no clear answer.
func (l *ledger) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts["unclear"]++
}

// see notes that a reader saw a version with a mark, which must stay.
func (l *ledger) see(u Unit, mark string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if before, known := l.read[u]; known && before != mark {
		l.faults = append(l.faults, fmt.Sprintf("%v was read with %s, and with %s", u, before, mark))
	}
	l.read[u] = mark
}

// contradict notes that answers do not go together.
func (l *ledger) contradict(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = append(l.faults, fmt.Sprintf(format, args...))
}

// Acknowledged returns how many units were acknowledged so far.
func (l *ledger) Acknowledged() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

// Count returns how many writes of an action were acknowledged so far, or how many
// of all were "refused", or had an "unclear" answer.
func (l *ledger) Count(action string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts[action]
}

// Next returns a channel that is closed at the next acknowledgement.
func (l *ledger) Next() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next
}

// Quiet returns the longest time so far in which nothing was acknowledged.
func (l *ledger) Quiet() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(l.quiet, l.Now()-l.last)
}

// Units returns what was acknowledged so far.
func (l *ledger) Units() []Unit {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.acked))
}

// sent returns the write with a mark, or nil.
func (l *ledger) sent(mark string) *Write {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writes[mark]
}

// Of returns what was acknowledged of a unit.
func (l *ledger) Of(u Unit) (Fact, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f, ok := l.acked[u]
	return f, ok
}

// String says how much was done.
func (l *ledger) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	words := []string{fmt.Sprintf("%d versions, records and statuses acknowledged, never nothing for more than %v", len(l.acked), l.quiet.Round(time.Millisecond))}
	for _, action := range slices.Sorted(maps.Keys(l.counts)) {
		words = append(words, fmt.Sprintf("%s %d", action, l.counts[action]))
	}
	return strings.Join(words, ", ")
}

// Everything is the actions that occur in every long load.
var Everything = []string{"record", "record batch", "keep", "store", "several", "create", "status", "refused"}

// Enough returns an error if one of the actions did not occur, so that nothing
// is proved about it.
func (l *ledger) Enough(actions ...string) error {
	for _, action := range actions {
		if l.Count(action) == 0 {
			return fmt.Errorf("there was no %q, so nothing is proved about it", action)
		}
	}
	return nil
}
