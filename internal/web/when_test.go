package web

import (
	"net/url"
	"slices"
	"testing"
	"time"

	"oda"
	"oda/calls"
	"oda/internal/test/must"
)

// A time in the search box is the one that people at the archive mean.
func TestTimesInTheSearchBoxAreRead(t *testing.T) {
	perth := must.Get(time.LoadLocation("Australia/Perth"))(t)
	now := time.Date(2026, 11, 19, 4, 30, 0, 0, time.UTC) // 12:30 in Perth
	for text, want := range map[string]struct{ utc, perth string }{
		"2026-11-17 20:13":         {"2026-11-17T20:13:00Z", "2026-11-17T12:13:00Z"},
		"2026-11-17t20:13:04":      {"2026-11-17T20:13:04Z", "2026-11-17T12:13:04Z"},
		"2026-11-17 20:13Z":        {"2026-11-17T20:13:00Z", "2026-11-17T20:13:00Z"},
		"2026-11-17 20:13 UTC":     {"2026-11-17T20:13:00Z", "2026-11-17T20:13:00Z"},
		"2026-11-17T20:13:00+0200": {"", ""},
		"2026-11-17T20:13+02:00":   {"2026-11-17T18:13:00Z", "2026-11-17T18:13:00Z"},
		"2026-11-17 20:13 02:00":   {"2026-11-17T18:13:00Z", "2026-11-17T18:13:00Z"}, // a plus in an address
		"yesterday 20:13":          {"2026-11-18T20:13:00Z", "2026-11-18T12:13:00Z"},
		" Yesterday  6:05 ":        {"2026-11-18T06:05:00Z", "2026-11-17T22:05:00Z"},
		"today 20:13":              {"2026-11-19T20:13:00Z", "2026-11-19T12:13:00Z"},
		"12:13":                    {"2026-11-18T12:13:00Z", "2026-11-19T04:13:00Z"}, // the last
		"4:30":                     {"2026-11-19T04:30:00Z", "2026-11-18T20:30:00Z"},
		"20:13:07 utc":             {"2026-11-18T20:13:07Z", "2026-11-18T20:13:07Z"},
		"now":                      {"2026-11-19T04:30:00Z", "2026-11-19T04:30:00Z"},
		"2026-11-17":               {"", ""}, // a night
		"yesterday":                {"", ""},
		"24:13":                    {"", ""},
		"20:13 -43:01":             {"", ""}, // on the sky
		"utc":                      {"", ""},
		"":                         {"", ""},
	} {
		for zone, want := range map[*time.Location]string{time.UTC: want.utc, perth: want.perth} {
			at, ok := readWhen(text, now.In(zone))
			if ok != (want != "") || ok && inAddress(at) != want {
				t.Errorf("%q is read in %s as %s, %v, want %q", text, zone, inAddress(at), ok, want)
			}
		}
	}
}

// Bars begin at full hours and days of the zone, and there are never many.
func TestBarsBeginAtFullHours(t *testing.T) {
	perth, adelaide := must.Get(time.LoadLocation("Australia/Perth"))(t), must.Get(time.LoadLocation("Australia/Adelaide"))(t)
	at := func(text string) oda.Instant { return oda.InstantOf(must.Get(oda.ParseTime(text))(t)) }
	for _, c := range []struct {
		from, to string
		zone     *time.Location
		begin    string
		width    time.Duration
		number   int
	}{
		{"2026-11-18T05:00Z", "2026-11-19T05:00Z", time.UTC, "2026-11-18T05:00:00Z", 30 * time.Minute, 48},
		{"2026-11-18T05:10Z", "2026-11-18T05:10:00.1Z", time.UTC, "2026-11-18T05:10:00Z", time.Second, 1},
		{"2026-11-01", "2026-11-19", time.UTC, "2026-11-01T00:00:00Z", 12 * time.Hour, 36},
		{"2026-11-01", "2026-12-19", perth, "2026-10-31T16:00:00Z", 24 * time.Hour, 49},
		{"2026-11-18T05:00Z", "2026-11-20T05:00Z", adelaide, "2026-11-18T04:30:00Z", time.Hour, 49},
		{"0001-01-01", "9999-12-31", time.UTC, "", 0, 0},
		{"1969-12-31T23:59:59.5Z", "1970-01-01T00:00:01Z", time.UTC, "1969-12-31T23:59:59Z", time.Second, 2},
	} {
		bars := barsOf(at(c.from), at(c.to), c.zone)
		end := bars.From + oda.Instant(bars.Number)*bars.Width
		if bars.From > at(c.from) || end < at(c.to) || bars.Number < 1 || bars.Number > spreadBars {
			t.Errorf("from %s to %s there are %d bars from %s to %s", c.from, c.to, bars.Number, bars.From, end)
		}
		if c.number > 0 && (inAddress(bars.From) != c.begin || bars.Width != oda.Instant(c.width/time.Microsecond) || bars.Number != c.number) {
			t.Errorf("from %s to %s there are %d bars of %d µs from %s, want %d of %s from %s", c.from, c.to, bars.Number, bars.Width, inAddress(bars.From), c.number, c.width, c.begin)
		}
	}
}

