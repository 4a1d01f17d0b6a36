package oda_test

import (
	"math"
	"testing"

	"oda"
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
		ra, dec, ok := oda.ParsePosition(text)
		if !ok || math.Abs(ra-201.365) > 1e-3 || math.Abs(dec+43.01911) > 1e-3 {
			t.Errorf("%q is %v, %v, %v", text, ra, dec, ok)
		}
	}
	for _, text := range []string{"", "47 Tucanae", "3C 286", "NGC 253", "12 34", "25:00:00 -43:00:00", "13:25:27.6 -99:00:00", "1 2 3", "a b c d e f", "eb-1 2.5", "2026-01-31 18:00"} {
		if ra, dec, ok := oda.ParsePosition(text); ok {
			t.Errorf("%q is taken for the position %v, %v", text, ra, dec)
		}
	}
}
