package sky

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

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
	ra, isRA := RightAscension(parts[0])
	dec, isDec := Declination(parts[1])
	return ra, dec, isRA && isDec
}

// DefaultRadius is that of a cone of which only the centre is given, in degrees.
const DefaultRadius = 1

// radiusUnits are how many of them a degree has.
var radiusUnits = []struct {
	mark string
	size float64
}{{"arcmin", 60}, {"arcsec", 3600}, {"deg", 1}, {"°", 1}, {"d", 1}, {"'", 60}, {"′", 60}, {"\"", 3600}, {"″", 3600}}

// ReadCone reads a circle on the sky as people write it: RA,DEC,RADIUS in degrees; or
// a position as ParsePosition takes it, or the name of a source that tells it, perhaps
// with a radius after it, which may have a unit.
func ReadCone(text string) (Cone, error) {
	cone, err := ParseCone(text)
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
	ra, isRA := RightAscension(strings.TrimSuffix(strings.Join(parts[1:4], ":"), ":"))
	dec, isDec := Declination(parts[4] + strings.TrimSuffix(strings.Join(parts[5:8], ":"), ":"))
	return ra, dec, isRA && isDec
}
