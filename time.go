package oda

import (
	"errors"
	"strconv"
	"time"
)

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
	return i.Time().AppendFormat(dst, "2006-01-02T15:04:05.000000Z")
}

var errTime = errors.New("is no time; write it as 2026-01-31T12:30:00Z, or as a date")

// ParseTime reads a time as callers write them: RFC 3339, a date (midnight),
// or YYYY-MM-DD HH:MM[:SS[.f]] with T or a space between. Without a zone it is
// UTC.
func ParseTime(text string) (time.Time, error) {
	p := timeParser{text: text}
	year, month, day := p.number(4), p.after('-', 2), p.after('-', 2)
	if p.text == "" {
		return p.date(year, month, day, 0, 0, 0, 0, 0)
	}
	if !p.accept('T') && !p.accept('t') && !p.accept(' ') {
		return time.Time{}, errTime
	}
	hour, minute := p.number(2), p.after(':', 2)
	second, nanos := 0, 0
	if p.accept(':') {
		second = p.number(2)
		if p.accept('.') {
			nanos = p.fraction()
		}
	}
	return p.date(year, month, day, hour, minute, second, nanos, p.zone())
}

// timeParser reads from the front of a text; bad is set where it could not.
type timeParser struct {
	text string
	bad  bool
}

func (p *timeParser) accept(c byte) bool {
	if p.text == "" || p.text[0] != c {
		return false
	}
	p.text = p.text[1:]
	return true
}

func (p *timeParser) number(digits int) int {
	n := 0
	if len(p.text) < digits {
		p.bad, p.text = true, ""
		return 0
	}
	for _, c := range []byte(p.text[:digits]) {
		if c < '0' || c > '9' {
			p.bad = true
		}
		n = n*10 + int(c-'0')
	}
	p.text = p.text[digits:]
	return n
}

func (p *timeParser) after(c byte, digits int) int {
	if !p.accept(c) {
		p.bad = true
	}
	return p.number(digits)
}

// fraction reads the digits of a second's fraction. Beyond nanoseconds they
// are read and dropped.
func (p *timeParser) fraction() int {
	n := 0
	for n < len(p.text) && p.text[n] >= '0' && p.text[n] <= '9' {
		n++
	}
	if n == 0 {
		p.bad = true
		return 0
	}
	digits := (p.text[:n] + "00000000")[:9]
	p.text = p.text[n:]
	nanos, err := strconv.Atoi(digits)
	if err != nil {
		p.bad = true
	}
	return nanos
}

// zone reads the offset from UTC, in seconds.
func (p *timeParser) zone() int {
	sign := 1
	switch {
	case p.text == "", p.accept('Z'), p.accept('z'):
		return 0
	case p.accept('+'):
	case p.accept('-'):
		sign = -1
	default:
		p.bad = true
		return 0
	}
	hours, minutes := p.number(2), p.after(':', 2)
	if hours > 23 || minutes > 59 {
		p.bad = true
	}
	return sign * (hours*3600 + minutes*60)
}

// date puts the parts together. A second of 60 is a leap second and counts as
// the first of the next minute.
func (p *timeParser) date(year, month, day, hour, minute, second, nanos, offset int) (time.Time, error) {
	midnight := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if p.bad || p.text != "" || int(midnight.Month()) != month || midnight.Day() != day ||
		hour > 23 || minute > 59 || second > 60 {
		return time.Time{}, errTime
	}
	return time.Date(year, time.Month(month), day, hour, minute, second, nanos, time.UTC).
		Add(-time.Duration(offset) * time.Second), nil
}
