package web

import (
	"bytes"
	"context"
	"html/template"
	"strconv"

	"oda/alignment"
)

// stepRows writes the steps of a page. It writes HTML by hand, as comparison does, and reads
// one record of each run at a time. Everything that comes from a record is escaped.
type stepRows struct {
	*stepsView
	next  [2]func(place int) ([]byte, error)
	out   bytes.Buffer
	bytes int // of the texts
}

// writeSteps writes the steps on the page, those that are equal folded.
func (s *Site) writeSteps(ctx context.Context, v *stepsView) error {
	end := min(len(v.rows), v.after+stepsOnPage)
	w := &stepRows{stepsView: v}
	for i, r := range v.runs {
		first := len(r.calls)
		for n := end - 1; n >= v.after; n-- {
			if place := v.rows[n].Places()[i]; place >= 0 {
				first = place
			}
		}
		next, stop := s.texts(ctx, r, first, min(stepsOnPage, len(r.calls)-first))
		defer stop()
		w.next[i] = next
	}
	v.drawn = v.after
	for v.drawn < end && w.bytes < shownBytes {
		n, folded := v.fold(v.drawn, end)
		for folded == "" && n < end {
			next, what := v.fold(n, end)
			if what != "" {
				break
			}
			n = next
		}
		if err := w.group(n, folded); err != nil {
			return err
		}
	}
	v.Steps = int64(v.drawn - v.after)
	v.Body = template.HTML(w.out.String()) // #nosec G203 -- everything in it was escaped
	return nil
}

// fold returns up to where the steps from one on are folded, and what they are called: those
// that are equal, or all but the first of many that only one run has. Otherwise it returns the
// next step and nothing.
func (v *stepsView) fold(n, end int) (until int, what string) {
	kind := v.kind(n)
	until = n
	for until < end && v.kind(until) == kind && !v.isShown[until] {
		until++
	}
	ahead := n
	for ahead > v.after && n-ahead < aheadOfFold && v.kind(ahead-1) == kind {
		ahead--
	}
	switch {
	case kind == alignment.Same && until-n >= worthFolding:
		return until, "equal step"
	case (kind == alignment.Extra || kind == alignment.Missing) && until-n > longRun-aheadOfFold && n-ahead == aheadOfFold:
		return until, "further " + stepKinds[kind].text + " step"
	}
	return n + 1, ""
}

// group writes the steps up to one, as long as there is room.
func (w *stepRows) group(end int, folded string) error {
	if folded != "" {
		open := ""
		if len(w.rows) <= stepsUnfolded {
			open = " open"
		}
		w.out.WriteString(`<details class="equal"` + open + `><summary>` + plural(int64(end-w.drawn), folded) + `</summary>`)
	}
	w.out.WriteString("<table><tbody>\n")
	for ; w.drawn < end && w.bytes < shownBytes; w.drawn++ {
		if err := w.row(w.drawn); err != nil {
			return err
		}
	}
	w.out.WriteString("</tbody></table>")
	if folded != "" {
		w.out.WriteString("</details>\n")
	}
	return nil
}

// What a row says of its kind, which is a class as well.
var stepKinds = [...]struct{ class, text string }{
	alignment.Same:    {"", ""},
	alignment.Changed: {"changed", "other arguments"},
	alignment.Failed:  {"differs", "failed in one"},
	alignment.Extra:   {"extra", "extra"},
	alignment.Missing: {"missing", "missing"},
}

func (w *stepRows) row(n int) error {
	kind := stepKinds[w.kind(n)]
	if w.kind(n) == alignment.Changed && w.view.Exact() {
		kind.text = "other arguments or result"
	}
	w.out.WriteString(`<tr id="step-` + strconv.Itoa(n+1) + `" class="` + kind.class + `">`)
	var texts [2]string
	places := w.rows[n].Places()
	for i, place := range places {
		if place >= 0 {
			record, err := w.next[i](place)
			if err != nil {
				return err
			}
			texts[i] = calledText(record, w.view.Exact())
		}
		w.number(i, place)
	}
	w.out.WriteString(`<td class="say">`)
	if kind.text != "" {
		w.out.WriteString(`<span class="kind">` + kind.text + `</span> `)
	}
	w.said(places, texts)
	w.out.WriteString(`</td><td class="times">`)
	for i, place := range places {
		if place >= 0 {
			w.time(i, &w.runs[i].calls[place])
		}
	}
	w.out.WriteString("</td></tr>\n")
	return nil
}

// number writes the cell with the number of a call, which leads to it.
func (w *stepRows) number(run, place int) {
	w.out.WriteString(`<td class="n">`)
	if place >= 0 {
		side := w.runs[run].side
		sequence := strconv.FormatInt(w.runs[run].sequences[place], 10)
		href := side.Href + "?call="
		if !side.Current {
			href = side.Href + "&call="
		}
		w.out.WriteString(`<a href="` + template.HTMLEscapeString(href+sequence) + `#timeline"><span class="unseen">` +
			template.HTMLEscapeString(w.view.called(side)) + `: </span>` + sequence + `</a>`)
	}
	w.out.WriteString(`</td>`)
}

// said writes what was called: once, if it was the same in both runs.
func (w *stepRows) said(places [2]int, texts [2]string) {
	isPair := places[0] >= 0 && places[1] >= 0
	var parts [2]part
	if isPair && texts[0] != texts[1] {
		parts[0], parts[1] = unlike(texts[0], texts[1])
	}
	for i, class := range [...]string{"gone", "new"} {
		switch {
		case places[i] < 0 || isPair && texts[0] == texts[1] && i == 0:
			continue
		case isPair && texts[0] == texts[1]:
			class = ""
		}
		if w.runs[i].calls[places[i]].Failed {
			class += " failed"
		}
		w.out.WriteString(`<p class="` + class + `">`)
		w.bytes += marked(&w.out, texts[i], parts[i], [...]string{"del", "ins"}[i])
		w.out.WriteString(`</p>`)
	}
}

// time writes how long a call took, with a bar.
func (w *stepRows) time(run int, c *alignment.Call) {
	text, width := "not known", 0.0
	if c.Took >= 0 {
		text = showElapsed(c.Took)
		width = 100 * float64(c.Took) / float64(max(1, w.longest))
	}
	class := [...]string{"first", "second"}[run]
	failed := ""
	if c.Failed {
		class, failed = class+" failed", "failed, "
	}
	w.out.WriteString(`<span class="time ` + class + `"><span class="unseen">` + template.HTMLEscapeString(w.view.called(w.runs[run].side)) + `: </span>` +
		`<svg width="100%" height="10" aria-hidden="true"><rect y="1" height="8" width="` + strconv.FormatFloat(width, 'f', 2, 64) + `%"/></svg> ` + failed + text + `</span>`)
}
