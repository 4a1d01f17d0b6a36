package engine_test

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"oda"
	"oda/internal/engine"
)

func TestRecordsInARowAreOneRun(t *testing.T) {
	tests := []struct {
		name      string
		sequences []int64
		want      engine.Runs
	}{
		{"none", nil, nil},
		{"one", []int64{1}, engine.Runs{{First: 1, Last: 1}}},
		{"in a row", []int64{1, 2, 3}, engine.Runs{{First: 1, Last: 3}}},
		{"with a gap", []int64{1, 2, 4}, engine.Runs{{First: 1, Last: 2}, {First: 4, Last: 4}}},
		{"in another order", []int64{3, 1, 2}, engine.Runs{{First: 3, Last: 3}, {First: 1, Last: 2}}},
		{"backwards", []int64{2, 1}, engine.Runs{{First: 2, Last: 2}, {First: 1, Last: 1}}},
		{"twice", []int64{5, 5}, engine.Runs{{First: 5, Last: 5}, {First: 5, Last: 5}}},
	}
	for _, test := range tests {
		var runs engine.Runs
		for _, s := range test.sequences {
			runs = runs.Add(s)
		}
		if diff := cmp.Diff(test.want, runs); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
		if got := runs.Count(); got != int64(len(test.sequences)) {
			t.Errorf("%s: count %d", test.name, got)
		}
	}
}

func TestRunsAreAppended(t *testing.T) {
	base := engine.Runs{{First: 1, Last: 2}}
	tests := []struct {
		name        string
		runs        engine.Runs
		first, last int64
		want        engine.Runs
	}{
		{"to nothing", nil, 4, 6, engine.Runs{{First: 4, Last: 6}}},
		{"next to the last", base, 3, 5, engine.Runs{{First: 1, Last: 5}}},
		{"after a gap", base, 4, 4, engine.Runs{{First: 1, Last: 2}, {First: 4, Last: 4}}},
		{"empty", base, 3, 2, base},
		{"empty, to nothing", nil, 1, 0, nil},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, slices.Clone(test.runs).AddRun(test.first, test.last)); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}

// sequencesOf returns all sequence numbers of the runs.
func sequencesOf(runs engine.Runs) []int64 {
	var all []int64
	for _, r := range runs {
		for s := r.First; s <= r.Last; s++ {
			all = append(all, s)
		}
	}
	return all
}

func TestRunsHoldWhatWasAdded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sequences := rapid.SliceOf(rapid.Int64Range(1, 40)).Draw(t, "sequences")
		first := rapid.Int64Range(1, 50).Draw(t, "first")
		last := rapid.Int64Range(0, 50).Draw(t, "last")
		var runs engine.Runs
		for _, s := range sequences {
			runs = runs.Add(s)
		}
		runs = runs.AddRun(first, last)
		for s := first; s <= last; s++ {
			sequences = append(sequences, s)
		}
		if got := sequencesOf(runs); !slices.Equal(got, sequences) {
			t.Fatalf("added %v, got %v", sequences, got)
		}
	})
}

func TestRunsWithoutTheFirstRecords(t *testing.T) {
	runs := engine.Runs{{First: 3, Last: 4}, {First: 1, Last: 1}}
	for n, want := range []engine.Runs{runs, {{First: 4, Last: 4}, {First: 1, Last: 1}}, {{First: 1, Last: 1}}, nil} {
		if got := runs.Skip(int64(n)); !slices.Equal(got, want) {
			t.Errorf("without %d: %v, want %v", n, got, want)
		}
	}
}

// Runs that no version can have, and missing versions, are damage.
func TestImpossibleRunsAreDamage(t *testing.T) {
	for name, test := range map[string]struct {
		stored      engine.Runs
		after, last int64
	}{
		"the first record is 0":           {engine.Runs{{First: 0, Last: 2}}, 2, 2},
		"a run goes backwards":            {engine.Runs{{First: 5, Last: 3}}, 5, 5},
		"a record that came later":        {engine.Runs{{First: 1, Last: 3}}, 2, 3},
		"a record comes twice":            {engine.Runs{{First: 1, Last: 2}, {First: 1, Last: 2}}, 3, 3},
		"so many that they overflow":      {engine.Runs{{First: 1, Last: math.MaxInt64}, {First: 1, Last: math.MaxInt64}}, math.MaxInt64, math.MaxInt64},
		"it ends before it begins":        {nil, 3, 2},
		"it begins before the first":      {nil, -3, 2},
		"the version is missing":          {nil, engine.Absent, 3},
		"the version after it is missing": {nil, 3, engine.Absent},
	} {
		if runs, err := (engine.Version{Ref: oda.Ref{Kind: oda.ExecutionBlock}}).Current(test.stored, test.after, test.last); oda.CodeOf(err) != oda.DamagedText {
			t.Errorf("%s: %v, %v", name, runs, err)
		}
	}
}

// Records that come later belong to the version. An empty list is not the same as
// no list.
func TestLaterRecordsBelongToTheVersion(t *testing.T) {
	for name, test := range map[string]struct {
		stored      engine.Runs
		after, last int64
		want        engine.Runs
	}{
		"no list, nothing recorded":        {nil, 3, 3, nil},
		"no list, two recorded":            {nil, 3, 5, engine.Runs{{First: 4, Last: 5}}},
		"an empty list, nothing recorded":  {engine.Runs{}, 0, 0, engine.Runs{}},
		"a list, nothing recorded":         {engine.Runs{{First: 1, Last: 2}}, 2, 2, engine.Runs{{First: 1, Last: 2}}},
		"a list, one recorded next to it":  {engine.Runs{{First: 1, Last: 2}}, 2, 3, engine.Runs{{First: 1, Last: 3}}},
		"a list, one recorded after a gap": {engine.Runs{{First: 1, Last: 1}}, 2, 3, engine.Runs{{First: 1, Last: 1}, {First: 3, Last: 3}}},
	} {
		got, err := engine.Version{}.Current(test.stored, test.after, test.last)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
