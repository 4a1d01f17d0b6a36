package history

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Writes are the known writes into one list, such as the records of a block or
// the versions of an entity. Judge compares them with the list at the end,
// without a search. Writes is safe for concurrent use.
//
// A writer makes one write after the other, each with its own mark. A write
// without an answer may or may not be in the list, but is never late.
type Writes struct {
	mu    sync.Mutex
	sent  map[string]int // the last write of each writer
	acked []entry
	read  map[entry]bool
}

// entry is a write as an answer shows it: its mark, and its place in the list,
// counted from 1.
type entry struct {
	mark  string
	place int64
}

// Mark returns the mark of a writer's write number n, counted from 1.
func Mark(writer string, n int) string { return writer + "." + strconv.Itoa(n) }

// Begin notes that a write is being sent, and returns its mark.
func (w *Writes) Begin(writer string, n int) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sent == nil {
		w.sent = make(map[string]int)
	}
	w.sent[writer] = max(w.sent[writer], n)
	return Mark(writer, n)
}

// Acknowledge notes that a write was acknowledged at this place in the list.
func (w *Writes) Acknowledge(mark string, place int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acked = append(w.acked, entry{mark, place})
}

// Read notes that a reader saw a write.
func (w *Writes) Read(mark string, place int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.read == nil {
		w.read = make(map[entry]bool)
	}
	w.read[entry{mark, place}] = true
}

// Verdict counts writes by their fate. All but the last must be 0.
type Verdict struct {
	Lost           int // acknowledged, but not where the answer said
	Twice          int
	Vanished       int // seen by a reader, but no longer there
	Disordered     int // before an earlier write of the same writer
	Unsent         int
	Unacknowledged int

	Faults []string // descriptions of the first few
}

const mostFaults = 10

func (v *Verdict) fault(count *int, format string, args ...any) {
	*count++
	if len(v.Faults) < mostFaults {
		v.Faults = append(v.Faults, fmt.Sprintf(format, args...))
	}
}

// Add adds the verdict on another list.
func (v *Verdict) Add(other Verdict) {
	v.Lost += other.Lost
	v.Twice += other.Twice
	v.Vanished += other.Vanished
	v.Disordered += other.Disordered
	v.Unsent += other.Unsent
	v.Unacknowledged += other.Unacknowledged
	v.Faults = append(v.Faults, other.Faults...)
	v.Faults = v.Faults[:min(len(v.Faults), mostFaults)]
}

// Judge compares the known writes with the marks in the list of this name, in
// their order.
func (w *Writes) Judge(list string, found []string) Verdict {
	w.mu.Lock()
	defer w.mu.Unlock()
	var v Verdict
	times, before := make(map[string]int), make(map[string]int)
	for _, mark := range found {
		dot := strings.LastIndexByte(mark, '.')
		n, err := strconv.Atoi(mark[dot+1:])
		writer := mark[:max(dot, 0)]
		times[mark]++
		switch {
		case err != nil || n < 1 || n > w.sent[writer]:
			v.fault(&v.Unsent, "%s: %s was never sent", list, mark)
		case times[mark] == 2:
			v.fault(&v.Twice, "%s: %s is there more than once", list, mark)
		case times[mark] == 1 && n < before[writer]:
			v.fault(&v.Disordered, "%s: %s stands after %s", list, mark, Mark(writer, before[writer]))
		}
		before[writer] = max(before[writer], n)
	}
	v.Unacknowledged = len(times)
	there := func(e entry) bool { return e.place >= 1 && e.place <= int64(len(found)) && found[e.place-1] == e.mark }
	for _, e := range w.acked {
		if times[e.mark] > 0 {
			v.Unacknowledged--
		}
		switch {
		case there(e):
		case times[e.mark] == 0:
			v.fault(&v.Lost, "%s: %s was acknowledged as number %d and is lost", list, e.mark, e.place)
		default:
			v.fault(&v.Lost, "%s: %s was acknowledged as number %d and stands as number %d", list, e.mark, e.place, slices.Index(found, e.mark)+1)
		}
	}
	for e := range w.read {
		if !there(e) {
			v.fault(&v.Vanished, "%s: %s was read as number %d and is gone", list, e.mark, e.place)
		}
	}
	return v
}
