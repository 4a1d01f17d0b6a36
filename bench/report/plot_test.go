package report

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
)

// box is the room that a text takes in a picture.
type box struct {
	text                     string
	left, right, top, bottom float64
}

// boxes reads the texts of a picture back, as far as it is well-formed.
func boxes(t *testing.T, picture string) []box {
	t.Helper()
	type span struct {
		Gap   float64 `xml:"dx,attr"`
		Class string  `xml:"class,attr"`
		Text  string  `xml:",chardata"`
	}
	var svg struct {
		Texts []struct {
			X     float64 `xml:"x,attr"`
			Y     float64 `xml:"y,attr"`
			Class string  `xml:"class,attr"`
			Text  string  `xml:",chardata"`
			Spans []span  `xml:"tspan"`
		} `xml:"text"`
	}
	if err := xml.Unmarshal([]byte(picture), &svg); err != nil {
		t.Fatalf("the picture is not well-formed: %v\n%s", err, picture)
	}
	var found []box
	for _, e := range svg.Texts {
		size := textSize
		switch {
		case strings.Contains(e.Class, "title"):
			size = titleSize
		case strings.Contains(e.Class, "small"):
			size = smallSize
		}
		width := 0.0
		whole := ""
		for _, s := range append(e.Spans, span{Class: e.Class, Text: e.Text}) {
			part := textWidth(s.Text, size)
			if strings.Contains(s.Class, "strong") || strings.Contains(s.Class, "title") {
				part = boldWidth(s.Text, size)
			}
			width += part + s.Gap
			whole += s.Text
		}
		left := e.X
		switch {
		case strings.Contains(e.Class, "middle"):
			left -= width / 2
		case strings.Contains(e.Class, "end"):
			left -= width
		}
		found = append(found, box{whole, left, left + width, e.Y - 0.75*size, e.Y + 0.2*size})
	}
	return found
}

// checkPicture fails if the picture is not well-formed, if one of its texts
// lies over another or outside, or if a number in it is none.
func checkPicture(t *testing.T, p Plot) {
	t.Helper()
	picture := p.svg(newSlots([]Plot{p}))
	for _, bad := range []string{"NaN", "Inf", "e+", "<no value>", "%!"} {
		if strings.Contains(picture, bad) {
			t.Fatalf("%s: %q is in the picture:\n%s", p.ID, bad, picture)
		}
	}
	found := boxes(t, picture)
	for i, a := range found {
		if a.left < -0.5 || a.right > plotWidth+0.5 {
			t.Errorf("%s: %q reaches from %.0f to %.0f", p.ID, a.text, a.left, a.right)
		}
		for _, b := range found[:i] {
			if a.left < b.right-0.1 && b.left < a.right-0.1 && a.top < b.bottom-0.1 && b.top < a.bottom-0.1 {
				t.Errorf("%s: %q lies over %q", p.ID, a.text, b.text)
			}
		}
	}
}

func TestTextsOfASampleNeverCollide(t *testing.T) {
	for _, p := range sample().plots() {
		checkPicture(t, p)
	}
}

func TestTextsOfRandomPlotsNeverCollide(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	units := []string{"", "s", "B", "/s", "×"}
	names := []string{"bare", "oda on SQLite", "oda on PostgreSQL, batches of 16", "PocketBase", "Kinto", "rewriting the whole block", "raw SQLite, a transaction for each record"}
	for i := range 400 {
		p := Plot{
			ID: fmt.Sprintf("random-%d", i), Title: "Title of a plot", YLabel: "per second; higher is better", XLabel: "connections",
			Unit: units[random.IntN(len(units))], LogX: random.IntN(2) == 0, LogY: random.IntN(2) == 0,
		}
		scale := []float64{1e-5, 0.1, 1, 1e3, 1e7}[random.IntN(5)]
		for j := range 1 + random.IntN(12) {
			name := fmt.Sprintf("%s %d", names[random.IntN(len(names))], j)
			y := scale * random.ExpFloat64()
			if i%2 == 0 {
				p.Bars = append(p.Bars, Bar{Group: names[j/3%len(names)], Name: name, Y: y, Low: y * 0.7, High: y * 1.5, Highlight: j%2 == 0})
				continue
			}
			l := Line{Name: name, Reference: j == 0}
			for x := range 1 + random.IntN(9) {
				y *= 0.5 + random.Float64()
				l.Points = append(l.Points, Point{X: float64(int(1) << (2 * x)), Y: y, Low: y * 0.9, High: y * 1.2})
			}
			p.Lines = append(p.Lines, l)
		}
		checkPicture(t, p)
	}
}

