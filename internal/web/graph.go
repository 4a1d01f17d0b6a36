package web

import (
	"cmp"
	"slices"

	"oda"
)

// graph is a family drawn: a column for each kind, from the Project to what was
// observed. Coordinates are those of the drawing.
type graph struct {
	Width, Height int
	Columns       []column
	Boxes         []box
	Lines         []line
}

type column struct {
	X    int
	Kind oda.Kind
}

type box struct {
	X, Y, W, H int
	Node       relative
	Texts      []boxText
	Href       string
}

// boxText is a line of text in a box, as much of it as there is room for.
type boxText struct {
	Y     int
	Text  string
	Small bool
	Class *oda.Class // of a status
}

// Mark is where the mark before a status begins.
func (t boxText) Mark() int { return t.Y - 10 }

type line struct {
	X1, Y1, X2, Y2, Mid int
}

// Sizes of the drawing.
const (
	boxWidth, boxHeight = 210, 46 // of one with two lines
	lineHeight          = 17
	boxGap, columnGap   = 12, 64
	graphTop            = 30
	graphMargin         = 4
	roomForName         = 27 // characters
	roomForID           = 25
	roomForStatus       = 22 // behind its mark
)

// columnsOf are the kinds as they stand in the drawing.
var columnsOf = []oda.Kind{oda.Project, oda.SBDefinition, oda.SBInstance, oda.ExecutionBlock}

// Graph draws the family. A family of one is not worth a drawing.
func (v *entityView) Graph() *graph {
	if len(v.Family.Nodes) < 2 {
		return nil
	}
	g := &graph{}
	at := make(map[oda.Ref]box)
	x, tallest := graphMargin, 0
	height := boxHeight // of all boxes
	for _, n := range v.Family.Nodes {
		height = max(height, boxHeight+lineHeight*(len(n.texts())-2))
	}
	var used [][]relative
	for _, kind := range columnsOf {
		var nodes []relative
		for _, n := range v.Family.Nodes {
			if n.Kind == kind {
				nodes = append(nodes, n)
			}
		}
		if len(nodes) == 0 {
			continue
		}
		// What is looked at comes first in its column; then by title, the newest first as in lists.
		slices.SortStableFunc(nodes, func(a, b relative) int {
			switch {
			case a.Self:
				return -1
			case b.Self:
				return 1
			}
			return cmp.Or(cmp.Compare(a.Title, b.Title), cmp.Compare(b.Began, a.Began))
		})
		used = append(used, nodes)
		g.Columns = append(g.Columns, column{x, kind})
		tallest = max(tallest, len(nodes))
		x += boxWidth + columnGap
	}
	for i, nodes := range used {
		y := graphTop + (tallest-len(nodes))*(height+boxGap)/2
		for _, n := range nodes {
			b := box{X: g.Columns[i].X, Y: y, W: boxWidth, H: height, Node: n, Texts: n.texts()}
			for i := range b.Texts {
				b.Texts[i].Y = (height-lineHeight*(len(b.Texts)-1)+9)/2 + lineHeight*i
			}
			if n.Exists && !n.Self {
				b.Href = v.ReferenceHref(oda.Reference{Kind: n.Kind, ID: n.ID, Version: n.Past})
			}
			at[n.Ref] = b
			g.Boxes = append(g.Boxes, b)
			y += height + boxGap
		}
	}
	for _, e := range v.Family.Edges {
		from, to := at[e.from], at[e.to]
		if from.X > to.X {
			from, to = to, from
		}
		l := line{X1: from.X + boxWidth, Y1: from.Y + height/2, X2: to.X, Y2: to.Y + height/2}
		l.Mid = l.X2 - columnGap/2
		g.Lines = append(g.Lines, l)
	}
	g.Width = x - columnGap + graphMargin
	g.Height = graphTop + tallest*(height+boxGap)
	return g
}

// texts are the lines in the box of an entity.
func (n *relative) texts() (lines []boxText) {
	if n.Title != "" {
		lines = append(lines, boxText{Text: clipped(n.Title, roomForName)})
	}
	lines = append(lines, boxText{Text: clipped(n.ID, roomForID), Small: true})
	if n.Began != "" {
		lines = append(lines, boxText{Text: n.Began, Small: true})
	}
	if n.Status.Text != "" {
		lines = append(lines, boxText{Text: clipped(n.Status.Text, roomForStatus), Class: &n.Status.Class})
	}
	return lines
}

// clipped is as much of a text as there is room for.
func clipped(text string, room int) string {
	runes := []rune(text)
	if len(runes) > room {
		return string(runes[:room-1]) + "…"
	}
	return text
}
