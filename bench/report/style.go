package report

import (
	"fmt"
	"strings"
)

// tone is a colour on a light page and on a dark one.
type tone struct{ light, dark string }

// palette has the colours of lines. They differ in lightness as well as in hue,
// so that they stay apart for readers who do not tell red from green, and each
// can be read as text on its page. Lines also differ in their markers.
var palette = [...]tone{
	{"#0a66b0", "#4f9fec"}, // blue
	{"#c94c00", "#f5854a"}, // vermilion
	{"#0a5a44", "#45d6a5"}, // green
	{"#c2358a", "#ee9fe6"}, // purple
	{"#5c4200", "#f7e07a"}, // ochre
	{"#14181d", "#ffffff"}, // ink
}

// Tones of everything else.
var (
	ink    = tone{"#1f2328", "#e6edf3"} // text
	muted  = tone{"#59636e", "#9aa4af"} // axis labels, notes
	rule   = tone{"#d8dee4", "#343b44"} // grid
	plain  = tone{"#aab4be", "#5a6571"} // bars of peers
	accent = tone{"#3d8bd4", "#2f7fcb"} // bars of oda
	warn   = tone{"#e0803f", "#c9682a"} // what misses a budget
)

// fonts are those of the reader's system.
const fonts = `system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","Helvetica Neue",Arial,sans-serif`

// stylesheet gives each class its colours. A plot has no background: it stands
// on the page's own, light or dark.
func stylesheet() string {
	var s strings.Builder
	fmt.Fprintf(&s, "text{font-family:%s;font-size:%gpx;font-variant-numeric:tabular-nums}\n", fonts, textSize)
	fmt.Fprintf(&s, ".title{font-size:%gpx;font-weight:600}.small{font-size:%gpx}.strong{font-weight:600}\n", titleSize, smallSize)
	s.WriteString(".middle{text-anchor:middle}.end{text-anchor:end}\n")
	s.WriteString(".curve{fill:none;stroke-width:2.25;stroke-linejoin:round;stroke-linecap:round}.dashed{stroke-dasharray:6 5}.broken{stroke-dasharray:12 4}\n")
	s.WriteString(".whisker{fill:none;stroke-width:1.25}.faint{opacity:.6}.dotted{stroke-dasharray:1.5 4;stroke-linecap:round}\n")
	colours(&s, func(t tone) string { return t.light })
	s.WriteString("@media (prefers-color-scheme:dark){\n")
	colours(&s, func(t tone) string { return t.dark })
	s.WriteString("}\n")
	return s.String()
}

func colours(s *strings.Builder, of func(tone) string) {
	fmt.Fprintf(s, ".ink{fill:%s}.muted{fill:%s}.grid{stroke:%s}.base{stroke:%s}\n", of(ink), of(muted), of(rule), of(muted))
	fmt.Fprintf(s, ".plain{fill:%s}.accent{fill:%s}.warn{fill:%s}.error{stroke:%s}\n", of(plain), of(accent), of(warn), of(ink))
	fmt.Fprintf(s, ".sr{stroke:%s}.fr{fill:%s}", of(muted), of(muted))
	for i, t := range palette {
		fmt.Fprintf(s, ".s%d{stroke:%s}.f%d{fill:%s}", i, of(t), i, of(t))
	}
	s.WriteString("\n")
}

// slots gives every line of a report its colour: the same name has the same
// colour in every plot, as far as there are colours.
type slots map[string]int

// newSlots numbers the names of lines in the order in which they appear.
func newSlots(plots []Plot) slots {
	s := slots{}
	for _, p := range plots {
		for _, l := range p.Lines {
			if _, known := s[l.Name]; !known && !l.Reference {
				s[l.Name] = len(s)
			}
		}
	}
	return s
}

// of gives the lines of one plot their colours. Where two names share one, the
// later takes the next that is free; when all are taken, the next lap begins:
// a slot less the length of the palette is the same colour with another look.
func (s slots) of(lines []Line) []int {
	taken := map[int]bool{}
	slot := make([]int, len(lines))
	for i, l := range lines {
		if l.Reference {
			continue
		}
		n := len(palette)
		lap := len(taken) / n * n
		at := s[l.Name] % n
		for taken[lap+at] {
			at = (at + 1) % n
		}
		slot[i] = lap + at
		taken[slot[i]] = true
	}
	return slot
}
