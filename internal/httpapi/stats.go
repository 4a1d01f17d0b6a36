package httpapi

import (
	"net/http"
	"sync/atomic"
	"time"

	"oda"
	"oda/internal/admission"
	"oda/internal/measure"
)

// otherRequests is the name for what is neither an operation nor a page: unknown paths,
// methods that a path does not have, and what browsers ask before they send a request.
const otherRequests = "other"

// outcomes are the classes of a status, as they are counted.
var outcomes = [...]string{answered: "2xx", unchanged: "3xx", refused: "4xx", failed: "5xx", left: "gone"}

const (
	answered  = iota
	unchanged // or elsewhere
	refused
	failed
	left // the client went away
)

// operation counts the requests of one operation.
type operation struct {
	name   string
	took   [len(outcomes)]atomic.Pointer[measure.Histogram] // in nanoseconds; nil before the first
	waited [len(outcomes)]atomic.Int64                      // requests that took as long as they wanted to
}

// note counts a request that has ended.
func (o *operation) note(outcome int, took time.Duration, waited bool) {
	if waited {
		o.waited[outcome].Add(1)
		return
	}
	h := o.took[outcome].Load()
	if h == nil {
		o.took[outcome].CompareAndSwap(nil, measure.NewHistogram(measure.Durations...))
		h = o.took[outcome].Load()
	}
	h.Note(int64(took))
}

// operationNamed returns the place of an operation among those that are counted. It is
// called only while routes are registered.
func (a *API) operationNamed(name string) uint16 {
	for i, o := range a.operations {
		if o.name == name {
			return uint16(i)
		}
	}
	a.operations = append(a.operations, &operation{name: name})
	return uint16(len(a.operations) - 1)
}

// count counts a request that has ended.
func (c *call) count(now time.Time) {
	if all := c.api.operations; len(all) > 0 { // else the archive is not open yet
		all[c.counted].note(c.outcome(), now.Sub(c.started), c.waited)
	}
}

// outcome returns the class of the status. An answer that was cut off is a failure of
// the server, whatever its status was.
func (c *call) outcome() int {
	switch {
	case c.status == statusGone:
		return left
	case c.status >= http.StatusInternalServerError, c.status < http.StatusBadRequest && c.failure != nil:
		return failed
	case c.status >= http.StatusBadRequest:
		return refused
	case c.status >= http.StatusMultipleChoices:
		return unchanged
	}
	return answered
}

// problemCounts counts problems by their code.
type problemCounts map[oda.Code]*atomic.Int64

func newProblemCounts() problemCounts {
	counts := make(problemCounts, len(problems))
	for code := range problems {
		counts[code] = new(atomic.Int64)
	}
	return counts
}

func (p problemCounts) note(code oda.Code) {
	if n := p[code]; n != nil { // nil in an archive that is not open yet
		n.Add(1)
	}
}

// Stats returns what the interface has done.
func (a *API) Stats() admission.Requests {
	s := admission.Requests{
		Problems: make(map[oda.Code]int64, len(a.problems)), Classes: a.control.Stats(), Recorders: a.recorders.stats(time.Now()),
		Bodies: a.inFlight.used.Load(), BodiesMost: a.inFlight.most, Answers: a.answers.Stats(),
	}
	for _, o := range a.operations {
		for i, outcome := range outcomes {
			one := admission.Operation{Operation: o.name, Outcome: outcome, Requests: o.waited[i].Load()}
			if h := o.took[i].Load(); h != nil {
				counts := h.Read()
				one.Took = &counts
				one.Requests += counts.Total()
			}
			s.Operations = append(s.Operations, one)
		}
	}
	for code, n := range a.problems {
		s.Problems[code] = n.Load()
	}
	return s
}
