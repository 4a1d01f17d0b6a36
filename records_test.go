package oda_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"oda"
)

func TestRecordsInARowAreOneRun(t *testing.T) {
	tests := []struct {
		name      string
		sequences []int64
		want      oda.Runs
	}{
		{"none", nil, nil},
		{"one", []int64{1}, oda.Runs{{First: 1, Last: 1}}},
		{"in a row", []int64{1, 2, 3}, oda.Runs{{First: 1, Last: 3}}},
		{"with a gap", []int64{1, 2, 4}, oda.Runs{{First: 1, Last: 2}, {First: 4, Last: 4}}},
		{"in another order", []int64{3, 1, 2}, oda.Runs{{First: 3, Last: 3}, {First: 1, Last: 2}}},
		{"backwards", []int64{2, 1}, oda.Runs{{First: 2, Last: 2}, {First: 1, Last: 1}}},
		{"twice", []int64{5, 5}, oda.Runs{{First: 5, Last: 5}, {First: 5, Last: 5}}},
	}
	for _, test := range tests {
		var runs oda.Runs
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
	base := oda.Runs{{First: 1, Last: 2}}
	tests := []struct {
		name        string
		runs        oda.Runs
		first, last int64
		want        oda.Runs
	}{
		{"to nothing", nil, 4, 6, oda.Runs{{First: 4, Last: 6}}},
		{"next to the last", base, 3, 5, oda.Runs{{First: 1, Last: 5}}},
		{"behind a gap", base, 4, 4, oda.Runs{{First: 1, Last: 2}, {First: 4, Last: 4}}},
		{"empty", base, 3, 2, base},
		{"empty, to nothing", nil, 1, 0, nil},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, slices.Clone(test.runs).AddRun(test.first, test.last)); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}

// sequencesOf writes runs out, the long way.
func sequencesOf(runs oda.Runs) []int64 {
	var all []int64
	for _, r := range runs {
		for s := r.First; s <= r.Last; s++ {
			all = append(all, s)
		}
	}
	return all
}

func TestRunsHoldWhatWasAddedAndSurviveKeeping(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sequences := rapid.SliceOf(rapid.Int64Range(1, 40)).Draw(t, "sequences")
		first := rapid.Int64Range(1, 50).Draw(t, "first")
		last := rapid.Int64Range(0, 50).Draw(t, "last")
		var runs oda.Runs
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
		again, err := oda.DecodeRuns(runs.Encode())
		if err != nil || !slices.Equal(again, runs) {
			t.Fatalf("kept %v, read %v, %v", runs, again, err)
		}
	})
}

// An empty list of records is not the same as no list, so it must survive.
func TestNoRunsAreKeptAsAnEmptyList(t *testing.T) {
	if packed := (oda.Runs{}).Encode(); packed == nil {
		t.Error("an empty list is kept as nothing")
	}
	if runs, err := oda.DecodeRuns([]byte{}); err != nil || runs == nil || runs.Count() != 0 {
		t.Errorf("got %v, %v", runs, err)
	}
}

func TestDamagedRunsAreRefused(t *testing.T) {
	packed := func(numbers ...uint64) []byte {
		var out []byte
		for _, n := range numbers {
			out = binary.AppendUvarint(out, n)
		}
		return out
	}
	for name, damaged := range map[string][]byte{
		"half a run":                 packed(1),
		"half a number":              {1, 0x80},
		"half a first number":        {0x80},
		"a sequence of 0":            packed(0, 3),
		"behind all numbers":         packed(1, 1<<63),
		"a first behind all numbers": packed(1<<63, 0),
		"a sum that wraps around":    packed(1<<63, 1<<63),
		"a sum that wraps, nearly":   packed(1<<64-1, 2),
		"a second run":               append(packed(1, 1), 0x80),
	} {
		if runs, err := oda.DecodeRuns(damaged); err == nil {
			t.Errorf("%s: got %v", name, runs)
		}
	}
}

