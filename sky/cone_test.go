package sky

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// vectorSeparation returns the angle between two positions, computed from their
// unit vectors.
func vectorSeparation(ra1, dec1, ra2, dec2 float64) float64 {
	vector := func(ra, dec float64) [3]float64 {
		ra, dec = ra*math.Pi/180, dec*math.Pi/180
		return [3]float64{math.Cos(dec) * math.Cos(ra), math.Cos(dec) * math.Sin(ra), math.Sin(dec)}
	}
	a, b := vector(ra1, dec1), vector(ra2, dec2)
	cross := [3]float64{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}
	sin := math.Sqrt(cross[0]*cross[0] + cross[1]*cross[1] + cross[2]*cross[2])
	return math.Atan2(sin, a[0]*b[0]+a[1]*b[1]+a[2]*b[2]) * 180 / math.Pi
}

// awkward lists positions where spherical trigonometry and grids tend to fail.
func awkward() [][2]float64 {
	var all [][2]float64
	for _, ra := range []float64{0, 1e-12, 1e-5, 0.5, 1, 15, 89.99999, 90, 179.9999999, 180, 180.0000001, 270, 359, 359.5, 359.99999, math.Nextafter(360, 0)} {
		for _, dec := range []float64{-90, -89.9999999, -89.5, -75, -45, -1, -1e-12, 0, 1e-5, 14.9999999, 15, 45.5, 89, 89.5, 89.99999999, 90} {
			all = append(all, [2]float64{ra, dec})
		}
	}
	return all
}

// checkCone checks that a cone holds what plain trigonometry says, and that the
// cells of each position that it holds are among its own.
func checkCone(t *testing.T, cone Cone, ra, dec float64) {
	t.Helper()
	plain := vectorSeparation(cone.RA, cone.Dec, ra, dec)
	within := cone.Holds(ra, dec)
	// Unit vectors lose digits, so near the rim they prove nothing.
	if math.Abs(plain-cone.Radius) > 1e-7 && within != (plain <= cone.Radius) {
		t.Fatalf("%+v and %v,%v: within is %v, and they are %v apart", cone, ra, dec, within, plain)
	}
	if !within {
		return
	}
	asked := cone.Cells()
	own := CellsAt(ra, dec)
	if !slices.ContainsFunc(own[:], func(c Cell) bool { return slices.Contains(asked, string(c[:])) }) {
		t.Fatalf("%+v holds %v,%v, whose cells %s are not among its %d", cone, ra, dec, own, len(asked))
	}
}

