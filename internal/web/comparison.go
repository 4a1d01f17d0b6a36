package web

import (
	"bytes"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"oda/internal/jsondiff"
	"oda/internal/rawjson"
)

// Bounds of what the page shows of a comparison.
const (
	aroundChange = 3         // lines before and after a change
	worthFolding = 4         // lines
	longRun      = 60        // lines that only one side has
	aheadOfFold  = 10        // of these that are not folded
	shownRows    = 5000      // lines
	shownBytes   = 160 << 10 // of their texts, which may hardly compress
	shownLine    = 1500      // bytes of a line
	aroundMark   = 300       // bytes of a long line around what differs
)

// comparison writes two texts side by side, or as one unified text, with what is equal
// folded. It writes HTML by hand, because templates take long for
// thousands of lines. Everything that comes from a document is escaped.
type comparison struct {
	view      *compareView
	from, to  []jsondiff.Line
	rows      []jsondiff.Row
	out       bytes.Buffer
	lines     int // that are written
	bytes     int // of their texts
	fromTrace trace
	toTrace   trace
}

// write fills in the view: the changes with the lines around them, and between
// them what is equal.
func (c *comparison) write() {
	done := 0 // rows that are written
	for i := 0; i < len(c.rows); {
		if c.rows[i].Same {
			i++
			continue
		}
		start, end := max(done, i-aroundChange), c.end(i)
		if start-done < worthFolding {
			start = done
		}
		c.equal(done, start)
		c.change(start, i, end)
		done, i = end, end
	}
	c.equal(done, len(c.rows))
	c.view.Body = template.HTML(c.out.String()) // #nosec G203 -- everything in it was escaped
}

// end is where a change ends, with the lines after it. Changes near each other are one.
func (c *comparison) end(i int) int {
	last := i
	for ; i < len(c.rows) && i <= last+2*aroundChange+worthFolding; i++ {
		if !c.rows[i].Same {
			last = i
		}
	}
	if end := last + 1 + aroundChange; end+worthFolding <= len(c.rows) {
		return end
	}
	return len(c.rows)
}

func (c *comparison) full() bool { return c.lines > shownRows || c.bytes > shownBytes }

// equal writes rows in which nothing differs, folded.
func (c *comparison) equal(start, end int) {
	n := end - start
	if n == 0 || n == len(c.rows) {
		return
	}
	label := template.HTMLEscapeString(plural(int64(n), "equal line"))
	if !c.roomToFold(start, end) {
		c.out.WriteString(`<p class="equal">` + label + "</p>\n")
		return
	}
	c.out.WriteString(`<details class="equal"><summary>` + label + `</summary>`)
	c.table(start, end)
	c.out.WriteString("</details>\n")
}

// roomToFold reports whether equal rows can be on the page, though hardly anybody
// unfolds them. Half of the room is for changes.
func (c *comparison) roomToFold(start, end int) bool {
	bytes := c.bytes
	for _, r := range c.rows[start:end] {
		bytes += min(len(c.to[r.To].Text), shownLine)
	}
	return c.lines+end-start <= shownRows/2 && bytes <= shownBytes/2
}

// change writes the rows of a change. The first row that differs is the one at first.
func (c *comparison) change(start, first, end int) {
	for _, r := range c.rows[first:end] {
		if !r.Same && r.From >= 0 {
			c.view.Removed++
		}
		if !r.Same && r.To >= 0 {
			c.view.Added++
		}
	}
	if c.view.Of++; c.full() {
		c.view.Cut = true
		return
	}
	one := change{Number: len(c.view.Changes) + 1, Where: c.where(first)}
	c.view.Changes = append(c.view.Changes, one)
	id := "change-" + strconv.Itoa(one.Number)
	c.out.WriteString(`<section class="change" aria-labelledby="` + id + `"><h3 id="` + id + `" tabindex="-1"><a href="#` + id + `">` + strconv.Itoa(one.Number) + `</a> ` +
		template.HTMLEscapeString(one.Where) + `</h3>`)
	c.table(start, end)
	c.out.WriteString("</section>\n")
}

