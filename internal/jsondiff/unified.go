package jsondiff

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"iter"
	"slices"
)

const (
	contextLines = 3       // around a change
	unifiedLines = 1 << 20 // of both documents that are compared
)

// MaxUnified is how many bytes a unified diff may have. Indentation makes it
// longer than the documents, by far where they are nested deeply.
const MaxUnified = 64 << 20

// ErrTooLong says that a unified diff would be longer than that.
var ErrTooLong = errors.New("the unified diff is too long")

// meter counts what is written to it, up to the bound.
type meter struct{ written int }

func (m *meter) Write(p []byte) (int, error) {
	if m.written += len(p); m.written > MaxUnified {
		return 0, ErrTooLong
	}
	return len(p), nil
}

// Side is one of the two documents of a unified diff.
type Side struct {
	Name string // what the diff calls it
	Text []byte
}

// Unified writes the unified diff of two documents, printed with a value to a
// line. Nothing is written if they are the same, or if the error is ErrTooLong. Hidden
// are pointers to members that do not count, each of them within a member of the
// document.
func Unified(w io.Writer, from, to Side, hidden ...string) error {
	without := hide(hidden)
	u := unified{out: w, from: pretty{read(from.Text), without}, to: pretty{read(to.Text), without}, seed: maphash.MakeSeed()}
	header := fmt.Sprintf("--- %s\n+++ %s\n", from.Name, to.Name)
	older, all := gather(u.from.lines(), unifiedLines)
	newer, allToo := gather(u.to.lines(), unifiedLines-len(older))
	if !all || !allToo {
		return u.whole(header)
	}
	cells := matchTotal
	pairs := match(u.numbers(u.from, older), u.numbers(u.to, newer), &cells)
	pairs = slices.DeleteFunc(pairs, func(p pair) bool { return !u.equal(older[p.from], newer[p.to]) })
	if len(pairs) == len(older) && len(pairs) == len(newer) {
		return nil
	}
	return u.measured(func() {
		u.print(header)
		u.hunks(older, newer, pairs)
	})
}

// measured writes a diff, once it is known not to be too long.
func (u *unified) measured(write func()) error {
	out := u.out
	u.out = new(meter)
	write()
	u.out = out
	if u.err == nil {
		write()
	}
	return u.err
}

// gather takes lines, and says whether those were all. If there are more than most, it
// returns none.
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
		all[i] = u.number(p, l)
	}
	return all
}

func (u *unified) number(p pretty, l line) uint64 {
	u.room = p.appendText(u.room[:0], l)
	return mix(maphash.Bytes(u.seed, u.room), uint64(l.indent))
}

func (u *unified) equal(from, to line) bool {
	u.room, u.other = u.from.appendText(u.room[:0], from), u.to.appendText(u.other[:0], to)
	return from.indent == to.indent && bytes.Equal(u.room, u.other)
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
		for n < len(changes) && changes[n].a-changes[n-1].b <= 2*contextLines {
			n++
		}
		first, last := changes[0], changes[n-1]
		before := min(contextLines, first.a)
		after := min(contextLines, len(older)-last.b)
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
// hunk without lines stands after a line.
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
func (u *unified) whole(header string) error {
	n, sum := u.total(u.from)
	m, otherSum := u.total(u.to)
	if n == m && sum == otherSum {
		return nil
	}
	return u.measured(func() {
		u.print(header + fmt.Sprintf("@@ -%s +%s @@\n", extent(0, n), extent(0, m)))
		for l := range u.from.lines() {
			if u.line('-', u.from, l); u.err != nil {
				return
			}
		}
		for l := range u.to.lines() {
			if u.line('+', u.to, l); u.err != nil {
				return
			}
		}
	})
}

// total counts the lines of a document, and gives a number to all of them.
func (u *unified) total(p pretty) (n int, sum uint64) {
	for l := range p.lines() {
		sum = mix(sum, u.number(p, l))
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
