package sky

import "math"

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

// Cell is the name of a cell: a letter and six digits.
type Cell [7]byte

// CellsAt returns the cells of a position.
func CellsAt(ra, dec float64) [2]Cell { return [...]Cell{fine.at(ra, dec), coarse.at(ra, dec)} }

// at returns the cell of a position.
func (g grid) at(ra, dec float64) Cell {
	zone := g.zone(dec)
	return g.cell(zone, g.column(ra, g.columns(zone)))
}

func (g grid) cell(zone, column int) Cell {
	name := Cell{g.name, '0', '0', '0', '0', '0', '0'}
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

// Cells returns the names of the cells that a cone touches, and perhaps of some
// next to it.
func (c Cone) Cells() []string {
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
