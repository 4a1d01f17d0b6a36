package suite

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"oda"
)

var paging = []scenario{
	{"the pages make up the whole listing, even if many entities share an instant", func(t *testing.T, d *desk) {
		for i := range 40 {
			d.clock.Set(oda.Instant(1000+10*(i/13)), 0)
			d.as([]string{"anna", "annabel", "bob"}[i%3]).mustPut(sbd(fmt.Sprintf("s%02d", (i*7)%40)), `{}`)
		}
		from, to := oda.Instant(1010), oda.Instant(1020)
		for name, q := range map[string]oda.Query{
			"by creation":           everything(oda.SBDefinition, oda.ByCreation),
			"by modification":       everything(oda.SBDefinition, oda.ByModification),
			"in a range":            {Kind: oda.SBDefinition, Order: oda.ByCreation, After: &from, Before: &to},
			"in a range, modified":  {Kind: oda.SBDefinition, Order: oda.ByModification, After: &from, Before: &to},
			"by user, equals":       {Kind: oda.SBDefinition, Order: oda.ByCreation, User: "anna", Match: oda.UserEquals},
			"by user, starts with":  {Kind: oda.SBDefinition, Order: oda.ByCreation, User: "anna", Match: oda.UserStartsWith},
			"by user, contains":     {Kind: oda.SBDefinition, Order: oda.ByCreation, User: "b", Match: oda.UserContains},
			"of a kind without any": everything(oda.Project, oda.ByCreation),
		} {
			whole := d.list(q)
			for limit := 1; limit <= len(whole)+1; limit += 1 + limit/6 {
				same(t, fmt.Sprintf("%s, %d a page", name, limit), d.pages(q, limit, func() {}), whole)
			}
		}
	}},
	{"paging by modification never misses an entity that is modified and still matches", func(t *testing.T, d *desk) {
		const n = 60
		random := rand.New(rand.NewPCG(1, 2))
		for i := range n {
			d.mustPut(eb(fmt.Sprintf("b%02d", i)), `{}`)
		}
		seen := map[string]bool{}
		for _, id := range d.pages(everything(oda.ExecutionBlock, oda.ByModification), 7, func() {
			for range 3 { // fewer than a page, so that paging ends
				d.mustRecord(fmt.Sprintf("b%02d", random.IntN(n)), call("moved"))
			}
		}) {
			seen[id] = true
		}
		if len(seen) != n {
			t.Fatalf("%d of %d were seen", len(seen), n)
		}
	}},
	{"paging by creation lists each entity once, whatever is written meanwhile", func(t *testing.T, d *desk) {
		for i := range 30 {
			d.mustPut(sbd(fmt.Sprintf("s%02d", i)), `{}`)
		}
		want := d.list(everything(oda.SBDefinition, oda.ByCreation))
		before := d.clock.Now()
		got := d.pages(oda.Query{Kind: oda.SBDefinition, Order: oda.ByCreation, Before: &before}, 4, func() {
			d.mustUpdate(sbd("s29"), "")
			d.mustUpdate(sbd("s00"), "")
		})
		same(t, "the pages", got, want)
	}},
}

// pagingInside need an engine itself.
var pagingInside = []scenario{
	{"a page begins after its place, whether or not an entity is there", func(t *testing.T, d *desk) {
		d.clock.Set(1000, 0)
		for _, id := range []string{"b", "d"} {
			d.mustPut(sbd(id), `{}`)
		}
		for _, order := range []oda.Order{oda.ByCreation, oda.ByModification} {
			for _, test := range []struct {
				start oda.Place
				want  []string
			}{
				{oda.Place{At: 999, ID: "z"}, []string{"b", "d"}},
				{oda.Place{At: 1000, ID: "a"}, []string{"b", "d"}},
				{oda.Place{At: 1000, ID: "b"}, []string{"d"}},
				{oda.Place{At: 1000, ID: "c"}, []string{"d"}},
				{oda.Place{At: 1000, ID: "d"}, []string{}},
				{oda.Place{At: 1001, ID: "a"}, []string{}},
			} {
				q := oda.Query{Kind: oda.SBDefinition, Order: order, Start: &test.start}
				same(t, fmt.Sprintf("after %+v", test.start), d.list(q), test.want)
				from := oda.Instant(1000) // a place does not widen a range
				q.After = &from
				same(t, fmt.Sprintf("after %+v in a range", test.start), d.list(q), test.want)
			}
		}
	}},
}
