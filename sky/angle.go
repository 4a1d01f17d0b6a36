package sky

import (
	"math"
	"strconv"
	"strings"
)

// RightAscension parses a right ascension and returns it in degrees. A
// sexagesimal text is in hours; a number or a decimal text is in degrees. The
// whole circle, 360° or 24h, is 0.
func RightAscension(text string) (degrees float64, ok bool) {
	value, sexagesimal, ok := angle(text)
	if sexagesimal {
		value *= 15
	}
	if value == 360 {
		value = 0
	}
	return math.Abs(value), ok && value >= 0 && value < 360
}

// Declination parses a declination in degrees.
func Declination(text string) (degrees float64, ok bool) {
	value, _, ok := angle(text)
	return value, ok && value >= -90 && value <= 90
}

// angle parses 21:08:47.92, 21 08 47.92, 08:47.92 or 12.75, with or without a
// sign. Some tools append "degrees", whatever the unit is.
func angle(text string) (value float64, sexagesimal, ok bool) {
	text = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "degrees"))
	negative := strings.HasPrefix(text, "-")
	if negative || strings.HasPrefix(text, "+") {
		text = text[1:]
	}
	var room [4]string
	parts := room[:0]
	for i := 0; i < len(text) && len(parts) < len(room); i++ {
		start := i
		for i < len(text) && text[i] != ':' && text[i] != ' ' {
			i++
		}
		if start < i {
			parts = append(parts, text[start:i])
		}
	}
	sexagesimal = len(parts) > 1
	if len(parts) == 0 || len(parts) > 3 || !sexagesimal && parts[0] != text {
		return 0, false, false
	}
	scale := 1.0
	for i, part := range parts {
		n, isWhole, ok := decimal(part, !sexagesimal)
		isLast := i == len(parts)-1
		if !ok || i > 0 && n >= 60 || !isLast && !isWhole {
			return 0, false, false
		}
		value += n / scale
		scale *= 60
	}
	if negative && value != 0 {
		value = -value
	}
	return value, sexagesimal, true
}

// decimalNumber parses a decimal number with or without a sign.
func decimalNumber(text string) (float64, bool) {
	unsigned := text
	if strings.HasPrefix(text, "-") || strings.HasPrefix(text, "+") {
		unsigned = text[1:]
	}
	n, _, ok := decimal(unsigned, true)
	if len(text) > 0 && text[0] == '-' {
		n = -n
	}
	return n, ok
}

// decimal parses an unsigned decimal number, with an exponent if that is allowed.
// strconv.ParseFloat accepts other spellings too, and takes longer for a few digits.
func decimal(text string, exponent bool) (n float64, isWhole, ok bool) {
	isWhole = true
	var digits int64
	for i := range len(text) {
		switch c := text[i]; {
		case c >= '0' && c <= '9':
			digits = 10*digits + int64(c-'0')
		case c == '.':
			isWhole = false
		case exponent && i > 0 && (c == 'e' || c == 'E' || c == '+' || c == '-'):
			isWhole = false
		default:
			return 0, false, false
		}
	}
	if isWhole && 0 < len(text) && len(text) <= 15 {
		return float64(digits), true, true
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, isWhole, err == nil
}
