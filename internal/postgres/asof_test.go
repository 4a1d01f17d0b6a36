package postgres_test

import (
	"slices"
	"testing"

	"oda"
	"oda/internal/test/env"
	"oda/internal/test/must"
	"oda/internal/test/suite"
)

// Where a record is missing, the states around it may be lost. To answer with another
// state would be to answer wrongly. Every sixty-fourth record is a mark.
func TestAStateAtAMissingRecordIsLost(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	s := open(t, dsn)
	const records, second = 200, 1_000_000
	mustPut(t, s, suite.Put(suite.Document(t, oda.ExecutionBlock, `{"request_responses":[]}`), "b", "anna", second/2))
	for i := range records {
		add := adding("b", "r", "")
		add.At = oda.Instant(i+1) * second
		must.Get(one(t.Context(), s, add))(t)
	}
	lost := func() (states []int) {
		for i := range records + 1 {
			e, err := s.AsOf(t.Context(), block("b"), oda.Instant(i)*second+second/2)
			switch {
			case oda.CodeOf(err) == oda.DamagedText:
				states = append(states, i)
			case err != nil:
				t.Fatal(err)
			case e.Metadata.LastModifiedOn != max(oda.Instant(i)*second, second/2):
				t.Errorf("the state after %d records is that of %v", i, e.Metadata.LastModifiedOn)
			}
		}
		return states
	}
	if got := lost(); got != nil {
		t.Fatalf("of a whole block, the states %v are lost", got)
	}
	do(t, connect(t, dsn), "DELETE FROM records WHERE sequence IN (70, 128, 200)")
	got := lost()
	for _, i := range []int{69, 70, 127, 128, 199, 200} {
		if !slices.Contains(got, i) {
			t.Errorf("the state after %d records is not reported as lost; %v are", i, got)
		}
	}
	if len(got) > 6+64 { // without a mark, its followers cannot be found
		t.Errorf("%d states are reported as lost: %v", len(got), got)
	}
}
