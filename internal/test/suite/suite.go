package suite

import (
	"flag"
	"fmt"
	"slices"
	"testing"

	"oda"
	"oda/internal/test/must"
	"oda/internal/test/proof"
)

// scenario tests one rule on an initially empty store.
type scenario struct {
	name string
	run  func(t *testing.T, d *desk)
}

// groups has the scenarios by their subjects. Those inside need an engine itself; the
// others may speak to it through the client as well.
var groups = []struct {
	name              string
	scenarios, inside []scenario
}{
	{"versions", versions, versionsInside},
	{"past", past, pastInside},
	{"documents", documents, documentsInside},
	{"conditions", conditions, conditionsInside},
	{"several", several, severalInside},
	{"creation", creation, creationInside},
	{"records", records, recordsInside},
	{"record keys", recordKeys, nil},
	{"statuses", statuses, nil},
	{"running", running, runningInside},
	{"batches", batches, batchesInside},
	{"room", nil, room},
	{"telescopes", nil, telescopes},
	{"days", nil, days},
	{"notable calls", nil, notable},
	{"nights", nights, nightsInside},
	{"notes of nights", notesOfNights, nil},
	{"questions about calls", callQuestions, callQuestionsInside},
	{"listing", listings, listingsInside},
	{"paging", paging, pagingInside},
	{"catalogue", nil, catalogue},
	{"provenance", tracing, tracingInside},
	{"progress", progressing, progressInside},
	{"naming", nil, namingInside},
	{"search", searches, nil},
	{"notes", notes, notesInside},
	{"changes", changes, changesInside},
	{"moving", nil, moving},
	{"closing", nil, closing},
	{"concurrency", concurrency, nil},
	{"histories", nil, histories},
	{"properties", properties, nil},
}

// Run runs the suite against an engine. open returns an empty store that is
// closed when the test ends; it may be called concurrently.
func Run(t *testing.T, open func(tb testing.TB) oda.Engine) {
	t.Helper()
	shorten(t)
	desk := func(t *testing.T) *desk {
		engine := open(t)
		return newDesk(t, directTo(engine), engine)
	}
	for _, group := range groups {
		run(t, group.name, slices.Concat(group.scenarios, group.inside), desk)
	}
}

// RunSpoken runs the part of the suite that clients can see: the Go client speaks
// to a server with an engine behind it.
func RunSpoken(t *testing.T, open func(tb testing.TB) oda.Engine) {
	t.Helper()
	shorten(t)
	for _, group := range groups {
		run(t, group.name, group.scenarios, func(t *testing.T) *desk { return newDesk(t, speak(t, open(t)), nil) })
	}
}

// shorten has random tests try less, unless somebody has said how much.
func shorten(t *testing.T) {
	t.Helper()
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		must.Do(t, checks.Value.Set(fmt.Sprint(proof.Rounds(30, 100))))
	}
}

// run runs scenarios, each with a desk of its own.
func run(t *testing.T, name string, scenarios []scenario, open func(t *testing.T) *desk) {
	t.Run(name, func(t *testing.T) {
		for _, s := range scenarios {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				d := open(t)
				d.fresh = func() *desk { return open(t) }
				s.run(t, d)
			})
		}
	})
}
