package web

import (
	"fmt"
	"html/template"
	"iter"
	"math"
	"strconv"
	"strings"
	"time"

	"oda"
)

// funcs are what templates write values with.
var funcs = template.FuncMap{
	"thousands": thousands,
	"utc":       func(i oda.Instant) string { return i.Time().Format("2006-01-02 15:04:05") },
	"clock":     func(i *oda.Instant) string { return i.Time().Format("15:04:05.000") },
	"fraction":  func(i *oda.Instant) string { return i.Time().Format(".000000") },
	"many":      func(n int, of string) string { return plural(int64(n), of) },
	"number":    func(i int) int { return i + 1 }, // of what is at an index
	"before":    func(sequence int64) int64 { return sequence - 1 },
	"moment":    func(m oda.Moment) string { return m.Time().Format("2006-01-02 15:04") },
	"second":    func(at interface{ Time() time.Time }) string { return at.Time().Format("15:04:05") },
	"hour":      func(m oda.Moment) string { return m.Time().Format("15:04:05") },
	"tellApart": tellApart,
	"parts":     parts,
	"lastName":  func(name string) string { _, last := lastName(name); return last },
	"ra":        showRA,
	"dec":       showDec,
	"degrees":   func(v float64) string { return strconv.FormatFloat(v, 'f', 4, 64) },
	"brief":     func(text string) string { return clipped(text, briefText) },
	"short":     func(text string) string { return clipped(text, 4*briefText) },
	"size":      showSize,
	"plural":    plural,
	"targets":   func(all []oda.Target) string { return countTargets(all, 0) },
	"telescope": showTelescope,
	"elapsed":   showElapsed,
	"mark":      func(c oda.Class) string { return marks[c] },
	"meant":     meant,
	"classes":   oda.ClassNames,
	"failed":    func(c oda.Class) bool { return c == oda.ClassFailed },
	"rowsOf":    func(on framed, kind oda.Kind, rows []row) table { return table{on.itself(), kind, rows, ""} },
	"liveRows": func(on framed, kind oda.Kind, rows []row, part string) table {
		return table{on.itself(), kind, rows, part}
	},
	"callsOf":   func(on framed, rows []foundCall) foundTable { return foundTable{on.itself(), rows, false} },
	"liveCalls": func(on framed, rows []foundCall) foundTable { return foundTable{on.itself(), rows, true} },
	"tallyOf":   func(rows []tallied, failed bool) callTally { return callTally{Rows: rows, Failed: failed} },
	"changesOf": func(on framed, rows []changeRow) changeTable { return changeTable{on.itself(), rows} },
}

// briefText is how many characters of a name are shown, so that an absurd one
// does not fill the page. The document has all of it.
const briefText = 120

// table is the data for a table of entities.
type table struct {
	Frame frame
	Kind  oda.Kind
	Rows  []row
	Live  string // the part of the page that it is, if it renews itself
}

// changeTable is the data for a table of changes.
type changeTable struct {
	Frame frame
	Rows  []changeRow
}

// foundTable is the data for a table of calls.
type foundTable struct {
	Frame frame
	Rows  []foundCall
	Live  bool
}

// framed is the view of any page.
type framed interface{ itself() frame }

func (f frame) itself() frame { return f }

// showRA writes a right ascension in hours.
func showRA(deg float64) string {
	hours, minutes, tenths := sexagesimal(deg / 15)
	return fmt.Sprintf("%02dh %02dm %04.1fs", hours%24, minutes, tenths)
}

// showDec writes a declination.
func showDec(deg float64) string {
	sign := "+"
	if deg < 0 {
		sign, deg = "−", -deg
	}
	degrees, minutes, tenths := sexagesimal(deg)
	return fmt.Sprintf("%s%02d° %02d′ %04.1f″", sign, degrees, minutes, tenths)
}

// sexagesimal divides a number, rounded to a tenth of the smallest unit.
func sexagesimal(v float64) (whole, minutes int64, seconds float64) {
	tenths := int64(math.Round(v * 36000))
	return tenths / 36000, tenths / 600 % 60, float64(tenths%600) / 10
}

// showSize writes a number of bytes.
func showSize(n int64) string {
	if n < 1000 {
		return plural(n, "byte")
	}
	size, units := float64(n)/1000, []string{"kB", "MB", "GB", "TB"}
	for size >= 999.95 && len(units) > 1 { // which would be written as 1000.0
		size, units = size/1000, units[1:]
	}
	return strconv.FormatFloat(size, 'f', 1, 64) + " " + units[0]
}

// countTargets writes how many targets are not shown. The summary of a document with very
// many does not have them all.
func countTargets(all []oda.Target, shown int) string {
	n := thousands(int64(len(all) - shown))
	if len(all) == oda.MaxTargets {
		return "at least " + n
	}
	return n
}

// plural writes how many there are of something.
func plural(n int64, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return thousands(n) + " " + of + "s"
}

// showTelescope writes a telescope as people call it.
func showTelescope(name string) string {
	switch name {
	case "ska_mid":
		return "SKA-Mid"
	case "ska_low":
		return "SKA-Low"
	}
	return clipped(name, 24)
}

// showElapsed writes how long something took, in three digits or so, as timeline.js does.
func showElapsed(e oda.Elapsed) string {
	const hour = oda.Elapsed(time.Hour / time.Microsecond)
	if e >= 100*hour { // may be longer than Go can say
		return fmt.Sprintf("%s d %02d h", thousands(int64(e/hour/24)), e/hour%24)
	}
	switch d := time.Duration(e) * time.Microsecond; {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%d ms", min(999, d.Round(time.Millisecond).Milliseconds()))
	case d < time.Minute:
		return strconv.FormatFloat(min(59.9, d.Seconds()), 'f', 1, 64) + " s"
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	default:
		return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
	}
}

// lastName is the last part of a dotted name, and what stands before it.
func lastName(name string) (before, last string) {
	at := strings.LastIndexByte(name, '.')
	return name[:at+1], name[at+1:]
}

// tellApart gives of each dotted name its last part, or as many parts as tell it
// from the others.
func tellApart(names []string) []string {
	have := make(map[string]int) // how many names end in these parts
	known := make(map[string]bool)
	for _, name := range names {
		if known[name] {
			continue
		}
		known[name] = true
		for part := range endings(name) {
			have[part]++
		}
	}
	short := make([]string, len(names))
	for i, name := range names {
		for short[i] = range endings(name) {
			if have[short[i]] == 1 {
				break
			}
		}
	}
	return short
}

// endings yields the last part of a dotted name, the last two, and so on up to all of it.
func endings(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for at := len(name); at >= 0; {
			at = strings.LastIndexByte(name[:at], '.')
			if !yield(name[at+1:]) {
				return
			}
		}
	}
}

// parts writes the name of a function so that a narrow column breaks it only between its
// parts.
func parts(name string) template.HTML {
	escaped := template.HTMLEscapeString(name)
	return template.HTML(strings.NewReplacer("_", "_<wbr>", ".", ".<wbr>", "/", "/<wbr>").Replace(escaped)) // #nosec G203 -- it was escaped
}