// table writes rows. Of many that only one side has, it writes a few and folds the
// others: a browser takes long to lay out thousands.
func (c *comparison) table(start, end int) {
	c.out.WriteString("<table><tbody>\n")
	for pieces := c.pieces(start, end); len(pieces) > 0; {
		run := 1
		for run < len(pieces) && pieces[run].from == pieces[0].from && pieces[run].to == pieces[0].to {
			run++
		}
		if alone := !pieces[0].from || !pieces[0].to; alone && run > longRun && !c.full() {
			c.lay(pieces[:aheadOfFold])
			c.out.WriteString(`</tbody></table><details class="equal"><summary>` + template.HTMLEscapeString(c.further(pieces[0], run-aheadOfFold)) + `</summary><table><tbody>`)
			c.lay(pieces[aheadOfFold:run])
			c.out.WriteString("</tbody></table></details><table><tbody>\n")
		} else {
			c.lay(pieces[:run])
		}
		pieces = pieces[run:]
	}
	c.out.WriteString("</tbody></table>")
}

// piece is a row as it is written: of both sides, or of one.
type piece struct {
	jsondiff.Row
	from, to bool
}

// pieces are the rows in the order in which they are written. In one text, what is gone
// comes before what is new.
func (c *comparison) pieces(start, end int) []piece {
	var all []piece
	for i := start; i < end; i++ {
		if r := c.rows[i]; r.Same || !c.view.Unified {
			all = append(all, piece{r, r.From >= 0, r.To >= 0})
			continue
		}
		last := i
		for last+1 < end && !c.rows[last+1].Same {
			last++
		}
		for _, r := range c.rows[i : last+1] {
			if r.From >= 0 {
				all = append(all, piece{r, true, false})
			}
		}
		for _, r := range c.rows[i : last+1] {
			if r.To >= 0 {
				all = append(all, piece{r, false, true})
			}
		}
		i = last
	}
	return all
}

// lay writes pieces, as long as there is room.
func (c *comparison) lay(pieces []piece) {
	for _, p := range pieces {
		if c.full() {
			c.view.Cut = true
			return
		}
		if c.view.Unified {
			c.unified(p.Row, p.from, p.to)
		} else {
			c.sideBySide(p.Row)
		}
	}
}

// further says how many more rows only the side of a piece has.
func (c *comparison) further(p piece, n int) string {
	side := c.view.From
	if p.to {
		side = c.view.To
	}
	return plural(int64(n), "further line") + " that only " + c.view.called(side) + " has"
}

// sideBySide writes a row of two lines, one of each text.
func (c *comparison) sideBySide(r jsondiff.Row) {
	c.lines++
	c.out.WriteString("<tr>")
	class, other := "", ""
	if !r.Same {
		class, other = "gone", "new"
	}
	from, to := c.marks(r)
	c.number(r.From, class)
	c.text(c.from, r.From, class, from, "del")
	c.number(r.To, other)
	written := c.bytes
	c.text(c.to, r.To, other, to, "ins")
	if r.Same {
		c.bytes = written // the same text again compresses to nothing
	}
	c.out.WriteString("</tr>\n")
}

// unified writes a row of one line: of one text, of the other, or of both.
func (c *comparison) unified(r jsondiff.Row, from, to bool) {
	c.lines++
	inFrom, inTo := c.marks(r)
	class := ""
	switch {
	case !from:
		class, r.From = "new", -1
	case !to:
		class, r.To = "gone", -1
	}
	c.out.WriteString("<tr>")
	c.number(r.From, class)
	c.number(r.To, class)
	if to {
		c.text(c.to, r.To, class, inTo, "ins")
	} else {
		c.text(c.from, r.From, class, inFrom, "del")
	}
	c.out.WriteString("</tr>\n")
}

// number writes the cell with the number of a line.
func (c *comparison) number(i int, class string) {
	switch {
	case i < 0:
		c.out.WriteString(`<td class="n"></td>`)
		return
	case class != "":
		c.out.WriteString(`<td class="n ` + class + `">`)
	default:
		c.out.WriteString(`<td class="n">`)
	}
	c.out.WriteString(strconv.Itoa(i+1) + "</td>")
}

// text writes the cell with the text of a line.
func (c *comparison) text(lines []jsondiff.Line, i int, class string, m part, element string) {
	if i < 0 {
		c.out.WriteString(`<td class="void"></td>`)
		return
	}
	line := lines[i]
	if class != "" {
		c.out.WriteString(`<td class="` + class + `">`)
	} else {
		c.out.WriteString("<td>")
	}
	for range line.Indent {
		c.out.WriteString("  ")
	}
	c.bytes += marked(&c.out, line.Text, m, element)
	if line.Comma {
		c.out.WriteByte(',')
	}
	c.out.WriteString("</td>")
}

