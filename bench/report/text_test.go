package report

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestLabelsAreMovedApartAsLittleAsNeeded(t *testing.T) {
	tests := []struct {
		name   string
		wanted []float64
		want   []float64
	}{
		{"apart already", []float64{10, 50, 90}, []float64{10, 50, 90}},
		{"two at one place", []float64{50, 50}, []float64{45, 55}},
		{"in any order", []float64{52, 50}, []float64{56, 46}},
		{"a push that goes on", []float64{20, 50, 52, 61}, []float64{20, 44.333, 54.333, 64.333}},
		{"at the top", []float64{0, 1}, []float64{0, 10}},
		{"at the bottom", []float64{100, 99}, []float64{100, 90}},
		{"none", nil, []float64{}},
		{"too many", make([]float64, 12), nil},
	}
	for _, test := range tests {
		got := settle(test.wanted, 10, 0, 100)
		if len(got) != len(test.want) || (got == nil) != (test.want == nil) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
			continue
		}
		for i := range got {
			if abs(got[i]-test.want[i]) > 0.001 {
				t.Errorf("%s: %v, want %v", test.name, got, test.want)
				break
			}
		}
	}
}

func TestSettledLabelsNeverCollide(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		wanted := make([]float64, 1+random.IntN(11))
		for i := range wanted {
			wanted[i] = float64(random.IntN(120) - 10)
		}
		settled := slices.Sorted(slices.Values(settle(wanted, 10, 0, 100)))
		if len(settled) != len(wanted) || settled[0] < 0 || settled[len(settled)-1] > 100.001 {
			t.Fatalf("%v became %v", wanted, settled)
		}
		for i := 1; i < len(settled); i++ {
			if settled[i]-settled[i-1] < 9.999 {
				t.Fatalf("%v became %v", wanted, settled)
			}
		}
	}
}

func TestTextIsWrappedBetweenWords(t *testing.T) {
	tests := []struct {
		text  string
		width float64
		want  []string
	}{
		{"oda on SQLite", 1000, []string{"oda on SQLite"}},
		{"oda on SQLite", 60, []string{"oda on", "SQLite"}},
		{"unbreakable", 10, []string{"unbreakable"}},
		{"  two   words ", 1000, []string{"two words"}},
		{"", 10, []string{""}},
	}
	for _, test := range tests {
		if got := wrap(test.text, textSize, test.width); !slices.Equal(got, test.want) {
			t.Errorf("%q in %v: %q, want %q", test.text, test.width, got, test.want)
		}
	}
}
