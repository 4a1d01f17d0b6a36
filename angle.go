package oda

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// rightAscension parses a right ascension and returns it in degrees. A
// sexagesimal text is in hours; a number or a decimal text is in degrees. The
// whole circle, 360° or 24h, is 0.
func rightAscension(text string) (degrees float64, ok bool) {
	value, sexagesimal, ok := angle(text)
	if sexagesimal {
		value *= 15
	}
	if value == 360 {
		value = 0
	}
	return math.Abs(value), ok && value >= 0 && value < 360
}

// declination parses a declination in degrees.
func declination(text string) (degrees float64, ok bool) {
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

// unitMarks are what people write behind hours, degrees, minutes and seconds.
var unitMarks = regexp.MustCompile(`([0-9.])[ \x{202F}]?(?:h|m|s|d|deg|°|′|″|'|")([ ,+\-0-9]|$)`)

// ParsePosition reads a position as people write it: right ascension and
// declination, in degrees or sexagesimal, with a comma or white space between, and
// with or without marks such as h, m and s. Whole numbers alone are taken for words.
func ParsePosition(text string) (ra, dec float64, ok bool) {
	text = strings.ReplaceAll(text, "−", "-")
	for range 2 { // matches share their ends
		text = unitMarks.ReplaceAllString(text, "$1 $2")
	}
	parts := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	if len(parts) == 6 {
		parts = []string{strings.Join(parts[:3], ":"), strings.Join(parts[3:], ":")}
	}
	if len(parts) != 2 || !strings.ContainsAny(parts[0], ".:") || !strings.ContainsAny(parts[1], ".:+-") {
		return 0, 0, false
	}
	ra, isRA := rightAscension(parts[0])
	dec, isDec := declination(parts[1])
	return ra, dec, isRA && isDec
}

// DefaultRadius is that of a cone of which only the centre is given, in degrees.
const DefaultRadius = 1

// radiusUnits are how many of them a degree has.
var radiusUnits = []struct {
	mark string
	size float64
}{{"arcmin", 60}, {"arcsec", 3600}, {"deg", 1}, {"°", 1}, {"d", 1}, {"'", 60}, {"′", 60}, {"\"", 3600}, {"″", 3600}}

// ParseCone reads a circle on the sky as people write it: RA,DEC,RADIUS in degrees; or
// a position as ParsePosition takes it, or the name of a source that tells it, perhaps
// with a radius after it, which may have a unit.
func ParseCone(text string) (Cone, error) {
	cone, err := parseCone(text)
	if err == nil {
		return cone, nil
	}
	if centre, ok := parseCentre(text); ok {
		return centre, nil
	}
	text = strings.TrimSpace(text)
	if at := strings.LastIndexAny(text, ", "); at > 0 {
		centre, isCentre := parseCentre(text[:at])
		radius, isRadius := parseRadius(text[at+1:])
		if isCentre && isRadius {
			centre.Radius = radius
			return centre, nil
		}
	}
	return Cone{}, fmt.Errorf("%w; or a position such as \"13:25:27.6 -43:01:08.8\", with or without a radius after it", err)
}

func parseCentre(text string) (Cone, bool) {
	ra, dec, ok := ParsePosition(text)
	if !ok {
		ra, dec, ok = PositionInName(text)
	}
	return Cone{ra, dec, DefaultRadius}, ok
}

// parseRadius parses 0.5, 0.5deg, 30' or 30arcmin, and returns degrees.
func parseRadius(text string) (float64, bool) {
	size := 1.0
	for _, unit := range radiusUnits {
		if number, ok := strings.CutSuffix(text, unit.mark); ok {
			text, size = number, unit.size
			break
		}
	}
	n, ok := decimalNumber(text)
	return n / size, ok && n >= 0 && n/size <= 180
}

// designation is the part of a source's name that tells its position in J2000.
var designation = regexp.MustCompile(`(?i)\bJ([0-9]{2})([0-9]{2})([0-9]{2}(?:\.[0-9]+)?)?([+-])([0-9]{2})([0-9]{2})([0-9]{2}(?:\.[0-9]+)?)?\b`)

// PositionInName reads the position that many sources have in their names, such as
// J0918-1205. It is as coarse as the name.
func PositionInName(name string) (ra, dec float64, ok bool) {
	parts := designation.FindStringSubmatch(strings.ReplaceAll(name, "−", "-"))
	if parts == nil {
		return 0, 0, false
	}
	ra, isRA := rightAscension(strings.TrimSuffix(strings.Join(parts[1:4], ":"), ":"))
	dec, isDec := declination(parts[4] + strings.TrimSuffix(strings.Join(parts[5:8], ":"), ":"))
	return ra, dec, isRA && isDec
}
