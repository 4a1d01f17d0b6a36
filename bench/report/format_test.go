package report

import (
	"math"
	"testing"
	"time"

	"oda/bench/measure"
)

var (
	nan = math.NaN()
	inf = math.Inf(1)
)

func TestNumbersHaveThreeDigits(t *testing.T) {
	tests := map[float64]string{
		0: "0", 0.00012345: "0.000123", 0.0994: "0.0994", 0.09996: "0.10", 0.826: "0.83", 1: "1.00", 7.254: "7.25",
		9.996: "10.0", 48.23: "48.2", 99.96: "100", 512.4: "512", 999.7: "1,000", 48_213: "48,200",
		1_412_345: "1,410,000", 1e6: "1,000,000", -0.826: "-0.83", -48_213: "-48,200", inf: "–", -inf: "–",
	}
	for v, want := range tests {
		if got := Num(v); got != want {
			t.Errorf("Num(%v) = %q, want %q", v, got, want)
		}
	}
	if got := Num(nan); got != "–" {
		t.Errorf("Num(NaN) = %q", got)
	}
}

func TestDurationsHaveTheUnitThatFits(t *testing.T) {
	tests := map[time.Duration]string{
		0: "0 s", 812: "812 ns", 1500: "1.50 µs", 999_700: "1.00 ms", 1_234_567: "1.23 ms", 45_600 * time.Millisecond: "45.6 s",
		119 * time.Second: "119 s", 723 * time.Second: "12 min 3 s", -1500: "-1.50 µs",
	}
	for d, want := range tests {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%d) = %q, want %q", d, got, want)
		}
	}
}

func TestValuesHaveTheirUnit(t *testing.T) {
	tests := []struct {
		v    float64
		unit string
		want string
	}{
		{0.826, "", "0.83"},
		{0.0012, "s", "1.20 ms"},
		{25_480_397, "B", "24.3 MiB"},
		{512, "B", "512 B"},
		{48_213, "/s", "48,200 /s"},
		{nan, "s", "–"},
		{inf, "B", "–"},
	}
	for _, test := range tests {
		if got := Value(test.v, test.unit); got != test.want {
			t.Errorf("Value(%v, %q) = %q, want %q", test.v, test.unit, got, test.want)
		}
	}
}

func TestSpreadIsInTheUnitOfItsMedian(t *testing.T) {
	tests := []struct {
		spread measure.Spread
		unit   string
		want   string
	}{
		{spreadOf(0.83, 0.79, 0.88), "", "0.83 (0.79–0.88)"},
		{spreadOf(48_213, 47_000, 49_100), "", "48,200 (47,000–49,100)"},
		{spreadOf(0.0012, 0.0009, 0.0145), "s", "1.20 ms (0.90–14.5)"},
		{spreadOf(5<<20, 4<<20, 6<<20), "B", "5.00 MiB (4.00–6.00)"},
		{spreadOf(3, 3, 3), "/s", "3.00 /s"},
	}
	for _, test := range tests {
		if got := SpreadValue(test.spread, test.unit); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
	if got := Times(spreadOf(0.83, 0.79, 0.88)); got != "0.83 (0.79–0.88)" {
		t.Errorf("Times gave %q", got)
	}
}

func TestLimitsClaimNoPrecision(t *testing.T) {
	tests := []struct {
		v    float64
		unit string
		want string
	}{{0.6, "", "0.6"}, {7, "", "7"}, {0.35, "", "0.35"}, {300_000, "/s", "300,000 /s"}, {0.3, "s", "300 ms"}, {32 << 20, "B", "32 MiB"}, {100, "", "100"}}
	for _, test := range tests {
		if got := limit(test.v, test.unit); got != test.want {
			t.Errorf("limit(%v, %q) = %q, want %q", test.v, test.unit, got, test.want)
		}
	}
}