// part is what differs in a line from the other.
type part struct{ start, end int }

// marked writes a text with the part that differs marked. Of a long text it writes
// what is near that part. It returns how many bytes these are.
func marked(out *bytes.Buffer, text string, m part, element string) int {
	before, within, after := text[:m.start], text[m.start:m.end], text[m.end:]
	if len(text) > shownLine {
		if m.start == m.end {
			after = beginning(after, shownLine)
		} else {
			before, within, after = ending(before, aroundMark), beginning(within, shownLine), beginning(after, aroundMark)
		}
	}
	template.HTMLEscape(out, []byte(before))
	if within != "" {
		out.WriteString("<" + element + ">")
		template.HTMLEscape(out, []byte(within))
		out.WriteString("</" + element + ">")
	}
	template.HTMLEscape(out, []byte(after))
	return len(before) + len(within) + len(after)
}

// beginning and ending are as much of a text as there is room for.
func beginning(text string, room int) string {
	if len(text) <= room {
		return text
	}
	for room > 0 && !utf8.RuneStart(text[room]) {
		room--
	}
	return text[:room] + "…"
}

func ending(text string, room int) string {
	if len(text) <= room {
		return text
	}
	at := len(text) - room
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	return "…" + text[at:]
}

// marks finds what differs in a line that was changed.
func (c *comparison) marks(r jsondiff.Row) (from, to part) {
	if !r.Kin {
		return part{}, part{}
	}
	return unlike(c.from[r.From].Text, c.to[r.To].Text)
}

// unlike finds what differs in two forms of a text: all between what both begin and end with,
// in whole words and numbers.
func unlike(a, b string) (from, to part) {
	start := 0
	for start < min(len(a), len(b)) && a[start] == b[start] {
		start++
	}
	for !betweenWords(a, start) || !betweenWords(b, start) {
		start--
	}
	tail := 0
	for tail < min(len(a), len(b))-start && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	for !betweenWords(a, len(a)-tail) || !betweenWords(b, len(b)-tail) {
		tail--
	}
	return part{start, len(a) - tail}, part{start, len(b) - tail}
}

// betweenWords reports whether no word or number goes across a place in a text.
func betweenWords(text string, at int) bool {
	return at == 0 || at == len(text) || !inWord(text[at-1]) || !inWord(text[at])
}

func inWord(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || strings.IndexByte("._+-", b) >= 0 || b >= utf8.RuneSelf
}

// where names the place of a row: the keys and numbers that lead to a value of the document.
func (c *comparison) where(row int) string {
	r := c.rows[row]
	lines, i, t := c.to, r.To, &c.toTrace
	if i < 0 {
		lines, i, t = c.from, r.From, &c.fromTrace
	}
	return t.to(lines, i)
}

// trace follows the lines of a document to know where one stands.
type trace struct {
	seen   int // lines
	levels []level
}

// level is a value that contains a line, or the line itself.
type level struct {
	name string
	list bool
	n    int // elements so far
}

// shownLevels is how many names a place has, from the innermost outwards.
const shownLevels = 6

// to goes on to a line and names its place.
func (t *trace) to(lines []jsondiff.Line, at int) string {
	for ; t.seen <= at; t.seen++ {
		line := lines[t.seen]
		depth := min(line.Indent, len(t.levels))
		t.levels = t.levels[:depth]
		one := level{name: line.Key, list: strings.HasSuffix(line.Text, "[")}
		if line.Key != "" {
			one.name = rawjson.Unquote([]byte(line.Key))
		} else if depth > 0 && t.levels[depth-1].list && line.Text != "]" && line.Text != "}" {
			one.name = strconv.Itoa(t.levels[depth-1].n)
			t.levels[depth-1].n++
		}
		t.levels = append(t.levels, one)
	}
	var names []string
	for i := len(t.levels) - 1; i > 0; i-- {
		if len(names) == shownLevels {
			names = append(names, "…")
			break
		}
		if t.levels[i].name != "" {
			names = append(names, clipped(t.levels[i].name, 40))
		}
	}
	slices.Reverse(names)
	return strings.Join(names, " › ")
}
