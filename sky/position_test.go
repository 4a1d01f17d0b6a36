package sky_test

import (
	"math"
	"testing"

	"oda/sky"
)

func TestAPositionIsReadAsPeopleWriteIt(t *testing.T) {
	for _, text := range []string{
		"13:25:27.6 -43:01:08.8",
		"13:25:27.6,-43:01:08.8",
		"13:25:27.6, -43:01:08.8",
		"13 25 27.6 -43 01 08.8",
		"13h25m27.6s -43d01m08.8s",
		"13h 25m 27.6s, −43° 01′ 08.8″", // as the pages show it
		"13h25m27.6s-43d01m08.8s",
		`13h25m27.6s -43°01'08.8"`,
		"201.365 -43.01911",
		"201.365deg, -43.01911deg",
		"  201.365   -43.01911 ",
	} {
		ra, dec, ok := sky.ParsePosition(text)
		if !ok || math.Abs(ra-201.365) > 1e-3 || math.Abs(dec+43.01911) > 1e-3 {
			t.Errorf("%q is %v, %v, %v", text, ra, dec, ok)
		}
	}
	for _, text := range []string{"", "47 Tucanae", "3C 286", "NGC 253", "12 34", "25:00:00 -43:00:00", "13:25:27.6 -99:00:00", "1 2 3", "a b c d e f", "eb-1 2.5", "2026-01-31 18:00"} {
		if ra, dec, ok := sky.ParsePosition(text); ok {
			t.Errorf("%q is taken for the position %v, %v", text, ra, dec)
		}
	}
}

func TestThePositionInTheNameOfASource(t *testing.T) {
	for name, want := range map[string][2]float64{
		"J0918-1205":          {139.5, -12 - 5.0/60},
		"PSR J0437−4715":      {69.25, -47.25},
		"j132527.6-430108.8":  {201.365, -43.0191},
		"FRB J2200+4216 (BL)": {330, 42 + 16.0/60},
	} {
		ra, dec, ok := sky.PositionInName(name)
		if !ok || math.Abs(ra-want[0]) > 1e-3 || math.Abs(dec-want[1]) > 1e-3 {
			t.Errorf("%q is at %v, %v, %v, want %v", name, ra, dec, ok, want)
		}
	}
	for _, name := range []string{"", "J", "J0918", "1934-638", "J0918-12", "J2500-1205", "J0960-1205", "J0918-9105", "AJ0918-1205", "J0918-12055"} {
		if ra, dec, ok := sky.PositionInName(name); ok {
			t.Errorf("%q is taken for a source at %v, %v", name, ra, dec)
		}
	}
}
