package oda

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Cone is a circle on the sky: a centre and a radius, in degrees, ICRS.
type Cone struct {
	RA, Dec, Radius float64
}

// edge is how far beyond its radius a cone still holds a position: less than any
// telescope tells apart, and more than the arithmetic errs, so that a position
// on the rim is within.
const edge = 1e-9

// holds tells whether a position lies within the cone.
func (c Cone) holds(ra, dec float64) bool {
	return separation(c.RA, c.Dec, ra, dec) <= c.Radius+edge
}

// separation is the angle between two positions. This form of it is exact for
// near, distant and opposite positions, and at the poles.
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

// parseCone reads RA,DEC,RADIUS. A plus sign that arrived as a space is
// understood.
func parseCone(text string) (Cone, error) {
	parts := strings.Split(text, ",")
	if len(parts) != 3 {
		return Cone{}, fmt.Errorf("must be three numbers with commas between: right ascension, declination and radius, in degrees, such as 201.365,-43.019,0.5")
	}
	var cone Cone
	for i, bound := range [...]struct {
		name     string
		low, top float64
		value    *float64
	}{{"the right ascension", 0, 360, &cone.RA}, {"the declination", -90, 90, &cone.Dec}, {"the radius", 0, 180, &cone.Radius}} {
		n, ok := decimalNumber(strings.TrimPrefix(parts[i], " "))
		if !ok || n < bound.low || n > bound.top {
			return Cone{}, fmt.Errorf("has %s that is no number of degrees from %g to %g", bound.name, bound.low, bound.top)
		}
		*bound.value = n
	}
	return cone, nil
}

// decimalForm is a number in decimal digits; not the hexadecimal ones, the
// infinities and the names that strconv reads besides.
var decimalForm = regexp.MustCompile(`^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$`)

func decimalNumber(text string) (float64, bool) {
	if !decimalForm.MatchString(text) {
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil
}

// A grid divides the sky into zones of declination, and each zone into cells of
// about the same width on the sky.
type grid struct {
	name byte
	size float64 // of a zone, in degrees
}

// The index has each target under its cell in both grids. A small cone asks for
// fine cells, a large one for coarse cells.
var (
	fine   = grid{'f', 1}
	coarse = grid{'g', 15}
)

// manyCells is how many fine cells a cone asks for at most.
const manyCells = 300

// cells are the cells of a position.
func cells(ra, dec float64) []string {
	return []string{fine.at(ra, dec), coarse.at(ra, dec)}
}

// at is the cell of a position.
func (g grid) at(ra, dec float64) string {
	zone := g.zone(dec)
	return g.cell(zone, g.column(ra, g.columns(zone)))
}

// cell names a cell by a letter and six digits.
func (g grid) cell(zone, column int) string {
	name := [...]byte{g.name, '0', '0', '0', '0', '0', '0'}
	for i, n := len(name)-1, zone*1000+column; n > 0; i, n = i-1, n/10 {
		name[i] += byte(n % 10)
	}
	return string(name[:])
}

func (g grid) zone(dec float64) int {
	return min(max(int(math.Floor((dec+90)/g.size)), 0), int(180/g.size)-1)
}

// columns is the number of cells in a zone, by its middle.
func (g grid) columns(zone int) int {
	middle := (float64(zone)+0.5)*g.size - 90
	return max(int(math.Ceil(360/g.size*math.Cos(radians(middle)))), 1)
}

func (g grid) column(ra float64, columns int) int {
	return min(max(int(math.Floor(ra/360*float64(columns))), 0), columns-1)
}

// cells are those that a cone touches, and perhaps others beside it.
func (c Cone) cells() []string {
	if list := c.within(fine, manyCells); list != nil {
		return list
	}
	return c.within(coarse, math.MaxInt)
}

// within gives the cells of a grid around the cone, nil where there are more
// than so many.
func (c Cone) within(g grid, most int) []string {
	const margin = 1e-5 // for the arithmetic: near a pole the reach errs most
	radius := c.Radius + margin
	south, north := c.Dec-radius, c.Dec+radius
	// How far the cone reaches in right ascension. Around a pole, all round.
	reach := 180.0
	if south > -90 && north < 90 {
		reach = degrees(math.Asin(min(math.Sin(radians(radius))/math.Cos(radians(c.Dec)), 1))) + margin
	}
	var list []string
	for zone := g.zone(south); zone <= g.zone(north); zone++ {
		columns := g.columns(zone)
		first, last := 0, columns-1
		if wide := 360 / float64(columns); 2*reach+2*wide < 360 {
			first = int(math.Floor((c.RA - reach) / wide))
			last = int(math.Floor((c.RA + reach) / wide))
		}
		if len(list)+last-first+1 > most {
			return nil
		}
		for column := first; column <= last; column++ {
			list = append(list, g.cell(zone, (column+columns)%columns))
		}
	}
	return list
}
