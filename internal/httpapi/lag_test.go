package httpapi

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"oda/internal/admission"
)

func TestWhatARecorderSaysAboutItsLag(t *testing.T) {
	for text, want := range map[string]lag{
		"records=0, seconds=0":                           {0, 0},
		"records=12, seconds=3.5":                        {12, 3.5},
		"records=12,seconds=3":                           {12, 3},
		"records=1000000000000, seconds=1e3":             {-1, 0}, // no exponents
		"records=1000000000001, seconds=0":               {-1, 0},
		"records=1, seconds=1000000001":                  {-1, 0},
		"records=-1, seconds=0":                          {-1, 0},
		"records=1, seconds=-1":                          {-1, 0},
		"records=1, seconds=NaN":                         {-1, 0},
		"records=1, seconds=Inf":                         {-1, 0},
		"records=1, seconds=":                            {-1, 0},
		"records=1":                                      {-1, 0},
		"seconds=1, records=1":                           {-1, 0},
		"records=1, seconds=1, more=1":                   {-1, 0},
		"12, 3.5":                                        {-1, 0},
		"records=1, seconds=1" + strings.Repeat("0", 64): {-1, 0},
	} {
		if got, ok := parseLag(text); ok != (want.records >= 0) || ok && got != want {
			t.Errorf("%q is read as %+v, %v", text, got, ok)
		}
	}
}

// Of each block the last word counts, for a while, and there is a bound on how many are
// remembered.
func TestRecordersAreRememberedForAWhile(t *testing.T) {
	var r recorders
	now := time.Now()
	r.note("a", lag{100, 60}, now)
	r.note("a", lag{10, 6}, now.Add(time.Second))
	r.note("b", lag{1, 30}, now.Add(lagTime/2))
	if got := r.stats(now.Add(lagTime / 2)); got != (admission.Recorders{Blocks: 2, Records: 11, Seconds: 30}) {
		t.Errorf("got %+v", got)
	}
	if got := r.stats(now.Add(lagTime + 2*time.Second)); got != (admission.Recorders{Blocks: 1, Records: 1, Seconds: 30}) {
		t.Errorf("after a while: %+v", got)
	}
	later := now.Add(lagTime)
	for i := range 2 * lagBlocks {
		r.note(fmt.Sprint(i), lag{1, 1}, later)
	}
	if n := len(r.blocks); n > lagBlocks {
		t.Errorf("%d blocks are remembered", n)
	}
	r.note("new", lag{7, 7}, later.Add(2*lagTime)) // the others are forgotten for it
	if got := r.stats(later.Add(2 * lagTime)); got != (admission.Recorders{Blocks: 1, Records: 7, Seconds: 7}) {
		t.Errorf("got %+v", got)
	}
}
