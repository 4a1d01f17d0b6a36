package history

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// A check that finds nothing is worthless if it cannot find anything.
func TestJudgeFindsEveryFault(t *testing.T) {
	for about, test := range map[string]struct {
		found []string
		want  Verdict
	}{
		"everything in its place":              {[]string{"w.1", "w.2", "x.1"}, Verdict{}},
		"one that was not answered as well":    {[]string{"w.1", "w.2", "x.1", "w.3"}, Verdict{Unacknowledged: 1}},
		"the last one gone":                    {[]string{"w.1", "w.2"}, Verdict{Lost: 1}},
		"all gone":                             {nil, Verdict{Lost: 3}},
		"one in the place of another":          {[]string{"w.1", "x.2", "x.1"}, Verdict{Lost: 1, Unacknowledged: 1, Disordered: 1}},
		"one before the others":                {[]string{"x.2", "w.1", "w.2", "x.1"}, Verdict{Lost: 3, Unacknowledged: 1, Disordered: 1}},
		"two that have changed places":         {[]string{"w.2", "w.1", "x.1"}, Verdict{Lost: 2, Disordered: 1}},
		"one there twice":                      {[]string{"w.1", "w.2", "x.1", "w.2"}, Verdict{Twice: 1}},
		"one there three times counts once":    {[]string{"w.1", "w.2", "x.1", "w.2", "w.2"}, Verdict{Twice: 1}},
		"one there twice that was not told of": {[]string{"w.1", "w.2", "x.1", "w.3", "w.3"}, Verdict{Twice: 1, Unacknowledged: 1}},
		"a write that was never sent":          {[]string{"w.1", "w.2", "x.1", "w.4"}, Verdict{Unsent: 1, Unacknowledged: 1}},
		"one of somebody else":                 {[]string{"w.1", "w.2", "x.1", "y.1"}, Verdict{Unsent: 1, Unacknowledged: 1}},
		"something else":                       {[]string{"w.1", "w.2", "x.1", "w"}, Verdict{Unsent: 1, Unacknowledged: 1}},
	} {
		t.Run(about, func(t *testing.T) {
			var w Writes
			w.Begin("w", 3)
			w.Begin("x", 2)
			w.Acknowledge("w.1", 1)
			w.Acknowledge("w.2", 2)
			w.Acknowledge("x.1", 3)
			got := w.Judge("eb-1", test.found)
			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreFields(Verdict{}, "Faults")); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
			if faults := got.Lost + got.Twice + got.Disordered + got.Unsent; len(got.Faults) != faults {
				t.Errorf("%d faults in words: %q", faults, got.Faults)
			}
		})
	}
}

func TestPlaceZeroIsLost(t *testing.T) {
	var w Writes
	w.Acknowledge(w.Begin("a", 1), 0)
	if v := w.Judge("eb-1", []string{"a.1"}); v.Lost != 1 {
		t.Errorf("lost %d, want 1", v.Lost)
	}
}

func TestAWriteThatWasReadMustStay(t *testing.T) {
	for about, test := range map[string]struct {
		mark  string
		place int64
		want  int
	}{
		"it is there":                      {"w.2", 2, 0},
		"another is in its place":          {"x.1", 2, 1},
		"nothing is in its place":          {"w.3", 3, 1},
		"it had no place when it was read": {"w.2", 0, 1},
	} {
		t.Run(about, func(t *testing.T) {
			var w Writes
			w.Begin("w", 3)
			w.Read(test.mark, test.place)
			if v := w.Judge("sbd-1", []string{"w.1", "w.2"}); v.Vanished != test.want {
				t.Errorf("vanished %d, want %d", v.Vanished, test.want)
			}
		})
	}
}
