package oda

import (
	"regexp"
	"testing"
	"time"

	"oda/internal/test/must"
)

// timeForm is the form of times that the API description gives.
var timeForm = regexp.MustCompile(`^\d{4}-\d\d-\d\d([Tt ]([01]\d|2[0-3]):\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)?)?$`)

func TestTheDayOfACall(t *testing.T) {
	day := func(text string) Day {
		at := must.Get(time.Parse("2006-01-02", text))(t)
		return Day(at.Unix() / 86400)
	}
	for record, want := range map[string]Day{
		`{"request":"a"}`: DayOfRecording,
		`{"request":"a","request_sent_at":null,"response_received_at":null}`:             DayOfRecording,
		`{"request":"a","request_sent_at":"2026-03-01T23:59:59.999999Z"}`:                day("2026-03-01"),
		`{"request":"a","request_sent_at":"2026-03-02"}`:                                 day("2026-03-02"),
		`{"request":"a","request_sent_at":"2026-03-01T23:59:59.9999999Z"}`:               day("2026-03-01"),
		`{"response_received_at":"2026-03-02T00:30:00Z","request":"a"}`:                  day("2026-03-02"),
		`{"response_received_at":"2026-03-02T00:30:00Z","request_sent_at":"2026-03-01"}`: day("2026-03-01"),
		`{"request":"a","request_sent_at":"2026-03-02T01:00:00+02:00"}`:                  day("2026-03-01"),
		`{"request":"a","request_sent_at":"2026-03-01 23:30-01:00"}`:                     day("2026-03-02"),
		`{"request":"a","request_s\u0065nt_at":"\u0032026-03-02"}`:                       day("2026-03-02"),
		`{"request":"a","response":{"request_sent_at":"1999-01-01"}}`:                    DayOfRecording,
		`{"request":"a","request_sent_at":"1970-01-01"}`:                                 0,
		`{"request":"a","request_sent_at":"1969-12-31T23:59:59.5Z"}`:                     -1,
		`{"request":"a","request_sent_at":"0001-01-01"}`:                                 -719162,
		`{"request":"a","request_sent_at":"9999-12-31T23:59:59.999999Z"}`:                2932896,
	} {
		if got := KeysOfCall([]byte(record)).Day; got != want {
			t.Errorf("%s: got the day %d, want %d", record, got, want)
		}
	}
	if got := DayOfRecording.Or(3 * microsecondsOfDay); got != 3 {
		t.Errorf("the day of the recording is %d, want 3", got)
	}
	if got := Day(-1).Or(0); got != -1 {
		t.Errorf("the day of the call is %d, want -1", got)
	}
	for _, d := range []Day{-719162, -1, 0, 1, 2932896} {
		if DayOf(d.Begin()) != d || DayOf(d.Begin()-1) != d-1 {
			t.Errorf("the day %d does not begin at %s", d, d.Begin())
		}
	}
}

// A time with an offset can be in a year of five digits, or before the year 0000. What the
// archive answered could then not be read as a time again.
func TestTheTimesOfACallHaveYearsOfFourDigits(t *testing.T) {
	record := Record{Text: []byte(`{"request":"a","request_sent_at":"0000-01-01T00:00:00+14:00","response_received_at":"9999-12-31T23:59:59-14:00"}`)}
	e := record.Entry("eb-1")
	if e.SentAt.String() != "0000-01-01T00:00:00.000000Z" || e.ReceivedAt.String() != "9999-12-31T23:59:59.999999Z" || e.At != Instant(*e.SentAt) {
		t.Errorf("sent at %s, received at %s, at %s", e.SentAt, e.ReceivedAt, e.At)
	}
}

// FuzzTimeForm checks that every text that parses as a time has the form that
// the API description gives.
func FuzzTimeForm(f *testing.F) {
	for _, seed := range []string{"2024-07-07T19:44:55.432642Z", "2023-10-18 00:00", "2023-10-18", "2024-07-08T01:14:55+05:30", "2016-12-31t23:59:60z", "2023-10-18 07:05:09.25-23:59"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := ParseTime(text); err == nil && !timeForm.MatchString(text) {
			t.Errorf("%q was read, but does not have the form of a time", text)
		}
	})
}
