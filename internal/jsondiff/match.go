package jsondiff

import "slices"

// pair says that an item of the older list is one of the newer list.
type pair struct{ from, to int }

// Bounds of the search for what two lists have in common.
const (
	matchDepth = 16      // of stretches between unique items
	matchCells = 1 << 20 // of one table
	matchTotal = 1 << 25 // of all tables of a comparison
)

// match pairs the items that two lists have in common, in order. It looks for
// the items that stand exactly once in each list, and goes on between them: that
// is quick at any length, and what people see in a list too. Short stretches
// without such items are compared item by item, as long as there are cells for
// that; those that it fills are taken off.
func match(from, to []uint64, cells *int) []pair {
	m := matcher{from: from, to: to, cells: cells}
	m.stretch(0, len(from), 0, len(to), matchDepth)
	return m.pairs
}

// Anchors pairs the items that stand exactly once in each of two lists: as many of them as are
// in order in both, by their places.
func Anchors(from, to []uint64) [][2]int {
	m := matcher{from: from, to: to}
	anchors := increasing(m.unique(0, len(from), 0, len(to)))
	places := make([][2]int, len(anchors))
	for i, one := range anchors {
		places[i] = [2]int{one.from, one.to}
	}
	return places
}

type matcher struct {
	from, to []uint64
	cells    *int // that may still be filled
	pairs    []pair
}

// stretch pairs the items of two stretches, from a to b and from c to d.
func (m *matcher) stretch(a, b, c, d, depth int) {
	for a < b && c < d && m.from[a] == m.to[c] {
		m.pairs = append(m.pairs, pair{a, c})
		a, c = a+1, c+1
	}
	tail := 0
	for a < b && c < d && m.from[b-1] == m.to[d-1] {
		b, d, tail = b-1, d-1, tail+1
	}
	if a < b && c < d {
		m.middle(a, b, c, d, depth)
	}
	for i := range tail {
		m.pairs = append(m.pairs, pair{b + i, d + i})
	}
}

func (m *matcher) middle(a, b, c, d, depth int) {
	var anchors []pair
	if depth > 0 {
		anchors = increasing(m.unique(a, b, c, d))
	}
	if len(anchors) == 0 {
		if cells := (b - a) * (d - c); cells <= min(matchCells, *m.cells) {
			*m.cells -= cells
			m.table(a, b, c, d)
		}
		return
	}
	for _, one := range anchors {
		m.stretch(a, one.from, c, one.to, depth-1)
		m.pairs = append(m.pairs, one)
		a, c = one.from+1, one.to+1
	}
	m.stretch(a, b, c, d, depth-1)
}

// unique gives the items that stand exactly once in each stretch, in the order
// of the first.
func (m *matcher) unique(a, b, c, d int) []pair {
	type places struct{ from, to int32 } // counted from 1; -1 if there are several
	seen := make(map[uint64]places, b-a)
	for i := a; i < b; i++ {
		p := places{from: int32(i + 1)}
		if _, twice := seen[m.from[i]]; twice {
			p.from = -1
		}
		seen[m.from[i]] = p
	}
	for j := c; j < d; j++ {
		p, ok := seen[m.to[j]]
		switch {
		case !ok:
			continue
		case p.to == 0:
			p.to = int32(j + 1)
		default:
			p.to = -1
		}
		seen[m.to[j]] = p
	}
	var pairs []pair
	for i := a; i < b; i++ {
		if p := seen[m.from[i]]; p.from > 0 && p.to > 0 {
			pairs = append(pairs, pair{i, int(p.to - 1)})
		}
	}
	return pairs
}

// increasing gives the longest part of the pairs that is in order in both lists.
func increasing(pairs []pair) []pair {
	if len(pairs) == 0 {
		return nil
	}
	ends := make([]int, 0, len(pairs)) // the pair that ends the best part of each length
	before := make([]int, len(pairs))
	for i, p := range pairs {
		at, _ := slices.BinarySearchFunc(ends, p.to, func(end, to int) int { return pairs[end].to - to })
		before[i] = -1
		if at > 0 {
			before[i] = ends[at-1]
		}
		if at == len(ends) {
			ends = append(ends, i)
		} else {
			ends[at] = i
		}
	}
	longest := make([]pair, len(ends))
	for i, at := ends[len(ends)-1], len(ends)-1; at >= 0; i, at = before[i], at-1 {
		longest[at] = pairs[i]
	}
	return longest
}

// table finds the longest common part of two stretches.
func (m *matcher) table(a, b, c, d int) {
	m.pairs = append(m.pairs, best(b-a, d-c, func(i, j int) int32 {
		if m.from[a+i] == m.to[c+j] {
			return 1
		}
		return 0
	}).moved(a, c)...)
}

type pairs []pair

func (p pairs) moved(from, to int) pairs {
	for i := range p {
		p[i].from += from
		p[i].to += to
	}
	return p
}

// best pairs items of two short lists, in order, so that the sum of what the
// pairs are worth is the largest.
func best(n, m int, worth func(i, j int) int32) pairs {
	width := m + 1
	sums := make([]int32, (n+1)*width) // of the best pairs from there on
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			sum := max(sums[(i+1)*width+j], sums[i*width+j+1])
			if w := worth(i, j); w > 0 {
				sum = max(sum, w+sums[(i+1)*width+j+1])
			}
			sums[i*width+j] = sum
		}
	}
	var found pairs
	for i, j := 0, 0; i < n && j < m; {
		here := sums[i*width+j]
		w := worth(i, j)
		switch {
		case w > 0 && here == w+sums[(i+1)*width+j+1]:
			found = append(found, pair{i, j})
			i, j = i+1, j+1
		case here == sums[(i+1)*width+j]:
			i++
		default:
			j++
		}
	}
	return found
}
