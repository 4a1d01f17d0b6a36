package client_test

import (
	"fmt"
	"slices"
	"testing"

	"oda"
	"oda/internal/test/must"
)

// everything returns a query that all entities of a kind match.
func everything(kind oda.Kind) oda.Query {
	return oda.Query{Kind: kind, Order: oda.ByCreation, After: new(oda.Instant)}
}

func TestAnInvalidQueryIsRefused(t *testing.T) {
	t.Parallel()
	c := start(t)
	for query, code := range map[oda.Query]oda.Code{
		{}:                                     oda.InvalidQuery,
		{User: "ada", Limit: oda.MaxLimit + 1}: oda.InvalidRequest,
	} {
		query.Kind = oda.SBDefinition
		n := 0
		for id, err := range c.List(t.Context(), query) {
			n++
			refused(t, err, code, 400)
			if id != "" {
				t.Errorf("the error comes with %q", id)
			}
		}
		if n != 1 {
			t.Errorf("%+v: it yielded %d times after the error", query, n)
		}
	}
}

func TestALongListIsCompleteInOneAnswerAndInPages(t *testing.T) {
	t.Parallel()
	c := start(t)
	var want []string
	for i := range 30 {
		body := []byte(`{"sbis":[`)
		for j := range 100 {
			if j > 0 {
				body = append(body, ',')
			}
			id := fmt.Sprintf("sbi-%d-%d", i, j)
			want = append(want, id)
			body = fmt.Appendf(body, `{"sbi_id":%q}`, id)
		}
		must.Get(c.StoreSeveral(t.Context(), append(body, "]}"...)))(t)
	}
	slices.Sort(want)
	for _, page := range []int{0, 7, 1000, 3000} {
		query := everything(oda.SBInstance)
		query.Limit = page
		got := collect(t, c.List(t.Context(), query))
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("by %d: %d identifiers, want %d", page, len(got), len(want))
		}
		for range c.List(t.Context(), query) { // a caller may stop early
			break
		}
	}
}
