package web

import (
	"testing"
	"time"

	"oda"
)

// However short or long something took, the page says so in the unit that people would use.
func TestHowLongItTook(t *testing.T) {
	for took, want := range map[time.Duration]string{
		0:                            "0 µs",
		400 * time.Microsecond:       "400 µs",
		999 * time.Microsecond:       "999 µs",
		time.Millisecond:             "1 ms",
		999_400 * time.Microsecond:   "999 ms",
		999_600 * time.Microsecond:   "999 ms",
		time.Second:                  "1.0 s",
		59_940 * time.Millisecond:    "59.9 s",
		59_960 * time.Millisecond:    "59.9 s",
		time.Minute:                  "1 min 00 s",
		time.Hour - time.Microsecond: "59 min 59 s",
		time.Hour + 29*time.Minute:   "1 h 29 min",
		100*time.Hour - time.Minute:  "99 h 59 min",
		100 * time.Hour:              "4 d 04 h",
		365 * 24 * time.Hour:         "365 d 00 h",
	} {
		if got := showElapsed(oda.Elapsed(took.Microseconds())); got != want {
			t.Errorf("%v is written %q, want %q", took, got, want)
		}
	}
}

// A size is never written as a thousand of its unit.
func TestSizes(t *testing.T) {
	for bytes, want := range map[int64]string{
		1: "1 byte", 999: "999 bytes", 1000: "1.0 kB", 999_949: "999.9 kB", 999_950: "1.0 MB", 999_999_999: "1.0 GB", 999_990_000_000: "1.0 TB",
		22_400_000: "22.4 MB", 5_000_000_000_000_000: "5000.0 TB",
	} {
		if got := showSize(bytes); got != want {
			t.Errorf("%d is written %q, want %q", bytes, got, want)
		}
	}
}
