package auditlog

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// refusals sums up requests that were refused, over a minute: those without good
// credentials by address, and those of callers who were not allowed to by caller and
// operation. The ones cannot push the others out.
type refusals struct {
	since     time.Time
	strangers map[refusal]*sum
	callers   map[refusal]*sum
}

// refusal is what requests have in common that are summed up in one line.
type refusal struct {
	caller, means, operation string
	from                     string // of a caller without a name
	status                   int
}

// These bound the addresses, and the callers with their operations, that are counted
// one by one in a minute. Further ones are counted together.
const (
	mostAddresses = 1024
	mostCallers   = 1024
)

// What those are called that are counted together.
const (
	otherAddresses = "other addresses"
	otherCallers   = "other callers"
)

func newRefusals(now time.Time) refusals {
	return refusals{now, make(map[refusal]*sum), make(map[refusal]*sum)}
}

// stranger counts a request without good credentials.
func (r *refusals) stranger(from string, status int) {
	one := refusal{from: clip(from), status: status}
	if r.strangers[one] == nil && len(r.strangers) >= mostAddresses {
		one.from = otherAddresses
	}
	count(r.strangers, one, Entry{From: one.from, Status: status})
}

// caller counts a request that its caller was not allowed to make.
func (r *refusals) caller(e Entry) {
	e = e.clipped()
	one := refusal{caller: e.Caller, means: e.Means, operation: e.Operation, status: e.Status}
	if e.Caller == "" {
		one.from = e.From
	}
	if r.callers[one] == nil && len(r.callers) >= mostCallers {
		one = refusal{caller: otherCallers, status: e.Status}
		e = Entry{Caller: otherCallers, Status: e.Status}
	}
	count(r.callers, one, e)
}

// count counts one more of what is the same. The line tells the first.
func count(lines map[refusal]*sum, one refusal, e Entry) {
	if lines[one] == nil {
		lines[one] = &sum{Entry: e}
	}
	lines[one].Count++
}

// take hands each sum to write, and forgets those that it has written. It ends with
// the first that it has not: the others are counted on.
func (r *refusals) take(now time.Time, write func(*sum) bool) {
	for _, lines := range []map[refusal]*sum{r.strangers, r.callers} {
		for _, one := range slices.SortedFunc(maps.Keys(lines), compare) {
			line := *lines[one]
			line.Time, line.Since = now.UTC(), r.since.UTC()
			if !write(&line) {
				return
			}
			delete(lines, one)
		}
	}
	*r = newRefusals(now)
}

func compare(a, b refusal) int {
	return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.caller, b.caller), cmp.Compare(a.means, b.means),
		cmp.Compare(a.operation, b.operation), cmp.Compare(a.status, b.status))
}

// left returns how many requests are counted and not written.
func (r *refusals) left() (requests int) {
	for _, lines := range []map[refusal]*sum{r.strangers, r.callers} {
		for _, line := range lines {
			requests += line.Count
		}
	}
	return requests
}
