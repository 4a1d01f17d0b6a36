package report

import (
	"fmt"
	"strconv"
	"strings"
)

// plotWidth is the width of every plot; the height follows from what is in it.
const plotWidth = 760.0

// noteGap is the space between a value and the note behind it.
const noteGap = 7.0

// canvas gathers the elements of a picture.
type canvas struct{ body strings.Builder }

// px writes a coordinate: tenths are finer than any screen.
func px(v float64) string {
	text := strconv.FormatFloat(v, 'f', 1, 64)
	text = strings.TrimSuffix(text, ".0")
	if text == "-0" {
		return "0"
	}
	return text
}

// escape makes a text fit for XML. Characters that XML cannot hold at all are
// replaced.
func escape(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0xFFFE || r == 0xFFFF {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(text)
}

func (c *canvas) text(x, y float64, class, text string) {
	fmt.Fprintf(&c.body, `<text x="%s" y="%s" class="%s">%s</text>`+"\n", px(x), px(y), class, escape(text))
}

// label is a value with a quieter note behind it.
func (c *canvas) label(x, y float64, value, note string, strong bool) {
	class := "ink"
	if strong {
		class += " strong"
	}
	c.tagged(x, y, class, value, note)
}

// tagged is a text with a quieter one behind it.
func (c *canvas) tagged(x, y float64, class, text, behind string) {
	fmt.Fprintf(&c.body, `<text x="%s" y="%s"><tspan class="%s">%s</tspan>`, px(x), px(y), class, escape(text))
	if behind != "" {
		fmt.Fprintf(&c.body, `<tspan dx="%s" class="muted">%s</tspan>`, px(noteGap), escape(behind))
	}
	c.body.WriteString("</text>\n")
}

func (c *canvas) line(x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(&c.body, `<path d="M%s %sL%s %s" class="%s"/>`+"\n", px(x1), px(y1), px(x2), px(y2), class)
}

func (c *canvas) path(d, class string) {
	fmt.Fprintf(&c.body, `<path d="%s" class="%s"/>`+"\n", d, class)
}

// bar is a rectangle that is rounded where it ends and square where it begins.
func (c *canvas) bar(from, to, top, height float64, class string) {
	r := min(3, abs(to-from))
	if to < from {
		r = -r
	}
	d := fmt.Sprintf("M%s %sH%sq%s 0 %s %sv%sq0 %s %s %sH%sz",
		px(from), px(top), px(to-r), px(r), px(r), px(abs(r)), px(height-2*abs(r)), px(abs(r)), px(-r), px(abs(r)), px(from))
	c.path(d, class)
}

// whisker is the spread along a horizontal bar.
func (c *canvas) whisker(from, to, y float64, class string) {
	const arm = 3
	c.path(fmt.Sprintf("M%s %sv%sm0 %sH%sm0 %sv%s",
		px(from), px(y-arm), px(2*arm), px(-arm), px(to), px(-arm), px(2*arm)), class)
}

// upright is the spread of a point.
func (c *canvas) upright(x, from, to float64, capped bool, class string) {
	if !capped {
		c.line(x, from, x, to, class)
		return
	}
	const arm = 3
	c.path(fmt.Sprintf("M%s %sh%sm%s 0V%sm%s 0h%s",
		px(x-arm), px(from), px(2*arm), px(-arm), px(to), px(-arm), px(2*arm)), class)
}

// dot is a marker that stands for itself, without a line through it.
func (c *canvas) dot(x, y float64, class string) {
	fmt.Fprintf(&c.body, `<circle cx="%s" cy="%s" r="6" class="%s"/>`+"\n", px(x), px(y), class)
}

// marker sets one of six shapes around a point.
func (c *canvas) marker(shape int, x, y float64, class string) {
	at := func(dx, dy float64) string { return px(x+dx) + " " + px(y+dy) }
	switch shape % len(palette) {
	case 0:
		fmt.Fprintf(&c.body, `<circle cx="%s" cy="%s" r="4" class="%s"/>`+"\n", px(x), px(y), class)
	case 1:
		c.path("M"+at(-3.7, -3.7)+"h7.4v7.4h-7.4z", class)
	case 2:
		c.path("M"+at(0, -5)+"L"+at(4.8, 3.5)+"H"+px(x-4.8)+"z", class)
	case 3:
		c.path("M"+at(0, -5.2)+"L"+at(5.2, 0)+"L"+at(0, 5.2)+"L"+at(-5.2, 0)+"z", class)
	case 4:
		c.path("M"+at(0, 5)+"L"+at(4.8, -3.5)+"H"+px(x-4.8)+"z", class)
	default:
		c.path("M"+at(-5, -1.6)+"h3.4v-3.4h3.2v3.4h3.4v3.2h-3.4v3.4h-3.2v-3.4h-3.4z", class)
	}
}

// picture closes the drawing: the frame, what a screen reader says, the style.
func (c *canvas) picture(p *Plot, description string, height float64) string {
	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %s %s" role="img" aria-labelledby="%s-title %s-desc">`+"\n",
		px(plotWidth), px(height), px(plotWidth), px(height), escape(p.ID), escape(p.ID))
	fmt.Fprintf(&s, `<title id="%s-title">%s</title>`+"\n", escape(p.ID), escape(p.Title))
	fmt.Fprintf(&s, `<desc id="%s-desc">%s</desc>`+"\n", escape(p.ID), escape(description))
	fmt.Fprintf(&s, "<style>\n%s</style>\n", stylesheet())
	s.WriteString(c.body.String())
	s.WriteString("</svg>\n")
	return s.String()
}

func abs(v float64) float64 { return max(v, -v) }