func TestConesAgreeWithPlainTrigonometry(t *testing.T) {
	radii := []float64{0, 1e-9, 1e-4, 0.5, 1, 3, 14.9, 15, 45, 89.9999999, 90, 135, 179, 180}
	for n, centre := range awkward() {
		for _, radius := range radii {
			cone := Cone{centre[0], centre[1], radius}
			if asked := cone.Cells(); len(asked) > manyCells {
				t.Fatalf("%+v asks for %d cells", cone, len(asked))
			}
		}
		for i, at := range awkward() {
			if i%3 == n%3 {
				checkCone(t, Cone{centre[0], centre[1], radii[i%len(radii)]}, at[0], at[1])
			}
		}
		for _, antipode := range [][2]float64{{math.Mod(centre[0]+180, 360), -centre[1]}} {
			checkCone(t, Cone{centre[0], centre[1], 179.9}, antipode[0], antipode[1])
			checkCone(t, Cone{centre[0], centre[1], 180}, antipode[0], antipode[1])
		}
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 10_000 {
		// Uniform on the sphere, and close to each other half of the time.
		ra, dec := random.Float64()*360, math.Asin(2*random.Float64()-1)*180/math.Pi
		radius := math.Pow(10, random.Float64()*5-3)
		cone := Cone{ra, dec, math.Min(radius, 180)}
		near := 2 * radius * random.Float64()
		bearing := random.Float64() * 2 * math.Pi
		checkCone(t, cone, math.Mod(ra+near*math.Cos(bearing)/math.Max(math.Cos(dec*math.Pi/180), 1e-6)+720, 360),
			math.Max(-90, math.Min(90, dec+near*math.Sin(bearing))))
		checkCone(t, cone, random.Float64()*360, math.Asin(2*random.Float64()-1)*180/math.Pi)
	}
}

func TestPositionsOnTheRimAreWithin(t *testing.T) {
	for _, test := range []struct {
		cone    Cone
		ra, dec float64
	}{
		{Cone{204.253829, -29.865761, 0}, 204.253829, -29.865761},
		{Cone{0, 0, 1}, 359, 0},
		{Cone{359, 0, 1}, 0, 0},
		{Cone{0.25, 10, 0.5}, 0.25, 10.5},
		{Cone{12, 90, 1}, 300, 89},
		{Cone{77, -90, 0}, 201, -90},
		{Cone{0, 89.5, 1}, 180, 89.5},
		{Cone{10, 20, 180}, 190, -20},
		{Cone{360, 5, 0}, 0, 5},
	} {
		if !test.cone.Holds(test.ra, test.dec) {
			t.Errorf("%+v does not hold %v,%v: they are %v apart", test.cone, test.ra, test.dec, separation(test.cone.RA, test.cone.Dec, test.ra, test.dec))
		}
		checkCone(t, test.cone, test.ra, test.dec)
	}
}

// A cone must not ask the index for the whole sky.
func TestASmallConeAsksForFewCells(t *testing.T) {
	for _, test := range []struct {
		cone Cone
		most int
	}{{Cone{120, 0, 0.1}, 4}, {Cone{0, 45, 0.5}, 9}, {Cone{0, 89.9, 0.05}, 8}, {Cone{0, 60, 5}, 115}, {Cone{200, -20, 3}, 50}} {
		if n := len(test.cone.Cells()); n > test.most {
			t.Errorf("%+v asks for %d cells", test.cone, n)
		}
	}
}

func TestConesAsPeopleWriteThem(t *testing.T) {
	for text, want := range map[string]Cone{
		"201.365,-43.019,0.5":           {201.365, -43.019, 0.5},
		"10,20,1":                       {10, 20, 1},
		"201.365 -43.019":               {201.365, -43.019, 1},
		"201.365,-43.019":               {201.365, -43.019, 1},
		"13:00:00 -43:30:00":            {195, -43.5, 1},
		"13:00:00,-43:30:00,0.5":        {195, -43.5, 0.5},
		"13:00:00 -43:30:00 0.5":        {195, -43.5, 0.5},
		"13h00m00s −43°30′00″, 30'":     {195, -43.5, 0.5},
		"13 00 00 -43 30 00":            {195, -43.5, 1},
		"13 00 00 -43 30 00 1800arcsec": {195, -43.5, 0.5},
		"13:00:00, -43:30:00, 0.25°":    {195, -43.5, 0.25},
		"PKS J1300-4330":                {195, -43.5, 1},
		" 201.365  -43.019 2deg ":       {201.365, -43.019, 2},
	} {
		if got, err := ReadCone(text); err != nil || got != want {
			t.Errorf("%q is read as %+v, %v", text, got, err)
		}
	}
	for text, says := range map[string]string{
		"":                         "three numbers",
		"M51":                      "the declination is missing",
		"1,2":                      "the radius is missing",
		"201.365 -43.019 181":      "such as",
		"201.365 -43.019 -1":       "such as",
		"201.365 -43.019 0.5 1":    "such as",
		"25:00:00 -43:30:00 0.5":   "such as",
		"13:00:00 -43:30:00 1lamp": "such as",
	} {
		if got, err := ReadCone(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q is read as %+v, %v", text, got, err)
		}
	}
}

func TestCones(t *testing.T) {
	for text, want := range map[string]Cone{
		"201.365,-43.019,0.5": {201.365, -43.019, 0.5},
		"0,90,180":            {0, 90, 180},
		"360,-90,0":           {360, -90, 0},
		"1e1, 4.5,1.5E-3":     {10, 4.5, 1.5e-3}, // the space was a plus
		"+1,+2,.5":            {1, 2, 0.5},
	} {
		if got, err := ParseCone(text); err != nil || got != want {
			t.Errorf("%q is read as %+v, %v", text, got, err)
		}
	}
	for text, says := range map[string]string{
		"":             "three numbers",
		"1":            "the declination is missing",
		"1,2":          "the radius is missing",
		"1,2,3,4":      "three numbers, separated by commas: right ascension, declination and radius, in degrees, such as 201.365,-43.019,0.5; there are 4",
		"-1,2,3":       "the right ascension",
		"361,2,3":      "the right ascension",
		"1,90.1,3":     "the declination",
		"1,2,-0.1":     "the radius",
		"1,2,181":      "the radius",
		"nan,2,3":      "the right ascension",
		"1,inf,3":      "the declination",
		"1,2,0x1p2":    "the radius",
		"1,2,":         "the radius",
		"13:37:00,1,2": "the right ascension",
		"1,2,1e999":    "the radius",
		"1,2,1_0":      "the radius",
	} {
		if got, err := ParseCone(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q is read as %+v, %v", text, got, err)
		}
	}
}
