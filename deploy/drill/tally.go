package main

import (
	"fmt"
	"sync"
	"time"

	"oda/internal/test/history"
)

// outcome is the outcome of an operation.
type outcome int

// The outcomes.
const (
	acknowledged outcome = iota // answered with 200, or read back
	refused                     // answered that it is not stored
	unknown                     // nobody can tell
)

// tally counts what happens to the load. It is safe for concurrent use.
type tally struct {
	mu       sync.Mutex
	outcomes [3]int
	attempts map[string]int             // failed attempts by reason
	entities map[string]*history.Writes // writes by identifier
	quiet    [paths + 1]silence         // the last one is for all paths
	watches  []*watch
}

// path is a way into the archive: the server, and what is written. Records and
// documents take different paths within a server.
type path int

const paths = 2 * serverCount

func recording(server int) path { return path(server) }

func storing(server int) path { return path(serverCount + server) }

func (p path) String() string {
	if p < serverCount {
		return fmt.Sprintf("records by oda%d", p+1)
	}
	return fmt.Sprintf("stores by oda%d", p-serverCount+1)
}

// silence measures the longest time without a successful write.
type silence struct {
	last    time.Time
	longest time.Duration
}

// watch waits for the first successful write after an instant.
type watch struct {
	since time.Time
	first [paths]time.Duration // 0 if there is none yet
}

// newTally returns a tally that starts now.
func newTally() *tally {
	t := &tally{attempts: map[string]int{}, entities: map[string]*history.Writes{}}
	for i := range t.quiet {
		t.quiet[i].last = time.Now()
	}
	return t
}

// success notes an acknowledged write, and when it was sent.
func (t *tally) success(way path, sent time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	for _, i := range []path{way, paths} {
		t.quiet[i].longest = max(t.quiet[i].longest, now.Sub(t.quiet[i].last))
		t.quiet[i].last = now
	}
	for _, w := range t.watches {
		// A write that was sent before the event may have been committed before
		// it.
		if sent.After(w.since) && w.first[way] == 0 {
			w.first[way] = now.Sub(w.since)
		}
	}
}

// failed notes an attempt that was not acknowledged.
func (t *tally) failed(how string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.attempts[how]++
}

// done notes the end of an operation.
func (t *tally) done(o outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.outcomes[o]++
}

// stored notes an acknowledged operation, with its place in the list of the
// entity.
func (t *tally) stored(entity, mark string, place int64) {
	t.done(acknowledged)
	t.writes(entity).Acknowledge(mark, place)
}

// writes returns the writes to an entity.
func (t *tally) writes(entity string) *history.Writes {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.entities[entity] == nil {
		t.entities[entity] = &history.Writes{}
	}
	return t.entities[entity]
}

// acknowledgedSoFar returns the number of acknowledged operations.
func (t *tally) acknowledgedSoFar() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.outcomes[acknowledged]
}

// watch begins to wait for the next write on each path.
func (t *tally) watch() *watch {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &watch{since: time.Now()}
	t.watches = append(t.watches, w)
	return w
}

// firsts returns the time from the event to the first write on each path, or 0
// if there was none.
func (t *tally) firsts(w *watch) [paths]time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return w.first
}

// end accounts for the silence at the end of the load.
func (t *tally) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.quiet {
		t.quiet[i].longest = max(t.quiet[i].longest, time.Since(t.quiet[i].last))
	}
}
