package report

import (
	"math"
	"slices"
	"testing"
)

func TestTicksAreRoundAndEncloseTheValues(t *testing.T) {
	tests := []struct {
		name   string
		values []float64
		log    bool
		want   []float64
	}{
		{"thousands", []float64{412, 52_100}, false, []float64{0, 20_000, 40_000, 60_000}},
		{"fractions", []float64{0.1, 0.83}, false, []float64{0, 0.2, 0.4, 0.6, 0.8, 1}},
		{"on a round number", []float64{5}, false, []float64{0, 1, 2, 3, 4, 5}},
		{"below zero", []float64{-3, 4}, false, []float64{-4, -2, 0, 2, 4}},
		{"all zero", []float64{0, 0}, false, []float64{0, 0.2, 0.4, 0.6, 0.8, 1}},
		{"nothing", nil, false, []float64{0, 0.2, 0.4, 0.6, 0.8, 1}},
		{"what cannot be drawn", []float64{nan, inf, 1e300, 5}, false, []float64{0, 1, 2, 3, 4, 5}},
		{"decades", []float64{3.2, 18_000}, true, []float64{10, 100, 1000, 10_000}},
		{"within a decade", []float64{1.2, 7}, true, []float64{1, 2, 5, 10}},
		{"small decades", []float64{0.0004, 1.2}, true, []float64{0.001, 0.01, 0.1, 1}},
		{"one value", []float64{3}, true, []float64{2, 5}},
		{"one round value", []float64{10}, true, []float64{5, 10, 20}},
		{"not above zero on a logarithmic axis", []float64{-1, 0, 10}, true, []float64{5, 10, 20}},
		{"nothing on a logarithmic axis", nil, true, []float64{0.5, 1, 2}},
		{"many decades", []float64{1e-9, 1e9}, true, []float64{1e-9, 1e-5, 1e-1, 1e3, 1e7}},
	}
	for _, test := range tests {
		a := niceAxis(test.values, test.log, 5)
		if !slices.Equal(a.ticks, test.want) {
			t.Errorf("%s: %v, want %v", test.name, a.ticks, test.want)
		}
		for _, v := range test.values {
			if a.shows(v) && (v < a.lo || v > a.hi) {
				t.Errorf("%s: %v lies outside %v to %v", test.name, v, a.lo, a.hi)
			}
		}
	}
}

func TestFewValuesAreTheirOwnTicks(t *testing.T) {
	tests := []struct {
		name   string
		values []float64
		log    bool
		want   []float64
	}{
		{"connections", []float64{64, 1, 16, 256, 1}, true, []float64{1, 16, 64, 256}},
		{"one", []float64{7}, true, []float64{7}},
		{"one zero", []float64{0}, false, []float64{0}},
		{"many", []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, false, []float64{2, 4, 6, 8, 10}},
		{"many over decades", []float64{1, 3, 10, 30, 100, 300, 1000, 3000, 10000}, true, []float64{1, 10, 100, 1000, 10000}},
	}
	for _, test := range tests {
		if a := tightAxis(test.values, test.log, 5); !slices.Equal(a.ticks, test.want) {
			t.Errorf("%s: %v, want %v", test.name, a.ticks, test.want)
		}
	}
}

func TestAnAxisAlwaysHasALength(t *testing.T) {
	odd := []float64{nan, inf, -inf, 0, -1, 1, 1e-300, 1e300, 1e18, -1e18, 1e-18, 4.9e-324, math.MaxFloat64, 3, 3.0000000001}
	for _, log := range []bool{false, true} {
		for _, a := range odd {
			for _, b := range odd {
				for _, made := range []axis{niceAxis([]float64{a, b}, log, 5), tightAxis([]float64{a, b}, log, 5)} {
					made.from, made.to = 0, 100
					for _, v := range []float64{a, b} {
						if at := made.at(v); made.shows(v) && !(at >= 0 && at <= 100.001) {
							t.Errorf("log %t, %v and %v: %v is drawn at %v", log, a, b, v, at)
						}
					}
					if len(made.ticks) > 33 {
						t.Errorf("log %t, %v and %v: %d ticks", log, a, b, len(made.ticks))
					}
				}
			}
		}
	}
}

func TestTickLabelsAreShort(t *testing.T) {
	tests := []struct {
		name  string
		ticks []float64
		unit  string
		log   bool
		want  []string
	}{
		{"small", []float64{0, 0.5, 1}, "", false, []string{"0", "0.5", "1"}},
		{"below ten thousand", []float64{0, 500, 1000}, "", false, []string{"0", "500", "1,000"}},
		{"thousands", []float64{0, 5000, 10_000}, "", false, []string{"0", "5K", "10K"}},
		{"millions", []float64{0, 500_000, 1_500_000}, "", false, []string{"0", "500K", "1.5M"}},
		{"records", []float64{10, 1000, 1e6}, "", true, []string{"10", "1K", "1M"}},
		{"times in one unit", []float64{0, 0.0005, 0.001, 0.0015}, "s", false, []string{"0", "0.5 ms", "1 ms", "1.5 ms"}},
		{"times in their own", []float64{0.0001, 0.01, 1}, "s", true, []string{"100 µs", "10 ms", "1 s"}},
		{"sizes", []float64{1024, 5 << 20}, "B", true, []string{"1 KiB", "5 MiB"}},
		{"factors", []float64{0.5, 1}, "×", true, []string{"0.5×", "1×"}},
		{"an odd value", []float64{0.123456789}, "", true, []string{"0.123"}},
	}
	for _, test := range tests {
		if got := tickLabels(test.ticks, test.unit, test.log); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
