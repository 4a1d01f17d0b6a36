package night

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	"oda"
)

// Bounds of a shift log, which people paste into a message.
const (
	logBlocks = 100
	logErrors = 20
	logNotes  = 50
	logAbout  = 3   // entities that a note is about
	logName   = 80  // characters of a name
	logText   = 200 // of a reason or an error
	logNote   = 500 // of a note
)

// ShiftLog returns the report on a night as Markdown, with times in the zone of the night.
// It ends with the problems that the next shift takes over.
func (r *Reporter) ShiftLog(ctx context.Context, q Query, report *Report) ([]byte, error) {
	open, err := r.Unresolved(ctx, q)
	if err != nil {
		return nil, err
	}
	zone, known := zoneNamed(report.Zone)
	if !known {
		zone = time.UTC
	}
	l := &shiftLog{zone: zone}
	l.headline(report)
	if err := l.blocks(ctx, r.engine, report.Blocks); err != nil {
		return nil, err
	}
	l.notes("Notes", report.Notes, false)
	l.notes("Unresolved", open, true)
	l.errors(report.Errors)
	l.unusual(report.Unusual)
	return []byte(l.String()), nil
}

// shiftLog writes a report as Markdown.
type shiftLog struct {
	strings.Builder
	zone *time.Location
}

func (l *shiftLog) headline(r *Report) {
	const minute = "2006-01-02 15:04"
	from, to := r.From.Time().In(l.zone), r.To.Time().In(l.zone)
	fmt.Fprintf(l, "# Night of %s\n\nFrom %s to %s, %s.\n\n", from.Format(time.DateOnly), from.Format(minute), to.Format(minute), r.Zone)
	fmt.Fprintf(l, "**%s, %d failed, in %s.** Busy %s, idle %s.\n", many(r.Calls, "call"), r.Failures, many(int64(len(r.Blocks)), "block"), lasting(r.Busy), lasting(r.Idle))
	l.outcomes(r)
	if len(r.Telescopes) == 0 {
		return
	}
	l.head("Telescope|Blocks|Calls|Failed|Busy|Idle|First call|Last call")
	for _, t := range r.Telescopes {
		l.row(orDash(t.Telescope), fmt.Sprint(t.Blocks), fmt.Sprint(t.Calls), fmt.Sprint(t.Failures), lasting(t.Busy), lasting(t.Idle), l.clock(t.FirstCall), l.clock(t.LastCall))
	}
}

// outcomes tells what came of the blocks, and how much time was lost.
func (l *shiftLog) outcomes(r *Report) {
	var said, lost []string
	for class := oda.ClassRunning; class <= oda.ClassStopped; class++ {
		n := 0
		for i := range r.Blocks {
			if r.Blocks[i].Status.Class == class {
				n++
			}
		}
		if n > 0 {
			said = append(said, fmt.Sprintf("%d %s", n, class))
		}
	}
	for _, one := range r.TimeLost {
		lost = append(lost, fmt.Sprintf("%s to %s", lasting(one.Lost), one.Type))
	}
	if len(said) > 0 {
		fmt.Fprintf(l, "\nOutcomes of the blocks: %s.\n", strings.Join(said, ", "))
	}
	if len(lost) > 0 {
		fmt.Fprintf(l, "\nTime lost: %s.\n", strings.Join(lost, ", "))
	}
}

// notes lists what people said.
func (l *shiftLog) notes(title string, notes []oda.Found, dated bool) {
	if len(notes) == 0 {
		return
	}
	layout := "15:04"
	if dated {
		layout = "2006-01-02 15:04"
	}
	fmt.Fprintf(l, "\n## %s\n\n", title)
	for i := range notes[:min(len(notes), logNotes)] {
		f := &notes[i]
		remark := f.Summary.Remark
		from, to := remark.Interval(f.Metadata.CreatedOn)
		begin, end := from.Time().In(l.zone).Format(layout), to.Time().In(l.zone).Format("15:04")
		l.WriteString("- " + begin)
		if to > from {
			l.WriteString("–" + end)
		}
		if remark.Level != oda.Info {
			fmt.Fprintf(l, " **%s**", remark.Level)
		}
		fmt.Fprintf(l, " %s (%s", escape(remark.Text, logNote), escape(f.Metadata.CreatedBy, logName))
		if remark.Lost > 0 {
			fmt.Fprintf(l, ", lost %s to %s", lasting(remark.Lost), remark.LostTo)
		}
		for _, about := range f.Summary.References[:min(len(f.Summary.References), logAbout)] {
			l.WriteString(", " + code(about.ID))
		}
		l.WriteString(")\n")
	}
	l.more(len(notes) - logNotes)
}

