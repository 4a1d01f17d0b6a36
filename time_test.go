package oda

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"oda/internal/test/must"
)

func TestTimesAreReadAsCallersWriteThem(t *testing.T) {
	at := func(s string) time.Time {
		v := must.Get(time.Parse(time.RFC3339Nano, s))(t)
		return v
	}
	for text, want := range map[string]time.Time{
		"2024-07-07T19:44:55.432642Z":       at("2024-07-07T19:44:55.432642Z"),
		"2024-07-07t19:44:55.432642z":       at("2024-07-07T19:44:55.432642Z"),
		"2022-03-28T15:43:53.971548+00:00":  at("2022-03-28T15:43:53.971548Z"),
		"2022-03-28T15:43:53.971548":        at("2022-03-28T15:43:53.971548Z"),
		"2024-07-08T01:14:55.432642+05:30":  at("2024-07-07T19:44:55.432642Z"),
		"2024-07-07T19:44:55-00:30":         at("2024-07-07T20:14:55Z"),
		"2024-07-07T19:44:55Z":              at("2024-07-07T19:44:55Z"),
		"2024-07-07T19:44:55.1Z":            at("2024-07-07T19:44:55.1Z"),
		"2024-07-07T19:44:55.123456789Z":    at("2024-07-07T19:44:55.123456789Z"),
		"2024-07-07T19:44:55.1234567891Z":   at("2024-07-07T19:44:55.123456789Z"),
		"2024-07-07T19:44:55.1200000000Z":   at("2024-07-07T19:44:55.12Z"),
		"2024-07-07T19:44:55.120000000001Z": at("2024-07-07T19:44:55.120000001Z"),
		"2023-10-18":                        at("2023-10-18T00:00:00Z"),
		"2023-10-18 00:00":                  at("2023-10-18T00:00:00Z"),
		"2023-10-18T07:05":                  at("2023-10-18T07:05:00Z"),
		"2023-10-18 07:05:09":               at("2023-10-18T07:05:09Z"),
		"2023-10-18 07:05:09.25":            at("2023-10-18T07:05:09.25Z"),
		"2023-10-18 07:05+02:00":            at("2023-10-18T05:05:00Z"),
		"2024-02-29":                        at("2024-02-29T00:00:00Z"),
		"0001-01-01":                        at("0001-01-01T00:00:00Z"),
		"9999-12-31T23:59:59.999999Z":       at("9999-12-31T23:59:59.999999Z"),
		"2016-12-31T23:59:60Z":              at("2017-01-01T00:00:00Z"),
	} {
		got, err := ParseTime(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if !got.Equal(want) {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

func TestInvalidTimesAreRefused(t *testing.T) {
	for _, text := range []string{
		"", "now", "2024", "2024-07", "20240707", "2024-7-7", "2024-13-01", "2024-00-01", "2024-01-00", "2023-02-29", "2024-06-31", "2026-02-31T12:00:60Z",
		"2024-07-07T", "2024-07-07T19", "2024-07-07T24:00", "2024-07-07T19:60", "2024-07-07T19:44:61Z", "2024-07-07T19:44:55.Z",
		"2024-07-07T19:44:55,5Z", "2024-07-07T19:44:55,123456Z", "2024-07-07T1:44:55.1234567Z", "2024-07-07T19:44:55+24:00", "2024-07-07T19:44:55+05", "2024-07-07T19:44:55 UTC", "2024-07-07 ",
		" 2024-07-07", "2024-07-07Z", "2024/07/07", "-024-07-07", "1e10", "2024-07-07T19:44:55ZZ", "２０２４-07-07",
	} {
		if got, err := ParseTime(text); err == nil {
			t.Errorf("%q was read as %v", text, got)
		}
	}
}

func TestInstantsAlwaysHaveSixFractionalDigits(t *testing.T) {
	for text, want := range map[string]string{
		"2024-07-07T19:44:55Z":           "2024-07-07T19:44:55.000000Z",
		"2024-07-07T19:44:55.23Z":        "2024-07-07T19:44:55.230000Z",
		"2024-07-07T19:44:55.123456789Z": "2024-07-07T19:44:55.123456Z",
		"1969-12-31T23:59:59.5Z":         "1969-12-31T23:59:59.500000Z",
	} {
		at := must.Get(ParseTime(text))(t)
		if got := InstantOf(at).String(); got != want {
			t.Errorf("%s is written %s, want %s", text, got, want)
		}
	}
}

func TestInstantsAreWrittenAsTheLibraryWouldWriteThem(t *testing.T) {
	instants := []Instant{0, -1, 1, 999_999, 1_000_000, -1_000_000, math.MinInt64 / 1000, math.MaxInt64 / 1000}
	for range 10_000 {
		instants = append(instants, Instant(rand.Int64N(1<<58)-1<<57))
	}
	for _, at := range instants {
		if got, want := at.String(), at.Time().Format("2006-01-02T15:04:05.000000Z"); got != want {
			t.Fatalf("%d is written %s, want %s", at, got, want)
		}
	}
}

// FuzzParseTime compares the parser with the standard library's on RFC 3339, and
// checks that every time that it accepts can be written and parsed again.
func FuzzParseTime(f *testing.F) {
	for _, seed := range []string{"2024-07-07T19:44:55.432642Z", "2023-10-18 00:00", "2023-10-18", "2024-07-08T01:14:55+05:30", "x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseTime(text)
		var want time.Time
		if want.UnmarshalText([]byte(text)) == nil { // strict RFC 3339
			// The library drops what is finer than a nanosecond.
			if off := got.Sub(want); err != nil || off < 0 || off > time.Nanosecond {
				t.Fatalf("%q: got %v, %v; the standard library reads %v", text, got, err, want)
			}
		}
		if err != nil {
			return
		}
		i := InstantOf(got)
		if y := i.Time().Year(); y < 0 || y > 9999 {
			return
		}
		again, err := ParseTime(i.String())
		if err != nil || InstantOf(again) != i {
			t.Fatalf("%q, written as %s, is read as %v, %v", text, i, again, err)
		}
	})
}

func TestElapsedTimeIsWrittenExactly(t *testing.T) {
	for length, want := range map[Elapsed]string{0: "0", 1: "0.000001", 100_000: "0.1", 1_000_000: "1", 12_340_050: "12.34005", 1<<50 - 1: "1125899906.842623"} {
		text, err := json.Marshal(length)
		if err != nil || string(text) != want {
			t.Errorf("%d microseconds are written %s, %v, want %s", length, text, err, want)
		}
		var back Elapsed
		if err := json.Unmarshal(text, &back); err != nil || back != length {
			t.Errorf("%s is read as %d, %v", text, back, err)
		}
	}
}
