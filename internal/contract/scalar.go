package contract

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"

	"oda"
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
	d := parseDecimal(literal)
	switch {
	case s.integer && d.fraction:
		return "Must be an integer."
	case s.minimum != nil && d.compare(*s.minimum) < 0:
		return fmt.Sprintf("Must be at least %d.", *s.minimum)
	case s.maximum != nil && d.compare(*s.maximum) > 0:
		return fmt.Sprintf("Must be at most %d.", *s.maximum)
	}
	return ""
}

// decimal is the part of a number that the checks need, exact at any size:
// floating point would mistake 9007199254740993.5 for an integer.
type decimal struct {
	negative bool
	whole    uint64 // whole part of the magnitude, unless large
	large    bool   // the whole part exceeds 64 bits
	fraction bool   // there are digits other than 0 after the decimal point
}

// parseDecimal parses a number that the scanner has accepted.
func parseDecimal(literal []byte) decimal {
	var d decimal
	if literal[0] == '-' {
		d.negative = true
		literal = literal[1:]
	}
	mantissa, exponent := literal, 0
	for i, c := range literal {
		if c == 'e' || c == 'E' {
			mantissa, exponent = literal[:i], parseExponent(literal[i+1:])
			break
		}
	}
	point := len(mantissa) // number of digits before the decimal point
	for i, c := range mantissa {
		if c == '.' {
			point = i
			break
		}
	}
	point += exponent
	digits := 0
	for _, c := range mantissa {
		if c == '.' {
			continue
		}
		if digits < point {
			d.push(uint64(c - '0'))
		} else if c != '0' {
			d.fraction = true
		}
		digits++
	}
	for ; digits < point && d.whole != 0 && !d.large; digits++ {
		d.push(0)
	}
	return d
}

// push adds a digit to the whole part.
func (d *decimal) push(digit uint64) {
	high, low := bits.Mul64(d.whole, 10)
	sum, carry := bits.Add64(low, digit, 0)
	d.large = d.large || high != 0 || carry != 0
	d.whole = sum
}

// parseExponent parses an exponent. If it exceeds the length of any document,
// it returns a large number of the same sign.
func parseExponent(text []byte) int {
	const large = 1 << 48
	sign, n := 1, 0
	for _, c := range text {
		switch c {
		case '+':
		case '-':
			sign = -1
		default:
			n = min(n*10+int(c-'0'), large)
		}
	}
	return sign * n
}

// compare returns -1, 0 or 1 if d is less than, equal to or greater than n.
func (d decimal) compare(n int64) int {
	zero := d.whole == 0 && !d.large && !d.fraction
	if d.negative && !zero {
		if n >= 0 {
			return -1
		}
		return -d.compareMagnitude(uint64(-(n + 1)) + 1)
	}
	if n < 0 {
		return 1
	}
	return d.compareMagnitude(uint64(n))
}

func (d decimal) compareMagnitude(n uint64) int {
	switch {
	case d.large || d.whole > n || d.whole == n && d.fraction:
		return 1
	case d.whole < n:
		return -1
	}
	return 0
}
