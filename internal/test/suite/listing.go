package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"oda"
)

// ids returns the identifiers of places.
func ids(places []oda.Place) []string {
	list := []string{}
	for _, p := range places {
		list = append(list, p.ID)
	}
	return list
}

// sorted sorts places in the order of a listing.
func sorted(places []oda.Place) []oda.Place {
	slices.SortFunc(places, func(a, b oda.Place) int {
		if a.At != b.At {
			return int(a.At - b.At)
		}
		return strings.Compare(a.ID, b.ID)
	})
	return places
}

// everything returns a query for all entities of a kind.
func everything(kind oda.Kind, order oda.Order) oda.Query { return oda.Query{Kind: kind, Order: order} }

var errStopped = errors.New("stopped here")

var listings = []scenario{
	{"by user: equals, starts with, contains, case-sensitive and without wildcards", func(t *testing.T, d *desk) {
		users := []string{
			"anna", "Anna", "ann", "annabel", "hanna", "x%y", "x_y", "xzy", "x%", "%", "_", "100%", "O'Brien", "o'brien",
			`back\slash`, `\`, `a\%b`, "ünïcode", "Ünïcode", "u\u0308nicode", "日本", "日本語", "😀 star", "*", "a*b", "[a-z]", `"quoted"`, "tab?",
		}
		for i, user := range users {
			d.as(user).mustPut(sbd(fmt.Sprintf("s%02d", i)), `{}`)
		}
		// Changing an entity does not change its creator.
		d.as("zoe").mustUpdate(sbd("s00"), "")
		wanted := append(slices.Clone(users), "a", "n", "A", "nn", "ü", "u", "\u0308", "本", "😀", "'", "zoe", "x", "anna ", "ANNA", "Ü")
		for match, holds := range map[oda.MatchType]func(user, want string) bool{
			oda.UserEquals:     func(user, want string) bool { return user == want },
			oda.UserStartsWith: strings.HasPrefix,
			oda.UserContains:   strings.Contains,
		} {
			for _, want := range wanted {
				expected := []string{}
				for i, user := range users {
					if holds(user, want) {
						expected = append(expected, fmt.Sprintf("s%02d", i))
					}
				}
				got := d.list(oda.Query{Kind: oda.SBDefinition, Order: oda.ByCreation, User: want, Match: match})
				same(t, fmt.Sprintf("the listing of %q (%d)", want, match), got, expected)
			}
		}
	}},
	{"by creation and by modification: bounds are inclusive, and either may be missing", func(t *testing.T, d *desk) {
		var created, modified []oda.Place
		for i := range 8 {
			at := oda.Instant(1000 * (1 + i/2)) // two at each instant
			d.clock.Set(at, 0)
			ref := sbd(fmt.Sprintf("s%d", 7-i))
			d.mustPut(ref, `{}`)
			created = append(created, oda.Place{At: at, ID: ref.ID})
		}
		for i := range 8 {
			at := oda.Instant(10_000 + 1000*(i/2))
			d.clock.Set(at, 0)
			ref := sbd(fmt.Sprintf("s%d", (i*3)%8))
			d.mustUpdate(ref, "")
			modified = append(modified, oda.Place{At: at, ID: ref.ID})
		}
		for order, places := range map[oda.Order][]oda.Place{oda.ByCreation: sorted(created), oda.ByModification: sorted(modified)} {
			var bounds []*oda.Instant
			bounds = append(bounds, nil)
			for _, p := range places {
				for _, delta := range []oda.Instant{-1, 0, 1} {
					at := p.At + delta
					bounds = append(bounds, &at)
				}
			}
			for _, after := range bounds {
				for _, before := range bounds {
					want := []oda.Place{}
					for _, p := range places {
						if (after == nil || p.At >= *after) && (before == nil || p.At <= *before) {
							want = append(want, p)
						}
					}
					got := d.list(oda.Query{Kind: oda.SBDefinition, Order: order, After: after, Before: before})
					same(t, "the listing", got, ids(want))
				}
			}
		}
	}},
	{"identifiers at one instant are in the order of their bytes", func(t *testing.T, d *desk) {
		names := []string{"b", "B", "a-1", "a.1", "a_1", "a1", "A1", "a", "10", "9", "Z", "z", "a-", "a0", "aZ", "aa"}
		d.clock.Set(5000, 0)
		for _, name := range names {
			d.mustPut(sbd(name), `{}`)
		}
		slices.Sort(names)
		for _, q := range []oda.Query{
			everything(oda.SBDefinition, oda.ByCreation), everything(oda.SBDefinition, oda.ByModification),
			{Kind: oda.SBDefinition, Order: oda.ByCreation, User: "anna", Match: oda.UserEquals},
			{Kind: oda.SBDefinition, Order: oda.ByCreation, User: "an", Match: oda.UserStartsWith},
			{Kind: oda.SBDefinition, Order: oda.ByCreation, User: "nn", Match: oda.UserContains},
		} {
			same(t, "the listing", d.list(q), names)
		}
	}},
	{"a listing has one kind, each entity once, at the time of its last record", func(t *testing.T, d *desk) {
		for _, kind := range oda.Kinds {
			for _, id := range []string{"a", "b", "c"} {
				d.mustPut(oda.Ref{Kind: kind, ID: kind.Prefix() + id}, `{}`)
			}
		}
		for range 3 {
			d.mustUpdate(eb("ebb"), "")
		}
		d.mustRecord("eba", call("one"))
		same(t, "by creation", d.list(everything(oda.ExecutionBlock, oda.ByCreation)), []string{"eba", "ebb", "ebc"})
		same(t, "by modification", d.list(everything(oda.ExecutionBlock, oda.ByModification)), []string{"ebc", "ebb", "eba"})
		same(t, "projects", d.list(everything(oda.Project, oda.ByModification)), []string{"prja", "prjb", "prjc"})
	}},
	{"an empty archive lists nothing", func(t *testing.T, d *desk) {
		for _, kind := range oda.Kinds {
			same(t, kind.String(), d.list(everything(kind, oda.ByCreation)), []string{})
		}
	}},
}

// listingsInside need an engine itself.
var listingsInside = []scenario{
	{"a user of bytes that no name has matches nobody", func(t *testing.T, d *desk) {
		d.mustPut(sbd("s"), `{}`)
		for _, want := range []string{"\x00", "anna\x00", "\xff"} {
			for _, match := range []oda.MatchType{oda.UserEquals, oda.UserStartsWith, oda.UserContains} {
				got := d.list(oda.Query{Kind: oda.SBDefinition, Order: oda.ByCreation, User: want, Match: match})
				same(t, fmt.Sprintf("the listing of %q (%d)", want, match), got, []string{})
			}
		}
	}},
	{"an error of the reader ends the listing and is passed on", func(t *testing.T, d *desk) {
		for i := range 10 {
			d.mustPut(sbd(fmt.Sprintf("s%d", i)), `{}`)
		}
		for _, stop := range []int{1, 5, 10} {
			n := 0
			err := d.engine.List(d.ctx, everything(oda.SBDefinition, oda.ByCreation), func(string, oda.Instant) error {
				if n++; n == stop {
					return errStopped
				}
				return nil
			})
			if !errors.Is(err, errStopped) || n != stop {
				t.Fatalf("got %v after %d", err, n)
			}
		}
		// The same holds if the reader leaves at that moment.
		ctx, cancel := context.WithCancel(d.ctx)
		defer cancel()
		err := d.engine.List(ctx, everything(oda.SBDefinition, oda.ByCreation), func(string, oda.Instant) error {
			cancel()
			return errStopped
		})
		if !errors.Is(err, errStopped) {
			t.Fatalf("got %v", err)
		}
		same(t, "the listing", len(d.list(everything(oda.SBDefinition, oda.ByCreation))), 10)
	}},
	{"a listing is one snapshot", func(t *testing.T, d *desk) {
		for i := range 50 {
			d.mustPut(sbd(fmt.Sprintf("s%02d", i)), `{}`)
		}
		for _, order := range []oda.Order{oda.ByCreation, oda.ByModification} {
			want := d.list(everything(oda.SBDefinition, order))
			got := []string{}
			err := d.engine.List(d.ctx, everything(oda.SBDefinition, order), func(id string, _ oda.Instant) error {
				got = append(got, id)
				if len(got)%10 == 1 { // later writes must not be seen
					d.mustPut(sbd(fmt.Sprintf("new-%d-%d", order, len(got))), `{}`)
					d.mustUpdate(sbd("s49"), "")
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			same(t, "the listing", got, want)
		}
	}},
	{"20,000 identifiers are listed in order, until the reader leaves", func(t *testing.T, d *desk) {
		const n = 20_000
		d.many(n)
		last, count := oda.Place{}, 0
		err := d.engine.List(d.ctx, everything(oda.SBDefinition, oda.ByCreation), func(id string, at oda.Instant) error {
			if at < last.At || at == last.At && id <= last.ID {
				return fmt.Errorf("%s at %s was listed after %+v", id, at, last)
			}
			last = oda.Place{At: at, ID: id}
			count++
			return nil
		})
		if err != nil || count != n {
			t.Fatalf("got %d identifiers, %v", count, err)
		}
		ctx, cancel := context.WithCancel(d.ctx)
		defer cancel()
		count = 0
		err = d.engine.List(ctx, everything(oda.SBDefinition, oda.ByModification), func(string, oda.Instant) error {
			if count++; count == 10 {
				cancel()
			}
			return nil
		})
		if !errors.Is(err, context.Canceled) || count == n {
			t.Fatalf("got %v after %d identifiers", err, count)
		}
		same(t, "the count", d.counts()[oda.SBDefinition], int64(n))
		same(t, "a listing afterwards", len(d.list(everything(oda.SBDefinition, oda.ByCreation))), n)
	}},
}

// many quickly stores n entities, some of them at the same instant.
func (d *desk) many(n int) {
	d.tb.Helper()
	body := Document(d.tb, oda.SBDefinition, `{}`)
	for i := 0; i < n; {
		var puts []oda.Put
		at := d.clock.Now()
		for ; i < n && len(puts) < 1000; i++ {
			puts = append(puts, Put(body, fmt.Sprintf("s%d", i), d.user, at+oda.Instant(i%100)))
		}
		if _, err := d.engine.Put(d.ctx, puts); err != nil {
			d.tb.Fatalf("store %d entities: %v", len(puts), err)
		}
	}
}
