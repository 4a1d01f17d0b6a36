package sky

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// Cone is a circle on the sky: a centre and a radius, in degrees, ICRS.
type Cone struct {
	RA, Dec, Radius float64
}

// String returns RA,DEC,RADIUS.
func (c Cone) String() string { return fmt.Sprintf("%v,%v,%v", c.RA, c.Dec, c.Radius) }

// edge is added to the radius of a cone, so that a position on the rim lies
// within it. It is larger than the errors of the arithmetic, and smaller than
// what any telescope can resolve.
const edge = 1e-9

// Holds reports whether a position lies within the cone.
func (c Cone) Holds(ra, dec float64) bool {
	return separation(c.RA, c.Dec, ra, dec) <= c.Radius+edge
}

// separation returns the angle between two positions. This formula is accurate
// for near, distant and opposite positions, and at the poles.
func separation(ra1, dec1, ra2, dec2 float64) float64 {
	sin1, cos1 := math.Sincos(radians(dec1))
	sin2, cos2 := math.Sincos(radians(dec2))
	sinRA, cosRA := math.Sincos(radians(ra2 - ra1))
	across := math.Hypot(cos2*sinRA, cos1*sin2-sin1*cos2*cosRA)
	along := sin1*sin2 + cos1*cos2*cosRA
	return degrees(math.Atan2(across, along))
}

func radians(deg float64) float64 { return deg * (math.Pi / 180) }
func degrees(rad float64) float64 { return rad * (180 / math.Pi) }

// ParseCone parses RA,DEC,RADIUS, as String writes it. It also accepts a plus sign that arrived as a
// space.
func ParseCone(text string) (Cone, error) {
	parts := strings.Split(text, ",")
	var cone Cone
	bounds := [...]struct {
		name     string
		low, top float64
		value    *float64
	}{{"the right ascension", 0, 360, &cone.RA}, {"the declination", -90, 90, &cone.Dec}, {"the radius", 0, 180, &cone.Radius}}
	if len(parts) != len(bounds) {
		const form = "must be three numbers, separated by commas: right ascension, declination and radius, in degrees, such as 201.365,-43.019,0.5"
		switch {
		case strings.TrimSpace(text) == "":
			return Cone{}, errors.New(form)
		case len(parts) > len(bounds):
			return Cone{}, fmt.Errorf("%s; there are %d", form, len(parts))
		}
		return Cone{}, fmt.Errorf("%s; %s is missing", form, bounds[len(parts)].name)
	}
	for i, bound := range bounds {
		n, ok := decimalNumber(strings.TrimPrefix(parts[i], " "))
		if !ok || n < bound.low || n > bound.top {
			return Cone{}, fmt.Errorf("is not valid: %s must be a number of degrees from %g to %g", bound.name, bound.low, bound.top)
		}
		*bound.value = n
	}
	return cone, nil
}
