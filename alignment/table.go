package alignment

// table finds the best alignment of two lists of calls, as long as in neither many more are
// skipped before a call than in the other. What is kept of each place is a byte.
type table struct {
	rows, columns []Call
	skipFirst     choice // of two ways to skip calls that are equally good

	low, width int      // the place of a column in a row is column - row - low, less than width
	choices    []choice // of each place
	sums       []int64
}

// choice is what to do with the next calls of both lists.
type choice byte

const (
	pairThem choice = iota
	skipRow
	skipColumn
)

const impossible = -1 << 62

// diagonals returns which places a table has, if at most as many calls more are skipped in
// one list than in the other as the band is wide.
func diagonals(rows, columns, band int) (low, width int) {
	low = max(-rows, min(0, columns-rows)-band)
	high := min(columns, max(0, columns-rows)+band)
	return low, high - low + 1
}

// fill chooses what to do at each place, from the end on. A pair counts more than all that
// are the same.
func (t *table) fill(band int) {
	n, m := len(t.rows), len(t.columns)
	t.low, t.width = diagonals(n, m, band)
	if cells := (n + 1) * t.width; cap(t.choices) < cells {
		t.choices = make([]choice, cells)
	}
	if cap(t.sums) < t.width {
		t.sums = make([]int64, t.width)
	}
	t.choices, t.sums = t.choices[:cap(t.choices)], t.sums[:t.width]
	for row := n; row >= 0; row-- {
		t.fillRow(row, int64(min(n, m)+1))
	}
}

// fillRow chooses for the places of a row. The sums are of the best alignment from a place on:
// those of the row below, which become those of this one.
func (t *table) fillRow(row int, pair int64) {
	n, m := len(t.rows), len(t.columns)
	choices := t.choices[row*t.width : (row+1)*t.width]
	for at := min(t.width-1, m-row-t.low); at >= max(0, -row-t.low); at-- {
		column := row + t.low + at
		best, what := int64(impossible), skipColumn
		switch {
		case column < m && at+1 < t.width:
			best = t.sums[at+1]
		case row == n && column == m:
			best = 0
		}
		if row < n && at > 0 && (t.sums[at-1] > best || t.sums[at-1] == best && t.skipFirst == skipRow) {
			best, what = t.sums[at-1], skipRow
		}
		if row < n && column < m && t.rows[row].Function == t.columns[column].Function {
			sum := pair + t.sums[at]
			if t.rows[row].Said == t.columns[column].Said {
				sum++
			}
			if sum >= best {
				best, what = sum, pairThem
			}
		}
		t.sums[at], choices[at] = best, what
	}
}
