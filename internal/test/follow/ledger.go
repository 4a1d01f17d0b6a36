package follow

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"oda"
)

// ledger has every write that was sent, and what the archive answered. It is
// safe for concurrent use.
type ledger struct {
	started time.Time

	mu     sync.Mutex
	writes map[string]*write // by mark
	acked  map[unit]fact
	refs   map[oda.Ref]bool
	twice  []string // contradictions between answers
	counts map[string]int
}

// write is one request of a writer.
type write struct {
	mark     string
	user     string
	sent     time.Duration // since the beginning
	answered time.Duration // never, until it is acknowledged
	refused  bool
}

// never is later than anything.
const never = time.Duration(math.MaxInt64)

// fact is what is known of a unit.
type fact struct {
	write *write
	block int64       // for a record: the version of the block; 0 if unknown
	on    oda.Instant // 0 if unknown
}

func newLedger() *ledger {
	return &ledger{
		started: time.Now(), writes: map[string]*write{}, acked: map[unit]fact{}, refs: map[oda.Ref]bool{},
		counts: map[string]int{},
	}
}

func (l *ledger) now() time.Duration { return time.Since(l.started) }

// send notes that a write is about to be sent. The mark is in all that it
// writes.
func (l *ledger) send(mark, user string, refs ...oda.Ref) *write {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := &write{mark: mark, user: user, sent: l.now(), answered: never}
	l.writes[mark] = w
	for _, ref := range refs {
		l.refs[ref] = true
	}
	return w
}

// acknowledge notes that a write was acknowledged just now, and what it wrote.
func (l *ledger) acknowledge(w *write, action string, wrote map[unit]fact) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.answered = l.now()
	l.counts[action]++
	for u, f := range wrote {
		f.write = w
		if before, known := l.acked[u]; known {
			l.twice = append(l.twice, fmt.Sprintf("both %s and %s were acknowledged as %v", before.write.mark, w.mark, u))
		}
		l.acked[u] = f
		l.refs[u.Ref] = true
	}
}

// refuse notes that the archive said that it has not stored a write.
func (l *ledger) refuse(w *write) {
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

// acknowledged returns the number of units that were acknowledged so far.
func (l *ledger) acknowledged() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

// sentAfter reports whether one of the last units of a log was sent after an
// instant.
func (l *ledger) sentAfter(log []step, since time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range log[max(0, len(log)-writers):] {
		if f, ok := l.acked[s.unit]; ok && f.write.sent > since {
			return true
		}
	}
	return false
}

// entities returns the entities that were written to.
func (l *ledger) entities() []oda.Ref {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.refs))
}