func TestNoDataBreaksADrawing(t *testing.T) {
	values := []float64{nan, inf, -inf, 0, -1, 1e300, 5e-324, 1}
	for _, log := range []bool{false, true} {
		for _, unit := range []string{"", "s", "B"} {
			base := Plot{ID: "odd", Title: "Odd", YLabel: "numbers", Unit: unit, LogX: log, LogY: log}
			checkPicture(t, base)
			empty := base
			empty.Lines = []Line{{Name: "no points"}, {Name: "none drawable", Points: []Point{{X: nan, Y: nan}}}}
			checkPicture(t, empty)
			for _, a := range values {
				for _, b := range values {
					bars, lines := base, base
					bars.Bars = []Bar{{Name: "a", Y: a, Low: b, High: a}, {Name: "b", Y: b, Low: a, High: inf}}
					bars.Baseline = b
					lines.Lines = []Line{{Name: "l", Points: []Point{{X: a, Y: b, Low: nan, High: a}, {X: 1, Y: 1}, {X: b, Y: a, Low: -inf, High: inf}}}}
					checkPicture(t, bars)
					checkPicture(t, lines)
				}
			}
		}
	}
}

func TestTextIsEscaped(t *testing.T) {
	const odd = "a<b> & \"c\" \x00\xff ]]> 'd'"
	p := Plot{ID: "escaped", Title: odd, YLabel: odd, XLabel: odd, Bars: []Bar{{Group: odd, Name: odd, Note: odd, Y: 1}}}
	for range 2 {
		d := xml.NewDecoder(strings.NewReader(p.svg(slots{})))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		p.Bars, p.Lines = nil, []Line{{Name: odd, Points: []Point{{X: 1, Y: 1}}}}
	}
}

func TestALineIsBrokenWhereNothingIsKnown(t *testing.T) {
	p := Plot{ID: "gap", Lines: []Line{{Name: "l", Points: []Point{{X: 1, Y: 1}, {X: 2, Y: 2}, {X: 3, Y: nan}, {X: 4, Y: 2}, {X: 5, Y: 1}}}}}
	_, after, _ := strings.Cut(p.svg(slots{}), `class="curve s0"`)
	if after == "" {
		t.Fatal("there is no curve")
	}
	before, _, _ := strings.Cut(p.svg(slots{}), `" class="curve s0"`)
	d := before[strings.LastIndex(before, `"`)+1:]
	if strings.Count(d, "M") != 2 || strings.Count(d, "L") != 2 {
		t.Errorf("the curve is %q, want two pieces of two points", d)
	}
}

func TestScreenReadersHearTheNumbers(t *testing.T) {
	for _, p := range sample().plots() {
		picture := p.svg(slots{})
		if !strings.Contains(picture, `role="img" aria-labelledby="`+p.ID+`-title `+p.ID+`-desc"`) {
			t.Errorf("%s: nothing says what the picture is", p.ID)
		}
		if p.ID == "get-rate" && !strings.Contains(picture, "oda on SQLite: 43,200 (41,000–44,800), 0.83 of bare.") {
			t.Errorf("%s: the description has no numbers:\n%s", p.ID, picture)
		}
	}
}
