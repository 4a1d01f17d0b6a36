package web

import (
	"fmt"
	"strconv"
)

// The drawing of a night is as wide as the window, and fits the height of a sheet of
// paper. So the bars are stretched; the texts are not, and are placed in per cent.

// Box is the part of the drawing that is stretched, right of the names.
func (p nightPlot) Box() string {
	return fmt.Sprintf("%d 0 %d %d", plotLeft, p.Width-plotLeft, p.Height)
}

// Across places a coordinate in the width of that part.
func (p nightPlot) Across(x int) string { return percent(x-plotLeft, p.Width-plotLeft) }

// Down places a coordinate in the height.
func (p nightPlot) Down(y int) string { return percent(y, p.Height) }

func percent(part, of int) string {
	return strconv.FormatFloat(100*float64(part)/float64(of), 'f', 2, 64) + "%"
}
