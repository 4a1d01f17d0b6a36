package oda

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"time"

	"oda/internal/rawjson"
)

// CheckJSON returns why a text is not one strict JSON document, with the line and the
// column, or nil.
func CheckJSON(text []byte) error { return rawjson.Check(text, MaxDepth) }

// Moment is an instant that JSON has as a text, in the archive's form of a time.
type Moment Instant

// Time returns the moment as a time in UTC.
func (m Moment) Time() time.Time { return Instant(m).Time() }

// String returns the moment in the archive's form of a time.
func (m Moment) String() string { return Instant(m).String() }

// MarshalText implements encoding.TextMarshaler.
func (m Moment) MarshalText() ([]byte, error) { return Instant(m).AppendTo(nil), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *Moment) UnmarshalText(text []byte) error {
	t, ok := parseTime(text)
	if !ok {
		return fmt.Errorf("%.100q %w", text, errTime)
	}
	*m = Moment(InstantOf(t))
	return nil
}

// Elapsed is a length of time in microseconds. In JSON it is a number of seconds.
type Elapsed int64

// Seconds returns the length in seconds.
func (s Elapsed) Seconds() float64 { return float64(s) / 1e6 }

// MarshalJSON writes the number of seconds without rounding.
func (s Elapsed) MarshalJSON() ([]byte, error) {
	text := strconv.AppendInt(nil, int64(s/1e6), 10)
	if part := s % 1e6; part != 0 {
		text = append(text, '.')
		for unit := Elapsed(1e5); part > 0; unit /= 10 {
			text = append(text, byte('0'+part/unit))
			part %= unit
		}
	}
	return text, nil
}

// UnmarshalJSON parses a number of seconds.
func (s *Elapsed) UnmarshalJSON(text []byte) error {
	seconds, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return err
	}
	*s = Elapsed(math.Round(min(seconds*1e6, math.MaxInt64/2)))
	return nil
}

// MaxDepth is the deepest nesting that an archive can be told to accept. Documents are
// read recursively, and the stack is limited.
const MaxDepth = 10_000

// MaxStoredDepth exceeds every bound on nesting under which a document can have
// been stored.
const MaxStoredDepth = 1 << 20

// textIn decodes a JSON string, mostly without a copy. It returns nil for any
// other value.
func textIn(value []byte) []byte {
	if len(value) < 2 || value[0] != '"' {
		return nil
	}
	if bytes.IndexByte(value, '\\') >= 0 {
		return []byte(rawjson.Unquote(value))
	}
	return value[1 : len(value)-1]
}

// appendTextOrNull appends a text as JSON, null if it is empty.
func appendTextOrNull(dst []byte, text string) []byte {
	if text == "" {
		return append(dst, "null"...)
	}
	return rawjson.AppendQuoted(dst, text)
}

// appendInstantOrNull appends an instant as JSON, null if it is not known.
func appendInstantOrNull(dst []byte, at Instant, known bool) []byte {
	if !known {
		return append(dst, "null"...)
	}
	return append(at.AppendTo(append(dst, '"')), '"')
}

// integer parses a JSON number that is known to be whole: 2, 2.0 or 2e0. It
// returns the largest int64 for a number that is too large; no version has it.
func integer(number []byte) int64 {
	if n, err := strconv.ParseInt(string(number), 10, 64); err == nil {
		return n
	}
	f, err := strconv.ParseFloat(string(number), 64)
	if err != nil || f >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(f)
}
