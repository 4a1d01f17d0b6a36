package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"oda"
	"oda/internal/engine"
)

func TestTheFirstRecordsOfAnAnswerAreReadAhead(t *testing.T) {
	runs := engine.Runs{{First: 1, Last: 2}, {First: 7, Last: 7}, {First: 4, Last: 5}}
	text := func(sequence int64) string {
		return fmt.Sprint(sequence) + strings.Repeat("x", oda.AnswerAhead/3)
	}
	var read []string
	reader := func(name string) func(engine.Runs) oda.Texts {
		return func(runs engine.Runs) oda.Texts {
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
	records, err := engine.Ahead(runs, reader("now "), reader("later "))
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
		t.Errorf("the %d records that were read are not the stored ones", len(got))
	}
}
