package postgres_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"oda"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// Records change the order of their blocks, and the index lags behind. Listings do
// not show that: as a whole, in part and page by page they are in order and have
// each block once.
func TestAListingByModificationIsInOrderAlthoughItsIndexLags(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	s, random := open(t, dsn), rand.New(rand.NewPCG(1, 2))
	const blocks, base = 400, oda.Instant(1_800_000_000_000_000)
	modified := map[string]oda.Instant{}
	for i := range blocks {
		put := write(t, block(fmt.Sprintf("b-%03d", random.IntN(1000)*1000+i)), `{}`)
		put.At = base + oda.Instant(random.IntN(50_000))
		modified[put.ID] = mustPut(t, s, put).Metadata.LastModifiedOn
	}
	for id := range modified {
		// Most changes stay within the lag, some do not. Some blocks change several
		// times.
		for range random.IntN(4) {
			add := adding(id, "x", "")
			add.At = base + oda.Instant(random.IntN(200_000))
			r := must.Get(one(context.Background(), s, add))(t)
			modified[id] = r.Metadata.LastModifiedOn
		}
	}
	var all []oda.Place
	for id, at := range modified {
		all = append(all, oda.Place{At: at, ID: id})
	}
	slices.SortFunc(all, func(a, b oda.Place) int { return cmp.Or(cmp.Compare(a.At, b.At), strings.Compare(a.ID, b.ID)) })

	// The test proves nothing if the index does not lag.
	if n := query[int](t, connect(t, dsn), "SELECT count(*) FROM heads WHERE listed_on < last_modified_on"); n < blocks/4 {
		t.Fatalf("only %d heads are listed under an earlier instant", n)
	}
	list := func(q oda.Query) []oda.Place {
		t.Helper()
		q.Kind, q.Order = oda.ExecutionBlock, oda.ByModification
		var got []oda.Place
		err := s.List(context.Background(), q, func(id string, at oda.Instant) error {
			got = append(got, oda.Place{At: at, ID: id})
			return nil
		})
		must.Do(t, err)
		return got
	}
	if got := list(oda.Query{}); !slices.Equal(got, all) {
		t.Errorf("the whole listing has %d of %d, or is not in order", len(got), len(all))
	}
	for range 50 {
		first, last := random.IntN(len(all)), random.IntN(len(all))
		after, before := all[first].At, all[last].At
		var want []oda.Place
		for _, p := range all {
			if after <= p.At && p.At <= before {
				want = append(want, p)
			}
		}
		if got := list(oda.Query{After: &after, Before: &before}); !slices.Equal(got, want) {
			t.Errorf("from %d to %d: %d, want %d", after, before, len(got), len(want))
		}
	}
	for _, limit := range []int{1, 7, 150, blocks, blocks + 1} {
		var got []oda.Place
		for page := []oda.Place{{}}; len(page) > 0; got = append(got, page...) {
			q := oda.Query{Limit: limit}
			if len(got) > 0 {
				q.Start = &got[len(got)-1]
			}
			if page = list(q); len(page) > limit {
				t.Fatalf("a page of %d has %d", limit, len(page))
			}
		}
		if !slices.Equal(got, all) {
			t.Errorf("pages of %d have %d of %d, or are not in order", limit, len(got), len(all))
		}
	}
}
