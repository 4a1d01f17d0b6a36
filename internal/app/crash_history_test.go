package app_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// history is what one writer knows of its writes, each of which has a marker of
// its own. A write without a key whose answer was lost may be stored or not,
// and is not sent again. A write with a key is sent again until it is answered.
type history struct {
	name  string
	keyed bool
	last  int
	acked []string
	open  bool // the last one was begun and not answered
}

// begin gives the marker of the next write.
func (h *history) begin() string {
	if !h.keyed || !h.open {
		h.last++
	}
	h.open = true
	return h.marker(h.last)
}

// acknowledge notes that the last write was answered.
func (h *history) acknowledge() {
	h.acked = append(h.acked, h.marker(h.last))
	h.open = false
}

func (h *history) marker(n int) string { return h.name + "." + strconv.Itoa(n) }

// all gives the markers of all writes that were begun.
func (h *history) all() []string {
	all := make([]string, h.last)
	for i := range all {
		all[i] = h.marker(i + 1)
	}
	return all
}

// check complains about what is stored: the markers of all writers, in order.
func (h *history) check(stored []string) []string {
	var complaints []string
	seen := make(map[string]bool)
	before := 0
	for _, marker := range stored {
		digits, own := strings.CutPrefix(marker, h.name+".")
		if !own {
			continue
		}
		n, err := strconv.Atoi(digits)
		switch {
		case err != nil || n < 1 || n > h.last:
			complaints = append(complaints, fmt.Sprintf("%s: %s was never sent", h.name, marker))
		case seen[marker]:
			complaints = append(complaints, fmt.Sprintf("%s: %s is stored twice", h.name, marker))
		case n < before:
			complaints = append(complaints, fmt.Sprintf("%s: %s stands after %s", h.name, marker, h.marker(before)))
		}
		seen[marker] = true
		before = max(before, n)
	}
	for _, marker := range h.acked {
		if !seen[marker] {
			complaints = append(complaints, fmt.Sprintf("%s: %s was acknowledged and is lost", h.name, marker))
		}
	}
	return complaints
}

// A judge that finds nothing is worth nothing if it would find nothing anyway.
func TestTheCrashTestNoticesWhatMustNotHappen(t *testing.T) {
	sent := &history{name: "w", last: 4, acked: []string{"w.1", "w.2", "w.4"}}
	for about, test := range map[string]struct {
		stored []string
		want   string
	}{
		"all that was acknowledged":            {[]string{"w.1", "x.9", "w.2", "w.4"}, ""},
		"the unanswered one as well":           {[]string{"w.1", "w.2", "x.9", "w.3", "w.4"}, ""},
		"one that is lost":                     {[]string{"w.1", "w.4"}, "w: w.2 was acknowledged and is lost"},
		"one that is there twice":              {[]string{"w.1", "w.2", "w.2", "w.4"}, "w: w.2 is stored twice"},
		"one that is there twice, unanswered":  {[]string{"w.1", "w.2", "w.3", "w.3", "w.4"}, "w: w.3 is stored twice"},
		"two that have changed places":         {[]string{"w.2", "w.1", "w.4"}, "w: w.1 stands after w.2"},
		"one that came from nowhere":           {[]string{"w.1", "w.2", "w.4", "w.5"}, "w: w.5 was never sent"},
		"nothing at all of another's, but own": {[]string{"x.1"}, "w: w.1 was acknowledged and is lost"},
	} {
		got := sent.check(test.stored)
		if test.want == "" && len(got) > 0 || test.want != "" && !slices.Contains(got, test.want) {
			t.Errorf("%s: got %q, want %q", about, got, test.want)
		}
	}

	link := &chain{ids: []string{"a", "b"}, acked: 7, tried: 8}
	for about, test := range map[string]struct {
		states []state
		fine   bool
	}{
		"the acknowledged round":       {[]state{{Round: 7}, {Round: 7}}, true},
		"the round that was under way": {[]state{{Round: 8}, {Round: 8}}, true},
		"a part of it":                 {[]state{{Round: 8}, {Round: 7}}, false},
		"an earlier one":               {[]state{{Round: 6}, {Round: 6}}, false},
		"one that was never sent":      {[]state{{Round: 9}, {Round: 9}}, false},
	} {
		for i := range test.states {
			test.states[i].Metadata.Version = test.states[i].Round
		}
		if got := link.check(test.states); (len(got) == 0) != test.fine {
			t.Errorf("%s: got %q", about, got)
		}
	}
}