func TestRecordsThatAreStoredAlreadyAreShared(t *testing.T) {
	tests := []struct {
		name, stored, listed string // one letter is one record
		want                 []int64
	}{
		{"nothing stored", "", "ab", []int64{0, 0}},
		{"nothing listed", "ab", "", []int64{}},
		{"unchanged", "abc", "abc", []int64{11, 12, 13}},
		{"one more", "abc", "abcd", []int64{11, 12, 13, 0}},
		{"one edited", "abc", "axc", []int64{11, 0, 13}},
		{"one dropped", "abc", "ac", []int64{11, 13}},
		{"one put in", "abc", "xabc", []int64{0, 11, 12, 13}},
		{"another order", "abc", "cba", []int64{13, 12, 11}},
		{"equal ones, in their order", "aab", "aba", []int64{11, 13, 12}},
		{"an equal one more", "ab", "aab", []int64{11, 0, 12}},
		{"an equal one less", "aab", "ab", []int64{11, 13}},
	}
	for _, test := range tests {
		var sharing oda.Sharing
		for i, c := range []byte(test.stored) {
			sharing.Stored(int64(11+i), []byte{'"', c, '"'})
		}
		var listed [][]byte
		for _, c := range []byte(test.listed) {
			listed = append(listed, []byte{'"', c, '"'})
		}
		if got := sharing.Plan(listed); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}

// A shared record has the bytes that were sent, and no stored record stands for
// two.
func TestSharingNeverChangesARecord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.SliceOf(rapid.SampledFrom([]string{"a", "b", "c", "d", "a "}))
		before, after := letters.Draw(t, "stored"), letters.Draw(t, "listed")
		var sharing oda.Sharing
		for i, text := range before {
			sharing.Stored(int64(i+1), []byte(text))
		}
		texts := make([][]byte, len(after))
		for i, text := range after {
			texts[i] = []byte(text)
		}
		used := map[int64]bool{}
		left := map[string]int{}
		for _, text := range before {
			left[text]++
		}
		for i, sequence := range sharing.Plan(texts) {
			if left[after[i]]--; (left[after[i]] >= 0) != (sequence != 0) {
				t.Fatalf("record %d: shared is %v", i, sequence != 0)
			}
			if sequence == 0 {
				continue
			}
			if used[sequence] || before[sequence-1] != after[i] {
				t.Fatalf("record %d of %q is taken for %d of %q", i, after, sequence, before)
			}
			used[sequence] = true
		}
	})
}

func TestTheFirstRecordsOfAnAnswerAreReadAhead(t *testing.T) {
	runs := oda.Runs{{First: 1, Last: 2}, {First: 7, Last: 7}, {First: 4, Last: 5}}
	text := func(sequence int64) string {
		return fmt.Sprint(sequence) + strings.Repeat("x", oda.AnswerAhead/3)
	}
	var read []string
	reader := func(name string) func(oda.Runs) oda.Texts {
		return func(runs oda.Runs) oda.Texts {
			return func(yield func([]byte, error) bool) {
				for _, run := range runs {
					for n := run.First; n <= run.Last; n++ {
						read = append(read, fmt.Sprint(name, n))
						if !yield([]byte(text(n)), nil) {
							return
						}
					}
				}
			}
		}
	}
	records, err := oda.Ahead(runs, reader("now "), reader("later "))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"now 1", "now 2", "now 7"}; !slices.Equal(read, want) {
		t.Errorf("read ahead: %v, want %v", read, want)
	}
	var got, want []string
	for r, err := range records {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(r))
	}
	for _, n := range []int64{1, 2, 7, 4, 5} {
		want = append(want, text(n))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d records were read, or others than there are", len(got))
	}
}

func TestRunsWithoutTheFirstRecords(t *testing.T) {
	runs := oda.Runs{{First: 3, Last: 4}, {First: 1, Last: 1}}
	for n, want := range []oda.Runs{runs, {{First: 4, Last: 4}, {First: 1, Last: 1}}, {{First: 1, Last: 1}}, nil} {
		if got := runs.Skip(int64(n)); !slices.Equal(got, want) {
			t.Errorf("without %d: %v, want %v", n, got, want)
		}
	}
}
