package report

import (
	"math"
	"strconv"
	"testing"
)

// The pages that plots are read on.
const (
	lightPage = "#ffffff"
	darkPage  = "#0d1117"
)

type rgb [3]float64

// linear gives the three channels as amounts of light.
func linear(t *testing.T, hex string) rgb {
	t.Helper()
	var c rgb
	for i := range c {
		v, err := strconv.ParseUint(hex[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		if s := float64(v) / 255; s <= 0.04045 {
			c[i] = s / 12.92
		} else {
			c[i] = math.Pow((s+0.055)/1.055, 2.4)
		}
	}
	return c
}

func contrast(a, b rgb) float64 {
	light := func(c rgb) float64 { return 0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2] + 0.05 }
	return max(light(a)/light(b), light(b)/light(a))
}

// 4.5 is what WCAG asks of text.
func TestEveryTextHasContrast(t *testing.T) {
	for _, c := range append(palette[:], ink, muted) {
		if got := contrast(linear(t, c.light), linear(t, lightPage)); got < 4.5 {
			t.Errorf("%s has a contrast of %.1f on a light page", c.light, got)
		}
		if got := contrast(linear(t, c.dark), linear(t, darkPage)); got < 4.5 {
			t.Errorf("%s has a contrast of %.1f on a dark page", c.dark, got)
		}
	}
}

// sights are ways to see: matrices over linear light after Machado, Oliveira
// and Fernandes (2009), for the whole loss of one kind of cone.
var sights = map[string][3]rgb{
	"all cones":    {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
	"protanopia":   {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
	"deuteranopia": {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
	"tritanopia":   {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}},
}

// lab is a colour as it is seen, in CIE L*a*b*: distances are differences.
func lab(c rgb, sight [3]rgb) rgb {
	var seen rgb
	for i, row := range sight {
		seen[i] = max(0, row[0]*c[0]+row[1]*c[1]+row[2]*c[2])
	}
	x := (0.4124*seen[0] + 0.3576*seen[1] + 0.1805*seen[2]) / 0.95047
	y := 0.2126*seen[0] + 0.7152*seen[1] + 0.0722*seen[2]
	z := (0.0193*seen[0] + 0.1192*seen[1] + 0.9505*seen[2]) / 1.08883
	f := func(v float64) float64 {
		if v > 0.008856 {
			return math.Cbrt(v)
		}
		return 7.787*v + 16.0/116
	}
	return rgb{116*f(y) - 16, 500 * (f(x) - f(y)), 200 * (f(y) - f(z))}
}

func TestColoursOfLinesDifferForEverySight(t *testing.T) {
	const apart = 13
	for name, sight := range sights {
		for i, a := range palette {
			for _, b := range palette[:i] {
				for _, pair := range [][2]string{{a.light, b.light}, {a.dark, b.dark}} {
					p, q := lab(linear(t, pair[0]), sight), lab(linear(t, pair[1]), sight)
					if d := math.Hypot(math.Hypot(p[0]-q[0], p[1]-q[1]), p[2]-q[2]); d < apart {
						t.Errorf("with %s, %s and %s are only %.0f apart", name, pair[0], pair[1], d)
					}
				}
			}
		}
	}
}

func TestALineKeepsItsColourFromPlotToPlot(t *testing.T) {
	named := func(names ...string) []Line {
		lines := make([]Line, len(names))
		for i, name := range names {
			lines[i] = Line{Name: name, Reference: name == "bare"}
		}
		return lines
	}
	plots := []Plot{{Lines: named("bare", "a", "b", "c")}, {Lines: named("b", "a")}}
	colours := newSlots(plots)
	if got := colours.of(plots[0].Lines); got[1] != 0 || got[2] != 1 || got[3] != 2 {
		t.Errorf("the first plot has %v", got)
	}
	if got := colours.of(plots[1].Lines); got[0] != 1 || got[1] != 0 {
		t.Errorf("the second plot has %v", got)
	}

	many := named("1", "2", "3", "4", "5", "6", "7", "8", "7")
	seen := map[int]bool{}
	for i, slot := range newSlots([]Plot{{Lines: many}}).of(many) {
		if seen[slot] {
			t.Errorf("line %d shares its look", i)
		}
		seen[slot] = true
	}
}
