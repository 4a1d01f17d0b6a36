package sqlite

import (
	"testing"

	"oda"
	"oda/internal/test/must"
	"oda/internal/test/suite"
)

// The second time, a past state comes from memory: nothing is read from the file. New
// versions change nothing about it.
func TestAPastStateIsFoundInMemory(t *testing.T) {
	s := fresh(t)
	const second = 1_000_000
	ref := oda.Ref{Kind: oda.SBDefinition, ID: "sbd-1"}
	store := func(n int64, text string) string {
		entities := must.Get(s.Put(t.Context(), []oda.Put{suite.Put(suite.Document(t, ref.Kind, text), ref.ID, "anna", oda.Instant(n*second))}))(t)
		return suite.Render(t, entities[0])
	}
	texts := []string{store(1, `{}`)}
	for n := int64(2); n <= 100; n++ {
		texts = append(texts, store(n, texts[n-2]))
	}
	check := func(round string) {
		for n := range texts[:99] {
			e, err := s.AsOf(t.Context(), ref, oda.Instant((n+1)*second+second/2))
			if err != nil {
				t.Fatal(round, err)
			}
			if got := suite.Render(t, e); got != texts[n] || !e.Superseded {
				t.Fatalf("%s: the state at second %d is %s, want %s", round, n+1, got, texts[n])
			}
		}
	}
	check("from the file")
	store(101, texts[99])
	taken := takeAll(t, s)
	check("from memory")
	for _, c := range taken {
		s.readers.give(c)
	}
	for _, at := range []oda.Instant{second - 1, 0} {
		if _, err := s.AsOf(t.Context(), ref, at); oda.CodeOf(err) != oda.NotFound {
			t.Errorf("before the first version: %v", err)
		}
	}
}
