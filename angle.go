package oda

import (
	"math"
	"strconv"
	"strings"
)

// rightAscension reads a right ascension in degrees: of a sexagesimal text, hours;
// of a number or a decimal text, degrees.
func rightAscension(text string) (degrees float64, ok bool) {
	value, sexagesimal, ok := angle(text)
	if sexagesimal {
		value *= 15
	}
	return math.Abs(value), ok && value >= 0 && value < 360
}

// declination reads a declination in degrees.
func declination(text string) (degrees float64, ok bool) {
	value, _, ok := angle(text)
	return value, ok && value >= -90 && value <= 90
}

// angle reads 21:08:47.92, 21 08 47.92, 08:47.92 or 12.75, with or without a
// sign. Some tools write "degrees" behind it, whatever the unit is.
func angle(text string) (value float64, sexagesimal, ok bool) {
	text = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "degrees"))
	negative := strings.HasPrefix(text, "-")
	if negative || strings.HasPrefix(text, "+") {
		text = text[1:]
	}
	parts := strings.FieldsFunc(text, func(r rune) bool { return r == ':' || r == ' ' })
	sexagesimal = len(parts) > 1
	if len(parts) == 0 || len(parts) > 3 || !sexagesimal && parts[0] != text {
		return 0, false, false
	}
	scale := 1.0
	for i, part := range parts {
		n, err := strconv.ParseFloat(part, 64)
		isWhole := !strings.ContainsRune(part, '.')
		isLast := i == len(parts)-1
		if err != nil || !isDecimal(part, !sexagesimal) || i > 0 && n >= 60 || !isLast && !isWhole {
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

// isDecimal tells whether a text is a number without a sign, with an exponent
// where that is allowed: Go reads other spellings too.
func isDecimal(text string, exponent bool) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case c >= '0' && c <= '9', c == '.':
		case exponent && i > 0 && (c == 'e' || c == 'E' || c == '+' || c == '-'):
		default:
			return false
		}
	}
	return true
}
