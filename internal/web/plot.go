package web

import (
	"fmt"
	"strconv"
)

// The drawing of a night is as wide as the window, and no higher than a sheet of paper
// lets it be. So the bars are stretched, and the texts, which are not, stand at percentages.

// Box is the part of the drawing right of the names, which is stretched.
func (p nightPlot) Box() string {
	return fmt.Sprintf("%d 0 %d %d", plotLeft, p.Width-plotLeft, p.Height)
}

// Across is where a coordinate is in that part.
func (p nightPlot) Across(x int) string { return percent(x-plotLeft, p.Width-plotLeft) }

// Down is where a coordinate is in the height.
func (p nightPlot) Down(y int) string { return percent(y, p.Height) }

func percent(part, of int) string {
	return strconv.FormatFloat(100*float64(part)/float64(of), 'f', 2, 64) + "%"
}
