package oda

import (
	"errors"
	"regexp"
	"strings"
	"time"
)

// instantForm is how the archive writes an instant.
const instantForm = "2006-01-02T15:04:05.000000Z"

// Instant is a moment in microseconds since 1970, UTC: the resolution at which
// the archive keeps time.
type Instant int64

// InstantOf gives the instant of t, rounded down.
func InstantOf(t time.Time) Instant { return Instant(t.UnixMicro()) }

// Time is the instant as a time in UTC.
func (i Instant) Time() time.Time { return time.UnixMicro(int64(i)).UTC() }

// String writes the instant as the archive always does: RFC 3339 with Z and
// exactly six fractional digits.
func (i Instant) String() string { return string(i.AppendTo(nil)) }

// AppendTo appends what String gives.
func (i Instant) AppendTo(dst []byte) []byte {
	return i.Time().AppendFormat(dst, instantForm)
}

var errTime = errors.New("is not a valid time; write it as 2026-01-31T12:30:00Z, or as a date")

// timeForm is how callers write times. What it lets through, time.Parse reads
// once the spelling is made uniform.
var timeForm = regexp.MustCompile(`^\d{4}-\d\d-\d\d([Tt ]([01]\d|2[0-3]):\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)?)?$`)

// ParseTime reads a time as callers write them: RFC 3339, a date (midnight),
// or YYYY-MM-DD HH:MM[:SS[.f]] with T or a space between. Without a zone it is
// UTC. A leap second counts as the first second of the next minute.
func ParseTime(text string) (time.Time, error) {
	// The archive's own spelling, which most callers send back.
	if len(text) == len(instantForm) && text[len("2006-01-02T15:04:05")] == '.' {
		if t, err := time.Parse(instantForm, text); err == nil {
			return t, nil
		}
	}
	if !timeForm.MatchString(text) {
		return time.Time{}, errTime
	}
	const date, minute = len("2006-01-02"), len("2006-01-02T15:04")
	if len(text) == date {
		text += "T00:00:00Z"
	}
	text = text[:date] + "T" + strings.ToUpper(text[date+1:])
	if len(text) == minute || text[minute] != ':' {
		text = text[:minute] + ":00" + text[minute:]
	}
	if !strings.ContainsAny(text[minute:], "Z+-") {
		text += "Z"
	}
	leap := time.Duration(0)
	if before, after, found := strings.Cut(text, ":60"); found && len(before) == minute {
		text, leap = before+":59"+after, time.Second
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, errTime
	}
	return t.Add(leap), nil
}
