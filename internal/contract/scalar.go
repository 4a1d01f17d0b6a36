package contract

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"oda"
	"oda/internal/rawjson"
)

// checksText reports whether s restricts texts at all.
func (s *schema) checksText() bool {
	return s.text != bounds{} || s.pattern != nil || s.enum != nil || s.notEnum != nil || s.timestamp
}

// checkText checks a text against s, and returns a sentence that says what is
// wrong, or "".
func (s *schema) checkText(text []byte) string {
	msg := s.textFault(text)
	if msg != "" && s.rule != "" {
		return "Must be " + s.rule + "."
	}
	return msg
}

func (s *schema) textFault(text []byte) string {
	if s.enum != nil && !slices.Contains(s.enum, string(text)) {
		return "Must be one of: " + strings.Join(s.enum, ", ") + "."
	}
	if s.notEnum != nil && slices.Contains(s.notEnum, string(text)) {
		return "Must not be one of: " + strings.Join(s.notEnum, ", ") + "."
	}
	if s.text.min != nil && fewer(text, *s.text.min) {
		return fmt.Sprintf("Must have at least %s.", counted(*s.text.min, "character"))
	}
	if s.text.max != nil && !fewer(text, *s.text.max+1) {
		return fmt.Sprintf("Must have at most %s.", counted(*s.text.max, "character"))
	}
	if s.pattern != nil && !s.pattern.Match(text) {
		return "Must be " + s.rule + "."
	}
	if s.timestamp {
		if _, err := oda.ParseTime(string(text)); err != nil {
			return "Must be a time, such as 2026-01-31T12:30:00Z or 2026-01-31."
		}
	}
	return ""
}

// fewer reports whether a text has fewer than n characters. It counts them only
// if the number of bytes does not decide.
func fewer(text []byte, n int) bool {
	if len(text) < n {
		return true
	}
	return len(text) < n*utf8.UTFMax && utf8.RuneCount(text) < n
}

// checkNumber checks a number in JSON's spelling against s.
func (s *schema) checkNumber(literal []byte) string {
	if !s.integer && s.minimum == nil && s.maximum == nil {
		return ""
	}
	d := rawjson.ParseDecimal(literal)
	switch {
	case s.integer && !d.IsInteger():
		return "Must be an integer."
	case s.minimum != nil && d.CompareInt(*s.minimum) < 0:
		return fmt.Sprintf("Must be at least %d.", *s.minimum)
	case s.maximum != nil && d.CompareInt(*s.maximum) > 0:
		return fmt.Sprintf("Must be at most %d.", *s.maximum)
	}
	return ""
}
