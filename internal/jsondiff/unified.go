package jsondiff

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"io"
	"iter"
	"slices"
)

const (
	context      = 3       // lines around a change
	unifiedLines = 1 << 20 // of both documents that are compared
)

// Side is one of the two documents of a unified diff.
type Side struct {
	Name string // what the diff calls it
	Text []byte
}

// Unified writes the unified diff of two documents, printed with a value to a
// line. Nothing is written if they are the same. Hidden are pointers to members
// that do not count, each of them within a member of the document.
func Unified(w io.Writer, from, to Side, hidden ...string) error {
	without := hide(hidden)
	u := unified{out: w, from: pretty{read(from.Text), without}, to: pretty{read(to.Text), without}, seed: maphash.MakeSeed()}
	header := fmt.Sprintf("--- %s\n+++ %s\n", from.Name, to.Name)
	older, all := gather(u.from.lines(), unifiedLines)
	newer, allToo := gather(u.to.lines(), unifiedLines-len(older))
	if !all || !allToo {
		u.whole(header)
		return u.err
	}
	pairs := match(u.numbers(u.from, older), u.numbers(u.to, newer))
	pairs = slices.DeleteFunc(pairs, func(p pair) bool { return !u.equal(older[p.from], newer[p.to]) })
	if len(pairs) == len(older) && len(pairs) == len(newer) {
		return nil
	}
	u.print(header)
	u.hunks(older, newer, pairs)
	return u.err
}

// gather takes so many lines, and says whether that was all.
func gather(lines iter.Seq[line], most int) (all []line, complete bool) {
	for l := range lines {
		if len(all) == most {
			return nil, false
		}
		all = append(all, l)
	}
	return all, true
}

// unified is a unified diff being written. After an error it writes nothing.
type unified struct {
	out      io.Writer
	from, to pretty
	seed     maphash.Seed
	err      error
	room     []byte
	other    []byte
}

func (u *unified) numbers(p pretty, lines []line) []uint64 {
	all := make([]uint64, len(lines))
	for i, l := range lines {
		u.room = p.append(u.room[:0], l)
		all[i] = maphash.Bytes(u.seed, u.room)
	}
	return all
}

func (u *unified) equal(from, to line) bool {
	u.room, u.other = u.from.append(u.room[:0], from), u.to.append(u.other[:0], to)
	return bytes.Equal(u.room, u.other)
}

// hunks writes the changes, those that are near each other together.
func (u *unified) hunks(older, newer []line, pairs []pair) {
	// A change is what stands between two pairs that do not follow each other.
	type change struct{ a, b, c, d int } // older[a:b] became newer[c:d]
	var changes []change
	i, j := 0, 0
	for _, p := range append(pairs, pair{len(older), len(newer)}) {
		if p.from > i || p.to > j {
			changes = append(changes, change{i, p.from, j, p.to})
		}
		i, j = p.from+1, p.to+1
	}
	for len(changes) > 0 {
		n := 1
		for n < len(changes) && changes[n].a-changes[n-1].b <= 2*context {
			n++
		}
		first, last := changes[0], changes[n-1]
		before := min(context, first.a)
		after := min(context, len(older)-last.b)
		a, b := first.a-before, last.b+after
		c, d := first.c-before, last.d+after
		u.print(fmt.Sprintf("@@ -%s +%s @@\n", extent(a, b-a), extent(c, d-c)))
		at := a
		for _, one := range changes[:n] {
			u.lines(' ', u.from, older[at:one.a])
			u.lines('-', u.from, older[one.a:one.b])
			u.lines('+', u.to, newer[one.c:one.d])
			at = one.b
		}
		u.lines(' ', u.from, older[at:b])
		changes = changes[n:]
	}
}

// extent writes where a hunk stands: its first line, and how many there are. A
// hunk without lines stands behind a line.
func extent(first, count int) string {
	switch count {
	case 0:
		return fmt.Sprintf("%d,0", first)
	case 1:
		return fmt.Sprint(first + 1)
	}
	return fmt.Sprintf("%d,%d", first+1, count)
}

// whole says that all of one document became all of the other, unless they are
// the same: they are too long for more.
func (u *unified) whole(header string) {
	n, sum := u.total(u.from)
	m, otherSum := u.total(u.to)
	if n == m && sum == otherSum {
		return
	}
	u.print(header + fmt.Sprintf("@@ -%s +%s @@\n", extent(0, n), extent(0, m)))
	for l := range u.from.lines() {
		u.line('-', u.from, l)
	}
	for l := range u.to.lines() {
		u.line('+', u.to, l)
	}
}

// total counts the lines of a document, and gives a number to all of them.
func (u *unified) total(p pretty) (n int, sum uint64) {
	for l := range p.lines() {
		u.room = p.append(u.room[:0], l)
		sum = mix(sum, maphash.Bytes(u.seed, u.room))
		n++
	}
	return n, sum
}

func (u *unified) lines(sign byte, p pretty, lines []line) {
	for _, l := range lines {
		u.line(sign, p, l)
	}
}

func (u *unified) line(sign byte, p pretty, l line) {
	if u.err != nil {
		return
	}
	u.room = append(p.append(append(u.room[:0], sign), l), '\n')
	_, u.err = u.out.Write(u.room)
}

func (u *unified) print(text string) {
	if u.err == nil {
		_, u.err = io.WriteString(u.out, text)
	}
}
