package jsondiff

import (
	"bytes"
	"context"
	"hash/maphash"
	"strconv"

	"oda/internal/rawjson"
)

// Bounds of a patch.
const (
	patchWork    = 1 << 29 // bytes that are read; to compare them takes an eighth of that
	patchMembers = 1 << 18 // of an object that is looked into
	patchList    = 1 << 19 // elements of two lists that are aligned
	patchSlack   = 1 << 20 // from there on a patch may be twice as long as what it changes
)

// Patch gives the JSON Patch that turns one document into the other. If the context
// ends before that, its error is returned.
func Patch(ctx context.Context, from, to []byte) ([]byte, error) {
	d := differ{
		ctx: ctx, from: read(from), to: read(to), hasher: hasher{maphash.MakeSeed()},
		work: patchWork, cells: matchTotal, out: []byte{'['},
	}
	d.value(d.from.root(), d.to.root())
	return append(d.out, ']'), ctx.Err()
}

// differ is a comparison under way.
type differ struct {
	ctx      context.Context
	from, to text
	hasher   hasher
	work     int    // that may still be done
	cells    int    // of tables that may still be filled, in all lists together
	path     []byte // to the values that are compared, in the document as it is by now
	out      []byte
}

// value compares two values at the current path.
func (d *differ) value(from, to child) {
	x, y := d.from.value(from), d.to.value(to)
	if bytes.Equal(x, y) {
		return
	}
	d.work -= (len(x) + len(y)) / 8
	switch {
	case d.ctx.Err() != nil: // nobody waits for the patch
	case d.work < 0 || x[0] != y[0]:
		d.replace(to)
	case x[0] == '{':
		d.objects(from, to)
	case x[0] == '[':
		d.arrays(from, to)
	case x[0] == '"' && rawjson.Unquote(x) == rawjson.Unquote(y):
	default:
		d.replace(to)
	}
}

// objects compares two objects member by member. If they have no key in common,
// the one has come in the place of the other.
func (d *differ) objects(from, to child) {
	begin := len(d.out)
	older, all := d.from.children(from, patchMembers)
	newer, allToo := d.to.children(to, patchMembers)
	if !all || !allToo {
		d.replace(to)
		return
	}
	places := make(map[string]int, len(older))
	for i, m := range older {
		places[string(d.from.name(m))] = i
	}
	before := make([]int, len(newer)) // -1: the member is new
	kept := make([]bool, len(older))
	common := false
	for i, m := range newer {
		at, ok := places[string(d.to.name(m))]
		if !ok {
			before[i] = -1
			continue
		}
		before[i], kept[at], common = at, true, true
	}
	if !common && len(older) > 0 && len(newer) > 0 {
		d.replace(to)
		return
	}
	for i, m := range older {
		if kept[i] {
			continue
		}
		if d.below(d.from.name(m), func() { d.op("remove", nil) }); d.tooLong(begin, to) {
			return
		}
	}
	for i, m := range newer {
		d.below(d.to.name(m), func() {
			if before[i] < 0 {
				d.op("add", d.to.value(m))
			} else {
				d.value(older[before[i]], m)
			}
		})
		if d.tooLong(begin, to) {
			return
		}
	}
}

// arrays compares two lists. What stands in both stays; what is left between is
// changed, removed or added.
func (d *differ) arrays(from, to child) {
	older, all := d.from.children(from, patchList)
	newer, allToo := d.to.children(to, patchList-len(older))
	if !all || !allToo || d.work < len(d.from.value(from))+len(d.to.value(to)) {
		d.placeByPlace(from, to)
		return
	}
	edit := listEdit{differ: d, begin: len(d.out), whole: to, older: older, newer: newer}
	for _, p := range match(d.numbers(d.from, older), d.numbers(d.to, newer), &d.cells) {
		if !edit.upTo(p) {
			return
		}
	}
	edit.upTo(pair{len(older), len(newer)})
}

// numbers gives the numbers of values.
func (d *differ) numbers(t text, values []child) []uint64 {
	all := make([]uint64, len(values))
	for i, v := range values {
		all[i] = d.number(t, v)
	}
	return all
}

// number gives the number of a value.
func (d *differ) number(t text, v child) uint64 {
	if _, known := t.sums[v.start]; !known {
		d.work -= int(v.end - v.start)
	}
	sum, _ := d.hasher.value(t, int(v.start))
	return sum
}

// placeByPlace compares two lists that are too long for anything else.
func (d *differ) placeByPlace(from, to child) {
	begin := len(d.out)
	older, newer := d.from.inside(from), d.to.inside(to)
	x, inOlder := older.next()
	y, inNewer := newer.next()
	for at := 0; inOlder || inNewer; {
		switch {
		case inOlder && inNewer:
			d.at(at, func() { d.value(x, y) })
		case inNewer:
			d.at(at, func() { d.op("add", d.to.value(y)) })
		default:
			d.at(at, func() { d.op("remove", nil) })
		}
		if d.tooLong(begin, to) {
			return
		}
		if inOlder {
			x, inOlder = older.next()
		}
		if inNewer {
			at++
			y, inNewer = newer.next()
		}
	}
}

// tooLong replaces the whole value where the operations that were found from
// begin on are much longer than that.
func (d *differ) tooLong(begin int, to child) bool {
	if len(d.out)-begin <= max(patchSlack, 2*int(to.end-to.start)) {
		return false
	}
	d.out = d.out[:begin]
	d.replace(to)
	return true
}

func (d *differ) replace(to child) { d.op("replace", d.to.value(to)) }

// op writes an operation at the current path.
func (d *differ) op(name string, value []byte) {
	if len(d.out) > 1 {
		d.out = append(d.out, ',')
	}
	d.out = append(append(append(d.out, `{"op":"`...), name...), `","path":`...)
	d.out = rawjson.AppendQuoted(d.out, string(d.path))
	if value != nil {
		d.out = append(append(d.out, `,"value":`...), value...)
	}
	d.out = append(d.out, '}')
}

// below does something at the path of a member.
func (d *differ) below(name []byte, do func()) {
	end := len(d.path)
	d.path = append(d.path, '/')
	for _, c := range name {
		switch c {
		case '~':
			d.path = append(d.path, '~', '0')
		case '/':
			d.path = append(d.path, '~', '1')
		default:
			d.path = append(d.path, c)
		}
	}
	do()
	d.path = d.path[:end]
}

// at does something at the path of an element.
func (d *differ) at(place int, do func()) {
	end := len(d.path)
	d.path = strconv.AppendInt(append(d.path, '/'), int64(place), 10)
	do()
	d.path = d.path[:end]
}
