package jsondiff

import "slices"

// gapCells bounds how thoroughly two short stretches of elements are compared.
const gapCells = 4096

// listEdit turns one list into the other, from left to right: what is left of at
// is as in the newer list already.
type listEdit struct {
	*differ
	begin        int   // of its operations
	whole        child // the newer list
	older, newer []child
	i, j         int // the first elements that are not dealt with
	at           int
}

// upTo deals with everything in front of a pair of equal elements, and with the
// pair. Equal here means that their numbers are; only the comparison knows. It
// says whether the list is still worth editing.
func (l *listEdit) upTo(p pair) bool {
	if !l.gap(l.older[l.i:p.from], l.newer[l.j:p.to]) {
		return false
	}
	l.i, l.j = p.from, p.to
	if p.from < len(l.older) && p.to < len(l.newer) {
		l.i, l.j = p.from+1, p.to+1
		return l.change(l.older[p.from], l.newer[p.to])
	}
	return true
}

// gap turns elements into others with which they have nothing in common as a
// whole. Those that resemble each other are taken for the same, changed.
func (l *listEdit) gap(older, newer []child) bool {
	i, j := 0, 0
	for _, p := range append(l.resembling(older, newer), pair{len(older), len(newer)}) {
		for ; i < p.from; i++ {
			if !l.edit(func() { l.op("remove", nil) }) {
				return false
			}
		}
		for ; j < p.to; j++ {
			if !l.edit(func() { l.op("add", l.to.value(newer[j])) }) {
				return false
			}
			l.at++
		}
		if i < len(older) && j < len(newer) {
			if !l.change(older[i], newer[j]) {
				return false
			}
			i, j = i+1, j+1
		}
	}
	return true
}

func (l *listEdit) change(from, to child) bool {
	defer func() { l.at++ }()
	return l.edit(func() { l.value(from, to) })
}

// edit does something at the current element.
func (l *listEdit) edit(do func()) bool {
	l.differ.at(l.at, do)
	return !l.tooLong(l.begin, l.whole)
}

// resembling pairs elements that are best taken for the same: by their place
// where there are many, or where the lists so far took all cells.
func (l *listEdit) resembling(older, newer []child) []pair {
	if len(older)*len(newer) > gapCells || l.work < 0 {
		return placed(older, newer)
	}
	if len(older) == 0 || len(newer) == 0 {
		return nil
	}
	if len(older) == 1 && len(newer) == 1 {
		return []pair{{0, 0}}
	}
	x, y := l.prints(l.from, older), l.prints(l.to, newer)
	// To fill a cell is to go through two prints.
	cells := len(newer)*size(x) + len(older)*size(y)
	if cells > l.cells {
		return placed(older, newer)
	}
	l.cells -= cells
	return best(len(older), len(newer), func(i, j int) int32 { return x[i].likeness(y[j]) })
}

// placed pairs elements by their place.
func placed(older, newer []child) []pair {
	pairs := make([]pair, min(len(older), len(newer)))
	for i := range pairs {
		pairs[i] = pair{i, i}
	}
	return pairs
}

// print is what is compared of an element: the numbers of its members and their
// keys, or of its elements.
type print struct {
	kind           byte
	keys, children []uint64 // sorted
}

// printSize is how many children of an element are looked at.
const printSize = 256

func (d *differ) prints(t text, values []child) []print {
	all := make([]print, len(values))
	for i, v := range values {
		p := print{kind: t.data[v.start]}
		if p.kind == '{' || p.kind == '[' {
			in := t.inside(v)
			for c, more := in.next(); more && len(p.children) < printSize; c, more = in.next() {
				number := d.number(t, c)
				if p.kind == '{' {
					key := d.hasher.string(t.data[c.key:t.stringEnd(int(c.key))])
					p.keys = append(p.keys, key)
					number = mix(key, number)
				}
				p.children = append(p.children, number)
			}
			slices.Sort(p.keys)
			slices.Sort(p.children)
		}
		all[i] = p
	}
	return all
}

// size adds up what there is to go through in prints.
func size(prints []print) int {
	n := 0
	for _, p := range prints {
		n += 1 + len(p.keys) + len(p.children)
	}
	return n
}

// likeness says how well one element can be taken for another. To change
// something is always better than to remove it and add something else.
func (p print) likeness(other print) int32 {
	if p.kind != other.kind {
		return 1
	}
	size := max(len(p.children), len(other.children), 1)
	return int32(10 + (100*common(p.children, other.children)+30*common(p.keys, other.keys))/size)
}

// common counts what two sorted lists have in common.
func common(a, b []uint64) int {
	n := 0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			n, i, j = n+1, i+1, j+1
		case a[i] < b[j]:
			i++
		default:
			j++
		}
	}
	return n
}