// The first and the last bar of all times begin or end in years that no address can have.
func TestABarLeadsToTimesThatCanBeRead(t *testing.T) {
	begin, end := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	bars := barsOf(oda.InstantOf(begin), oda.InstantOf(end), time.UTC)
	for _, from := range []oda.Instant{bars.From, oda.InstantOf(end)} {
		s := drawSpread([]calls.Bar{{From: from, Calls: 1}}, bars.Width, calls.Query{}, url.Values{"outcome": {"failed"}}, time.UTC)
		at := must.Get(url.Parse(s.Bars[0].Href))(t)
		if _, err := calls.Parse(at.Query()); err != nil {
			t.Errorf("a bar leads to %s: %v", at, err)
		}
	}
}

// Where letters and digits meet, there may be a blank.
func TestLettersAndDigitsAreTakenApart(t *testing.T) {
	for text, want := range map[string]string{"NGC253": "NGC 253", "M 31": "M 31", "3C273b": "3 C 273 b", "": "", "eb-1": "eb-1", "é1": "é 1"} {
		if got := lettersApart(text); got != want {
			t.Errorf("%q is taken apart as %q, want %q", text, got, want)
		}
	}
}

// The days below the drawing are those of the zone, with UTC below them; bars stand where
// their calls are, and a few failures among many calls are still seen.
func TestTheDrawingIsInTheZoneOfTheArchive(t *testing.T) {
	perth := must.Get(time.LoadLocation("Australia/Perth"))(t)
	from := oda.InstantOf(time.Date(2026, 11, 16, 5, 0, 0, 0, time.UTC))
	bars := barsOf(from, from+oda.Instant(72*time.Hour/time.Microsecond), perth)
	list := make([]calls.Bar, bars.Number)
	for i := range list {
		list[i].From = bars.From + oda.Instant(i)*bars.Width
	}
	list[1] = calls.Bar{From: list[1].From, Calls: 1000, Failures: 1}
	s := drawSpread(list, bars.Width, calls.Query{From: &from}, url.Values{"eb": {"x"}}, perth)
	want := []spreadTick{{"16.22%", "17 Nov 2026", "16 Nov 16:00"}, {"48.65%", "18 Nov", "17 Nov 16:00"}, {"81.08%", "19 Nov", "18 Nov 16:00"}}
	if !slices.Equal(s.Ticks, want) || s.Zone != "Australia/Perth" || !s.UTC || s.Width != "2 hours" {
		t.Errorf("each %s in %s is marked with %+v, want %+v", s.Width, s.Zone, s.Ticks, want)
	}
	if len(s.Bars) != 1 || s.Bars[0].High < 3 || s.Bars[0].OKHigh+s.Bars[0].High > spreadHeight-spreadTop || s.Bars[0].Href != "calls?eb=x&from=2026-11-16T06%3A00%3A00Z&to=2026-11-16T08%3A00%3A00Z" ||
		s.Bars[0].Title != "2026-11-16 14:00:00 to 16:00:00 AWST: 1\u202f000 calls, 1 failed" {
		t.Errorf("the bars are %+v", s.Bars)
	}
}