// blocks tells of the blocks, with the reasons that people gave for what came of them.
func (l *shiftLog) blocks(ctx context.Context, from Engine, blocks []Block) error {
	if len(blocks) == 0 {
		return nil
	}
	l.WriteString("\n## Blocks\n")
	l.head("Block|Telescope|First call|Last call|Outcome|Calls|Failed")
	for _, b := range blocks[:min(len(blocks), logBlocks)] {
		name := code(b.ID)
		if b.Name != nil {
			name = escape(*b.Name, logName) + " " + name
		}
		outcome := "–"
		if b.Status.Text != "" {
			outcome = escape(b.Status.Text, logText)
		}
		if b.Status.Sequence > 0 {
			said, err := from.Status(ctx, oda.Ref{Kind: oda.ExecutionBlock, ID: b.ID})
			if err != nil {
				return err
			}
			if outcome = escape(said.Text, logText); said.Reason != "" {
				outcome += ": " + escape(said.Reason, logText)
			}
		}
		l.row(name, orDash(b.Telescope), l.clock(b.FirstCall), l.clock(b.LastCall), outcome, fmt.Sprint(b.Calls), fmt.Sprint(b.Failures))
	}
	l.more(len(blocks) - logBlocks)
	return nil
}

func (l *shiftLog) errors(errors []Error) {
	if len(errors) == 0 {
		return
	}
	l.WriteString("\n## Errors\n")
	l.head("Calls|Blocks|Error|First")
	for _, e := range errors[:min(len(errors), logErrors)] {
		what := "(no error given)"
		switch {
		case e.Detail != nil && e.Type != nil && !strings.Contains(*e.Detail, *e.Type):
			what = escape(*e.Type+": "+*e.Detail, logText)
		case e.Detail != nil || e.Type != nil:
			what = escape(*cmp.Or(e.Detail, e.Type), logText)
		}
		l.row(fmt.Sprint(e.Calls), fmt.Sprint(e.Blocks), what, place(e.First))
	}
	l.more(len(errors) - logErrors)
}

func (l *shiftLog) unusual(calls []UnusualCall) {
	if len(calls) == 0 {
		return
	}
	l.WriteString("\n## Unusually long calls\n")
	l.head("Took|Usually|Request|Sent|Call")
	for _, c := range calls {
		l.row(lasting(c.Took), lasting(c.Median), code(c.Request), l.clock(c.SentAt), place(c.CallPlace))
	}
}

func (l *shiftLog) head(columns string) {
	fmt.Fprintf(l, "\n| %s |\n|%s\n", strings.ReplaceAll(columns, "|", " | "), strings.Repeat(" --- |", strings.Count(columns, "|")+1))
}

func (l *shiftLog) row(cells ...string) { fmt.Fprintf(l, "| %s |\n", strings.Join(cells, " | ")) }

func (l *shiftLog) more(n int) {
	if n > 0 {
		fmt.Fprintf(l, "\nand %d more\n", n)
	}
}

func (l *shiftLog) clock(at oda.Moment) string { return at.Time().In(l.zone).Format("15:04:05") }

func place(c CallPlace) string { return fmt.Sprintf("%s #%d", code(c.Block), c.Sequence) }

func orDash(text *string) string {
	if text == nil {
		return "–"
	}
	return escape(*text, logName)
}

func many(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// lasting writes a length of time for people.
func lasting(e oda.Elapsed) string {
	seconds := int64(e / 1e6)
	switch {
	case e < 10e6:
		return fmt.Sprintf("%.3g s", e.Seconds())
	case seconds < 60:
		return fmt.Sprintf("%d s", seconds)
	case seconds < 3600:
		return fmt.Sprintf("%d min %d s", seconds/60, seconds%60)
	}
	return fmt.Sprintf("%d h %d min", seconds/3600, seconds/60%60)
}

// code writes a name in the type of a program.
func code(text string) string {
	if text == "" {
		return "–"
	}
	return "`" + strings.NewReplacer("`", "'", "|", "\\|").Replace(oneLine(text, logText)) + "`"
}

// escape writes a text of a document so that it means nothing in Markdown. A _ between
// letters does not.
func escape(text string, most int) string {
	var b strings.Builder
	runes := []rune(oneLine(text, most))
	inWord := func(i int) bool {
		return i >= 0 && i < len(runes) && (unicode.IsLetter(runes[i]) || unicode.IsDigit(runes[i]))
	}
	for i, r := range runes {
		if strings.ContainsRune("\\`*[]<>|~&", r) || r == '_' && !(inWord(i-1) && inWord(i+1)) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// oneLine returns a text on one line, shortened, and without characters that a terminal
// would obey.
func oneLine(text string, most int) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > most {
		runes = append(runes[:most], '…')
	}
	for i, r := range runes {
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			runes[i] = unicode.ReplacementChar
		}
	}
	return string(runes)
}
