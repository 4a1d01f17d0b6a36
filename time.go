package oda

import (
	"errors"
	"strconv"
	"time"
)

// Instant is a moment in microseconds since 1970, UTC. Microseconds are the
// resolution of all times that the archive keeps.
type Instant int64

// InstantOf returns the instant of t, rounded down.
func InstantOf(t time.Time) Instant { return Instant(t.UnixMicro()) }

// Time returns the instant as a time in UTC.
func (i Instant) Time() time.Time { return time.UnixMicro(int64(i)).UTC() }

// String returns the instant in RFC 3339 with Z and exactly six fractional
// digits, as the archive writes all times.
func (i Instant) String() string { return string(i.AppendTo(nil)) }

// AppendTo appends what String returns. The seconds are formatted with the one layout
// for which package time has a short cut. The microseconds take the place of the Z.
func (i Instant) AppendTo(dst []byte) []byte {
	t := i.Time()
	dst = t.AppendFormat(dst, time.RFC3339)
	point := len(dst) - 1
	dst = strconv.AppendInt(dst[:point], int64(1_000_000+t.Nanosecond()/1000), 10)
	dst[point] = '.'
	return append(dst, 'Z')
}

// The first and the last instant that have a year of four digits.
var (
	firstInstant = InstantOf(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC))
	lastInstant  = InstantOf(time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)) - 1
)

// Span is a range of instants, both ends included; nil is no bound.
type Span struct{ After, Before *Instant }

// SpanOf returns the range from one time to another; a zero time is no bound.
func SpanOf(after, before time.Time) (s Span) {
	if !after.IsZero() {
		s.After = rounded(after, true)
	}
	if !before.IsZero() {
		s.Before = rounded(before, false)
	}
	return s
}

// Holds reports whether the instant lies in the range.
func (s Span) Holds(at Instant) bool {
	return (s.After == nil || at >= *s.After) && (s.Before == nil || at <= *s.Before)
}

// rounded returns one end of a range. It rounds a time that is finer than a
// microsecond into the range, and one without a year of four digits to one with it:
// the archive has nothing beyond, and a cursor must be able to say it.
func rounded(t time.Time, up bool) *Instant {
	i := InstantOf(t)
	if up && i.Time().Before(t) {
		i++
	}
	i = i.inYears()
	return &i
}

// inYears returns the instant, or the nearest to it that has a year of four digits. In UTC,
// a time with an offset can be hours beyond.
func (i Instant) inYears() Instant { return min(max(i, firstInstant), lastInstant) }

// storable reports whether an entity can have the time. Callers must be able to send it
// back, in a year of four digits, and later times must follow it.
func (i Instant) storable() bool {
	year := i.Time().Year()
	return year >= 0 && year < 9999
}

var errYears = errors.New("its times are not in the years from 0000 to 9998")

var errTime = errors.New("is not a valid time; write it as 2026-01-31T12:30:00Z, or as a date")

// ParseTime parses a time as callers may write it: RFC 3339, a date (midnight),
// or YYYY-MM-DD HH:MM[:SS[.f]] with T or a space in between. A time without a
// zone is in UTC. A leap second is the first second of the next minute.
func ParseTime(text string) (time.Time, error) {
	t, ok := parseTime(text)
	if !ok {
		return time.Time{}, errTime
	}
	return t, nil
}

// parseTime is ParseTime for a string or bytes. Every record has two times, so it
// is written by hand: package time would take several times as long (docs/storage.md),
// and accepts more.
func parseTime[Text string | []byte](text Text) (t time.Time, ok bool) {
	const date, minutes, seconds = len("2006-01-02"), len("2006-01-02T15:04"), len("2006-01-02T15:04:05")
	if len(text) < date || text[4] != '-' || text[7] != '-' {
		return t, false
	}
	year, month, day := digits(text, 0, 4), digits(text, 5, 2), digits(text, 8, 2)
	if year < 0 || month < 1 || month > 12 || day < 1 || day > daysIn(month, year) {
		return t, false
	}
	if len(text) == date {
		return time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC), true
	}
	if len(text) < minutes || text[date] != 'T' && text[date] != 't' && text[date] != ' ' || text[13] != ':' {
		return t, false
	}
	hour, minute, second, nano := digits(text, 11, 2), digits(text, 14, 2), 0, 0
	at := minutes
	if at < len(text) && text[at] == ':' {
		second, at = digits(text, at+1, 2), seconds
		if at < len(text) && text[at] == '.' {
			at++
			begin := at
			for unit := 100_000_000; at < len(text) && '0' <= text[at] && text[at] <= '9'; at++ {
				nano += int(text[at]-'0') * unit
				if unit == 0 && text[at] != '0' {
					nano |= 1 // it is not the time without these digits
				}
				unit /= 10
			}
			if at == begin {
				return t, false
			}
		}
	}
	offset, ok := zone(text, at)
	if !ok || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60 {
		return t, false
	}
	return time.Date(year, time.Month(month), day, hour, minute-offset, second, nano, time.UTC), true
}

// zone parses what follows a time: nothing, a Z or an offset. It returns the
// offset in minutes.
func zone[Text string | []byte](text Text, at int) (offset int, ok bool) {
	switch rest := len(text) - at; {
	case rest == 0, rest == 1 && (text[at] == 'Z' || text[at] == 'z'):
		return 0, true
	case rest == len("+00:00") && (text[at] == '+' || text[at] == '-') && text[at+3] == ':':
		hours, minutes := digits(text, at+1, 2), digits(text, at+4, 2)
		offset = 60*hours + minutes
		if text[at] == '-' {
			offset = -offset
		}
		return offset, hours >= 0 && hours <= 23 && minutes >= 0 && minutes <= 59
	}
	return 0, false
}

// digits returns the number that the n digits at a place make, or -1 if they are
// not all digits.
func digits[Text string | []byte](text Text, at, n int) int {
	if len(text) < at+n {
		return -1
	}
	number := 0
	for i := at; i < at+n; i++ {
		if text[i] < '0' || text[i] > '9' {
			return -1
		}
		number = 10*number + int(text[i]-'0')
	}
	return number
}

// daysIn returns the number of days of a month.
func daysIn(month, year int) int {
	switch {
	case month == 2 && year%4 == 0 && (year%100 != 0 || year%400 == 0):
		return 29
	case month == 2:
		return 28
	case month == 4 || month == 6 || month == 9 || month == 11:
		return 30
	}
	return 31
}
