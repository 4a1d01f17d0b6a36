package engine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"oda"
	"oda/internal/engine"
)

func TestPartsLeadFromTheFirstCallOfADayToTheirEnd(t *testing.T) {
	for _, test := range []struct {
		firsts []int64
		want   engine.Runs
	}{
		{nil, nil},
		{[]int64{1}, engine.Runs{{First: 1, Last: 4096}}},
		{[]int64{4096}, engine.Runs{{First: 4096, Last: 4096}}},
		{[]int64{300, 20, 4000}, engine.Runs{{First: 20, Last: 4096}}},
		{[]int64{4097, 5000, 7}, engine.Runs{{First: 7, Last: 8192}}},
		{[]int64{9000, 7}, engine.Runs{{First: 7, Last: 4096}, {First: 9000, Last: 12288}}},
	} {
		if diff := cmp.Diff(test.want, engine.Parts(test.firsts)); diff != "" {
			t.Errorf("%v (- wanted, + got):\n%s", test.firsts, diff)
		}
	}
}

func TestRunsWithinOthers(t *testing.T) {
	others := engine.Runs{{First: 10, Last: 20}, {First: 30, Last: 40}}
	for _, test := range []struct{ runs, want engine.Runs }{
		{nil, nil},
		{engine.Runs{{First: 1, Last: 9}, {First: 41, Last: 50}}, nil},
		{engine.Runs{{First: 1, Last: 100}}, others},
		{
			engine.Runs{{First: 35, Last: 35}, {First: 1, Last: 12}, {First: 14, Last: 30}},
			engine.Runs{{First: 10, Last: 12}, {First: 14, Last: 20}, {First: 30, Last: 30}, {First: 35, Last: 35}},
		},
	} {
		if diff := cmp.Diff(test.want, test.runs.Within(others)); diff != "" {
			t.Errorf("%v (- wanted, + got):\n%s", test.runs, diff)
		}
	}
}

func TestASpanHasAllRecordsOfADay(t *testing.T) {
	for _, test := range []struct {
		days []oda.Day
		want []engine.DaySpan
	}{
		{nil, nil},
		{[]oda.Day{3}, []engine.DaySpan{{First: 0, Last: 0, Day: 3}}},
		{[]oda.Day{3, 3, 4, 4, 3, 5}, []engine.DaySpan{{First: 0, Last: 4, Day: 3}, {First: 2, Last: 3, Day: 4}, {First: 5, Last: 5, Day: 5}}},
		{[]oda.Day{4, oda.DayOfRecording, 3}, []engine.DaySpan{{First: 0, Last: 0, Day: 4}, {First: 0, Last: 1, Day: oda.DayOfRecording}, {First: 0, Last: 2, Day: 3}}},
	} {
		var keys []oda.CallKeys
		for _, day := range test.days {
			keys = append(keys, oda.CallKeys{Day: day})
		}
		if diff := cmp.Diff(test.want, engine.DaySpans(keys)); diff != "" {
			t.Errorf("%v (- wanted, + got):\n%s", test.days, diff)
		}
	}
}
