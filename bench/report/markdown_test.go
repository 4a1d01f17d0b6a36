package report

import (
	"strings"
	"testing"

	"oda/bench/measure"
)

func TestBudgetIsJudgedByItsMedian(t *testing.T) {
	tests := []struct {
		name   string
		budget Budget
		want   bool
	}{
		{"above a floor", Budget{Limit: 0.6, Value: spreadOf(0.61, 0.5, 0.7)}, true},
		{"on a floor", Budget{Limit: 0.6, Value: spreadOf(0.6, 0.6, 0.6)}, true},
		{"below a floor", Budget{Limit: 0.6, Value: spreadOf(0.59, 0.5, 0.9)}, false},
		{"below a ceiling", Budget{Limit: 1.2, AtMost: true, Value: spreadOf(1.1, 0.9, 1.4)}, true},
		{"above a ceiling", Budget{Limit: 1.2, AtMost: true, Value: spreadOf(1.3, 0.9, 1.4)}, false},
		{"not measured, with a ceiling", Budget{Limit: 1.2, AtMost: true}, false},
		{"infinite", Budget{Limit: 1.2, Value: measure.Spread{Median: inf}}, false},
		{"not a number", Budget{Limit: 1.2, AtMost: true, Value: measure.Spread{Median: nan}}, false},
	}
	for _, test := range tests {
		if got := test.budget.Met(); got != test.want {
			t.Errorf("%s: met is %t", test.name, got)
		}
	}
}

func TestPageSaysWhatAReaderMustNotMiss(t *testing.T) {
	quick := sample()
	quick.Quick = true
	tests := []struct {
		name   string
		result *Result
		want   string
	}{
		{"how many budgets are met", sample(), "**8 of 10 budgets are met.**"},
		{"a budget that is met", sample(), "| GET one entity, 5 KB | SQLite | ≥ 0.6 of bare | 0.83 (0.79–0.88) | ✓ met |"},
		{"a budget that is not", sample(), "| **0.74 (0.62–1.08)** | ✗ **not met** |"},
		{"a budget that was not measured", sample(), "| ≤ 40 MiB |  | not measured |"},
		{"why a budget is not met", sample(), "≥ 1 of pgbench*: Two cores are shared"},
		{"that the run was quick", quick, "**A quick run.**"},
		{"that requests failed", sample(), "2 operations failed; the first: `status 503, expected 200`"},
		{"a cell with a bar in it", sample(), `| oda, SQLite \| WAL |`},
		{"the machine", sample(), "Sample CPU at 2.5 GHz, 2 cores, 8.00 GiB of memory, Debian 12"},
		{"the versions of peers in order", sample(), "| Kinto | 19.0.0 |\n| PocketBase | v0.30.0 |"},
		{"nothing but the machine", &Result{}, "## How to repeat it"},
	}
	for _, test := range tests {
		if got := page(test.result); !strings.Contains(got, test.want) {
			t.Errorf("%s: %q is not in\n%s", test.name, test.want, got)
		}
	}
	if strings.Contains(page(sample()), "quick run") {
		t.Error("a full run is called quick")
	}
}

func TestEveryLinkOfThePageLeadsSomewhere(t *testing.T) {
	text := page(sample())
	for _, part := range strings.Split(text, "](#")[1:] {
		anchor, _, _ := strings.Cut(part, ")")
		if !strings.Contains(text, `<a id="`+anchor+`"></a>`) {
			t.Errorf("there is no anchor for #%s", anchor)
		}
	}
}

func TestRoomIsAboveOneWhereTheBudgetIsMet(t *testing.T) {
	tests := []struct {
		name   string
		budget Budget
		value  float64
		want   float64
	}{
		{"half as much again as the floor", Budget{Limit: 2}, 3, 1.5},
		{"half of the floor", Budget{Limit: 2}, 1, 0.5},
		{"half of the ceiling", Budget{Limit: 2, AtMost: true}, 1, 2},
		{"twice the ceiling", Budget{Limit: 2, AtMost: true}, 4, 0.5},
		{"a cost of nothing", Budget{Limit: 2, AtMost: true}, 0, mostRoom},
		{"a cost below nothing", Budget{Limit: 2, AtMost: true}, -1, mostRoom},
	}
	for _, test := range tests {
		if got := test.budget.room(test.value); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
