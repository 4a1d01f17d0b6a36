package suite

import (
	"testing"

	"oda"
)

// scenario tests one rule on an initially empty store.
type scenario struct {
	name string
	run  func(t *testing.T, d *desk)
}

// Run runs the suite against an engine. open returns an empty store that is
// closed when the test ends; it may be called concurrently.
func Run(t *testing.T, open func(tb testing.TB) oda.Engine) {
	for _, group := range []struct {
		name      string
		scenarios []scenario
	}{
		{"versions", versions},
		{"past", past},
		{"documents", documents},
		{"conditions", conditions},
		{"several", several},
		{"creation", creation},
		{"records", records},
		{"record keys", recordKeys},
		{"batches", batches},
		{"room", room},
		{"telescopes", telescopes},
		{"days", days},
		{"nights", nights},
		{"listing", listings},
		{"paging", paging},
		{"catalogue", catalogue},
		{"provenance", provenance},
		{"search", searches},
		{"changes", changes},
		{"moving", moving},
		{"closing", closing},
		{"concurrency", concurrency},
		{"histories", histories},
		{"properties", properties},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, s := range group.scenarios {
				t.Run(s.name, func(t *testing.T) {
					t.Parallel()
					d := newDesk(t, open(t))
					d.fresh = func() *desk { return newDesk(t, open(t)) }
					s.run(t, d)
				})
			}
		})
	}
}
