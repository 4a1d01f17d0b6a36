package engine_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"oda"
	"oda/internal/engine"
)

// bytesOf returns each text as bytes.
func bytesOf(texts []string) [][]byte {
	out := make([][]byte, len(texts))
	for i, text := range texts {
		out[i] = []byte(text)
	}
	return out
}

// listOf returns a list of records.
func listOf(texts []string) []engine.Listed { return engine.List(bytesOf(texts)) }

// share compares listed records with stored ones that are numbered from first.
func share(t interface{ Fatalf(string, ...any) }, first int64, stored, listed []string) engine.Sharing {
	sharing, err := engine.Share(listOf(listed), func(yield func(engine.Numbered, error) bool) {
		for i, text := range stored {
			if !yield(engine.Numbered{Sequence: first + int64(i), Digest: oda.DigestOf([]byte(text))}, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatalf("share: %v", err)
	}
	return sharing
}

func TestStoredRecordsAreShared(t *testing.T) {
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
		{"one inserted", "abc", "xabc", []int64{0, 11, 12, 13}},
		{"another order", "abc", "cba", []int64{13, 12, 11}},
		{"equal ones, in their order", "aab", "aba", []int64{11, 13, 12}},
		{"an equal one more", "ab", "aab", []int64{11, 0, 12}},
		{"an equal one less", "aab", "ab", []int64{11, 13}},
	}
	for _, test := range tests {
		got := share(t, 11, strings.Split(test.stored, ""), strings.Split(test.listed, ""))
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}

// A shared record has the bytes that were sent, and no stored record is used
// twice.
func TestSharingNeverChangesARecord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.SliceOf(rapid.SampledFrom([]string{"a", "b", "c", "d", "a "}))
		before, after := letters.Draw(t, "stored"), letters.Draw(t, "listed")
		used := map[int64]bool{}
		left := map[string]int{}
		for _, text := range before {
			left[text]++
		}
		for i, sequence := range share(t, 1, before, after) {
			if left[after[i]]--; (left[after[i]] >= 0) != (sequence != 0) {
				t.Fatalf("record %d: shared is %v", i, sequence != 0)
			}
			if sequence == 0 {
				continue
			}
			if used[sequence] || before[sequence-1] != after[i] {
				t.Fatalf("record %d of %q is shared with %d of %q", i, after, sequence, before)
			}
			used[sequence] = true
		}
	})
}

func TestUnreadableRecordsDoNotCountAsNew(t *testing.T) {
	lost := errors.New("the disk is gone")
	_, err := engine.Share(listOf([]string{"a"}), func(yield func(engine.Numbered, error) bool) { yield(engine.Numbered{}, lost) })
	if !errors.Is(err, lost) {
		t.Errorf("got %v", err)
	}
}

func TestNewRecordsAreNumberedAfterTheLast(t *testing.T) {
	list := listOf([]string{"a", "new", "b", "newer"})
	runs, fresh := engine.Sharing{1, 0, 2, 0}.Number(list, 7)
	if want := (engine.Runs{{First: 1, Last: 1}, {First: 8, Last: 8}, {First: 2, Last: 2}, {First: 9, Last: 9}}); !slices.Equal(runs, want) {
		t.Errorf("the runs are %v, want %v", runs, want)
	}
	if len(fresh) != 2 || string(fresh[0].Text) != "new" || string(fresh[1].Text) != "newer" {
		t.Errorf("%v must be written", fresh)
	}
	runs, fresh = engine.Sharing(nil).Number(list, 7)
	if want := (engine.Runs{{First: 8, Last: 11}}); !slices.Equal(runs, want) || len(fresh) != 4 {
		t.Errorf("if nothing is shared, the runs are %v and %d are written", runs, len(fresh))
	}
	if runs, _ := engine.Sharing(nil).Number(nil, 7); runs == nil {
		t.Error("an empty list became no list")
	}
}
