package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestJudgeFindsWhatIsLostOrDuplicated(t *testing.T) {
	written := []entry{{"a", 1}, {"b", 2}, {"c", 3}}
	for name, test := range map[string]struct {
		found []string
		want  verdict
	}{
		"everything in its place":            {[]string{"a", "b", "c"}, verdict{}},
		"the last one gone":                  {[]string{"a", "b"}, verdict{lost: 1}},
		"all gone":                           {nil, verdict{lost: 3}},
		"one in the place of another":        {[]string{"a", "x", "c"}, verdict{lost: 1, uncounted: 1}},
		"one moved":                          {[]string{"a", "x", "b", "c"}, verdict{lost: 2, uncounted: 1}},
		"one there twice":                    {[]string{"a", "b", "c", "b"}, verdict{duplicated: 1}},
		"one there three times counts once":  {[]string{"a", "b", "c", "b", "b"}, verdict{duplicated: 1}},
		"one more that nobody was answered":  {[]string{"a", "b", "c", "d"}, verdict{uncounted: 1}},
		"one of these there twice, the rest": {[]string{"a", "b", "c", "d", "d"}, verdict{duplicated: 1, uncounted: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var v verdict
			v.judge("eb-1", written, test.found)
			got := verdict{lost: v.lost, duplicated: v.duplicated, uncounted: v.uncounted}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(verdict{})); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
			if len(v.examples) != v.lost+v.duplicated {
				t.Errorf("examples: %q", v.examples)
			}
		})
	}
}

func TestPlaceZeroIsNoPlace(t *testing.T) {
	var v verdict
	v.judge("eb-1", []entry{{"a", 0}}, []string{"a"})
	if v.lost != 1 {
		t.Errorf("lost %d, want 1", v.lost)
	}
}

func TestWhatWasReadMustStayThere(t *testing.T) {
	for name, test := range map[string]struct {
		seen entry
		want int
	}{
		"it is there":                      {entry{"b", 2}, 0},
		"another is in its place":          {entry{"x", 2}, 1},
		"nothing is in its place":          {entry{"c", 3}, 1},
		"it had no place when it was read": {entry{"b", 0}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var v verdict
			v.reread("sbd-1", map[entry]bool{test.seen: true}, []string{"a", "b"})
			if v.vanished != test.want {
				t.Errorf("vanished %d, want %d", v.vanished, test.want)
			}
		})
	}
}
