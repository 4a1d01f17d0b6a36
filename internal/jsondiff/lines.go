package jsondiff

import "hash/maphash"

// Line is a line of a text that is shown next to another.
type Line struct {
	Text   string
	Indent int
	Key    string // two lines that differ are one line that has changed, if they have the same key
	Comma  bool   // a comma follows, which is no part of what the line says
}

func (l Line) same(other Line) bool { return l.Indent == other.Indent && l.Text == other.Text }

// Lines prints a document with a value to a line, or returns false if it has more
// than most lines. Hidden are pointers as for Unified.
func Lines(document []byte, most int, hidden ...string) ([]Line, bool) {
	p := pretty{read(document), hide(hidden)}
	pieces, all := gather(p.lines(), most)
	if !all {
		return nil, false
	}
	lines := make([]Line, len(pieces))
	var room []byte
	for i, piece := range pieces {
		comma := piece.flags&hasComma != 0
		piece.flags &^= hasComma
		room = p.appendText(room[:0], piece)
		lines[i] = Line{Text: string(room), Indent: int(min(piece.indent, deepest)), Comma: comma}
		if piece.flags&hasKey != 0 {
			lines[i].Key = lines[i].Text[:p.stringEnd(int(piece.start))-int(piece.start)]
		}
	}
	return lines, true
}

// Row is a line of one text next to a line of the other, by their places; -1 if
// there is none.
type Row struct {
	From, To int
	Same     bool // the lines say the same
	Kin      bool // they are one line that has changed
}

const (
	alignCells = 1 << 22 // of all tables that compare lines one by one
	kinCells   = 1 << 14 // of a table that looks for lines with the same key
)

// Align puts the lines of two texts next to each other.
func Align(from, to []Line) []Row {
	seed := maphash.MakeSeed()
	cells := alignCells
	pairs := match(numbers(seed, from), numbers(seed, to), &cells)
	rows := make([]Row, 0, max(len(from), len(to)))
	i, j := 0, 0
	for _, p := range append(pairs, pair{len(from), len(to)}) {
		if p.from < len(from) && p.to < len(to) && !from[p.from].same(to[p.to]) {
			continue // their numbers are the same by chance
		}
		rows = changed(rows, from, to, i, p.from, j, p.to)
		if p.from < len(from) && p.to < len(to) {
			rows = append(rows, Row{From: p.from, To: p.to, Same: true})
		}
		i, j = p.from+1, p.to+1
	}
	return rows
}

func numbers(seed maphash.Seed, lines []Line) []uint64 {
	all := make([]uint64, len(lines))
	for i, l := range lines {
		all[i] = mix(maphash.String(seed, l.Text), uint64(l.Indent))
	}
	return all
}

// changed puts from[a:b] next to to[c:d], in which nothing was found to be the same:
// lines with the same key in one row, and the others as they come. Where that would
// take long, lines are compared place by place.
func changed(rows []Row, from, to []Line, a, b, c, d int) []Row {
	kin := func(i, j int) bool {
		return from[i].Key != "" && from[i].Key == to[j].Key && from[i].Indent == to[j].Indent
	}
	var pairs pairs
	if (b-a)*(d-c) <= kinCells {
		pairs = best(b-a, d-c, func(i, j int) int32 {
			if kin(a+i, c+j) {
				return 1
			}
			return 0
		}).moved(a, c)
	}
	for _, p := range append(pairs, pair{b, d}) {
		for ; a < p.from || c < p.to; a, c = a+1, c+1 {
			row := Row{From: a, To: c}
			switch {
			case a >= p.from:
				row.From = -1
			case c >= p.to:
				row.To = -1
			default:
				row.Same = from[a].same(to[c])
				row.Kin = !row.Same && kin(a, c)
			}
			rows = append(rows, row)
		}
		if a, c = p.from+1, p.to+1; p.from < b && p.to < d {
			rows = append(rows, Row{From: p.from, To: p.to, Kin: true})
		}
	}
	return rows
}
