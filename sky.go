package oda

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

// edge is added to the radius of a cone, so that a position on the rim lies
// within it. It is larger than the errors of the arithmetic, and smaller than
// what any telescope can resolve.
const edge = 1e-9

// holds reports whether a position lies within the cone.
func (c Cone) holds(ra, dec float64) bool {
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

// parseCone parses RA,DEC,RADIUS. It also accepts a plus sign that arrived as a
// space.
func parseCone(text string) (Cone, error) {
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

// grid divides the sky into zones of declination, and each zone into cells of
// about the same width on the sky.
type grid struct {
	name byte
	size float64 // of a zone, in degrees
}

// The index lists each target under its cell in both grids. A small cone asks
// for fine cells, a large one for coarse cells.
var (
	fine   = grid{'f', 1}
	coarse = grid{'g', 15}
)

// manyCells is the largest number of fine cells that a cone asks for.
const manyCells = 300

// cell is the name of a cell: a letter and six digits.
type cell [7]byte

// cells returns the cells of a position.
func cells(ra, dec float64) [2]cell { return [...]cell{fine.at(ra, dec), coarse.at(ra, dec)} }

// at returns the cell of a position.
func (g grid) at(ra, dec float64) cell {
	zone := g.zone(dec)
	return g.cell(zone, g.column(ra, g.columns(zone)))
}

func (g grid) cell(zone, column int) cell {
	name := cell{g.name, '0', '0', '0', '0', '0', '0'}
	for i, n := len(name)-1, zone*1000+column; n > 0; i, n = i-1, n/10 {
		name[i] += byte(n % 10)
	}
	return name
}

func (g grid) zone(dec float64) int {
	return min(max(int(math.Floor((dec+90)/g.size)), 0), int(180/g.size)-1)
}

// columns returns the number of cells in a zone. It follows from the
// circumference at the middle of the zone.
func (g grid) columns(zone int) int {
	return max(int(math.Ceil(360/g.size*math.Cos(radians(g.middle(zone))))), 1)
}

// middle returns the declination of the middle of a zone.
func (g grid) middle(zone int) float64 { return (float64(zone)+0.5)*g.size - 90 }

func (g grid) column(ra float64, columns int) int {
	return min(max(int(math.Floor(ra/360*float64(columns))), 0), columns-1)
}

// cells returns the names of the cells that a cone touches, and perhaps of some
// next to it.
func (c Cone) cells() []string {
	if list := c.within(fine, manyCells); list != nil {
		return list
	}
	return c.within(coarse, math.MaxInt)
}

// within returns the cells of a grid around the cone, or nil if there are more
// than most.
func (c Cone) within(g grid, most int) []string {
	const margin = 1e-5 // for errors of the arithmetic, which are largest near a pole
	radius := c.Radius + margin
	south, north := c.Dec-radius, c.Dec+radius
	// How far the cone reaches in right ascension: all the way round at a pole.
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
		middle, corner := g.middle(zone), g.corner(zone, columns)
		for column := first; column <= last; column++ {
			if separation(c.RA, c.Dec, (float64(column)+0.5)*360/float64(columns), middle) > radius+corner {
				continue // the cone passes by the corner of the cell
			}
			if len(list) == most {
				return nil
			}
			name := g.cell(zone, (column+columns)%columns)
			list = append(list, string(name[:]))
		}
	}
	return list
}

// corner returns how far the corners of a zone's cells are from their middle.
func (g grid) corner(zone, columns int) float64 {
	middle, half := g.middle(zone), 180/float64(columns)
	return max(separation(0, middle, half, middle-g.size/2), separation(0, middle, half, middle+g.size/2))
}
