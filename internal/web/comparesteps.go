package web

import (
	"context"
	"fmt"
	"html/template"
	"math"
	"strconv"

	"oda"
	"oda/alignment"
)

// stepsView is what two blocks did, next to each other: a step is a call of one, with the call
// of the other that belongs to it.
type stepsView struct {
	Sum     alignment.Sum
	Verdict []remark // what is different, in a few words
	Details []string
	Notes   []string // what the comparison leaves out
	Slowest []remark // steps that took longer or shorter than any others
	Longest string   // the call to whose length the bars are drawn
	Body    template.HTML
	Steps   int64 // on the page

	view    *compareView
	runs    [2]*blockRun
	rows    []alignment.Row
	after   int          // steps before those on the page
	drawn   int          // steps up to the last one on the page
	longest oda.Elapsed  // of all calls
	isShown map[int]bool // steps that are not folded, though they are equal
}

// remark is a few words about a comparison, which may lead to a step.
type remark struct {
	Text string
	Step int // -1: it leads nowhere
	Bad  bool
}

// Bounds of the page.
const (
	stepsOnPage   = 500
	stepsUnfolded = 100 // that a comparison may have for equal ones to be seen at once
	stepsAbove    = 3   // those before the one that a link leads to
	slowestSteps  = 5
	leastDelay    = 0.01 // of the time that the first run took: smaller differences are not listed
)

// steps compares the calls of two blocks.
func (s *Site) steps(ctx context.Context, view *compareView) error {
	v := &stepsView{view: view, isShown: make(map[int]bool)}
	view.Steps = v
	functions := make(map[string]int32)
	for i, one := range view.Heads {
		r, err := s.runOf(ctx, one, view.Exact(), functions)
		if err != nil {
			return err
		}
		v.runs[i] = r
		v.leaves(r)
	}
	from, to := v.runs[0].calls, v.runs[1].calls
	rows, isBest := alignment.Calls(from, to)
	for _, r := range v.runs {
		for i, said := range r.exactly { // calls belong together whatever came of them
			r.calls[i].Said = said
		}
	}
	if !isBest {
		v.Notes = append(v.Notes, "The blocks are too long and too different to find the best way to put all their calls next to each other. They were aligned part by part: some of the calls that are said to be extra or missing may belong together.")
	}
	v.rows, v.Sum = rows, alignment.SumOf(rows, from, to)
	v.after = int(min(afterIn(view.params), math.MaxInt32))
	if v.isBeyond() {
		return nil
	}
	names := make([]string, len(functions))
	for name, number := range functions {
		_, names[number] = lastName(name)
	}
	v.sumUp()
	v.slowest(names)
	return s.writeSteps(ctx, v)
}

// leaves notes the calls of a run that are not compared.
func (v *stepsView) leaves(r *blockRun) {
	switch {
	case r.reading:
		v.Notes = append(v.Notes, "Of "+v.view.called(r.side)+", only the first "+plural(int64(len(r.calls)), "call")+" could be read in time. Load the page again to compare them all.")
	case r.missing > 0:
		v.Notes = append(v.Notes, "Of "+v.view.called(r.side)+", only the first "+plural(int64(len(r.calls)), "call")+" are compared: it has more than the pages keep.")
	}
}

func (v *stepsView) isBeyond() bool { return v.after > 0 && v.after >= len(v.rows) }

// called names a side in words.
func (v *compareView) called(one *side) string {
	if v.From.Ref == v.To.Ref {
		return "version " + strconv.FormatInt(one.Metadata.Version, 10)
	}
	return one.ID
}

// Exact reports whether results and numbers that each run has others of are compared too.
func (v *compareView) Exact() bool { return v.params.Get("with") == "results" }

// Names are what the two runs are called.
func (v *stepsView) Names() [2]string {
	return [2]string{v.view.called(v.view.From), v.view.called(v.view.To)}
}

// Href leads to a step.
func (v *stepsView) Href(step int) string {
	after := v.after
	if step < v.after || step >= v.drawn {
		after = step - stepsAbove
	}
	return v.view.link("after", fromStart(after)) + "#step-" + strconv.Itoa(step+1)
}

// fromStart is the value of a parameter for so many steps, empty for none.
func fromStart(steps int) string {
	if steps <= 0 {
		return ""
	}
	return strconv.Itoa(steps)
}

// sumUp says what is different, in a few words and then in more.
func (v *stepsView) sumUp() {
	s := &v.Sum
	say := func(n, first int, text string, isBad bool) {
		if n > 0 {
			v.Verdict = append(v.Verdict, remark{text, first, isBad})
		}
	}
	v.Verdict = []remark{{Text: v.sameSteps(), Step: -1}}
	say(s.Of[alignment.Extra], s.First[alignment.Extra], thousands(int64(s.Of[alignment.Extra]))+" extra", false)
	say(s.Of[alignment.Missing], s.First[alignment.Missing], thousands(int64(s.Of[alignment.Missing]))+" missing", false)
	failed := " failed"
	if s.Both+s.FailedIn[0] > 0 {
		failed += " only in " + v.view.called(v.view.To)
	}
	say(s.FailedIn[1], s.FirstIn[1], thousands(int64(s.FailedIn[1]))+failed, true)
	say(s.FailedIn[0], s.FirstIn[0], thousands(int64(s.FailedIn[0]))+" failed only in "+v.view.called(v.view.From), false)
	others := " with other arguments"
	if v.view.Exact() {
		others = " with other arguments or results"
	}
	say(s.Of[alignment.Changed], s.First[alignment.Changed], thousands(int64(s.Of[alignment.Changed]))+others, false)
	if share, isKnown := s.Slower(); isKnown {
		v.Verdict = append(v.Verdict, remark{Text: slower(share), Step: -1})
		v.Details = append(v.Details, fmt.Sprintf("%s that both made and that failed in neither took %s instead of %s.",
			plural(int64(s.Timed), "call"), showElapsed(s.Took[1]), showElapsed(s.Took[0])))
	}
	if s.Both > 0 {
		v.Details = append(v.Details, plural(int64(s.Both), "call")+" failed in both.")
	}
}

// sameSteps says whether both runs made the same calls.
func (v *stepsView) sameSteps() string {
	s := &v.Sum
	switch {
	case s.Rows == 0:
		return "Neither made a call"
	case s.Steps == 0:
		return "No step in common"
	case s.Of[alignment.Missing] > 0:
		return plural(int64(s.Steps), "step") + " in both"
	}
	return "Same " + plural(int64(s.Steps), "step")
}

// slower says by how much a run was slower.
func slower(share float64) string {
	switch percent := math.Round(100 * share); {
	case share >= 2:
		return strconv.FormatFloat(1+share, 'f', 1, 64) + " × as long"
	case percent > 0:
		return strconv.FormatFloat(percent, 'f', 0, 64) + " % slower"
	case percent < 0:
		return strconv.FormatFloat(-percent, 'f', 0, 64) + " % faster"
	}
	return "as fast"
}

// slowest finds the steps whose durations differ most.
func (v *stepsView) slowest(names []string) {
	from, to := v.runs[0].calls, v.runs[1].calls
	for _, r := range v.runs {
		for i := range r.calls {
			v.longest = max(v.longest, r.calls[i].Took)
		}
	}
	v.Longest = showElapsed(v.longest)
	for _, n := range alignment.Slowest(v.rows, from, to, slowestSteps) {
		a, b := from[v.rows[n].From].Took, to[v.rows[n].To].Took
		if math.Abs(float64(b-a)) < leastDelay*float64(v.Sum.Took[0]) {
			break
		}
		how, by := "longer", b-a
		if by < 0 {
			how, by = "shorter", -by
		}
		v.isShown[n] = true
		v.Slowest = append(v.Slowest, remark{
			Text: fmt.Sprintf("%s %s %s: %s instead of %s", clipped(names[from[v.rows[n].From].Function], briefText), showElapsed(by), how, showElapsed(b), showElapsed(a)),
			Step: n,
		})
	}
}

// Range says which steps are on the page, if these are not all.
func (v *stepsView) Range() string {
	if v.Steps == int64(len(v.rows)) {
		return ""
	}
	return "Steps " + thousands(int64(v.after)+1) + " to " + thousands(int64(v.drawn)) + " of " + thousands(int64(len(v.rows)))
}

// Earlier and Later are the addresses of the steps before and after these.
func (v *stepsView) Earlier() string {
	if v.after == 0 {
		return ""
	}
	return v.view.link("after", fromStart(v.after-stepsOnPage))
}

func (v *stepsView) Later() string {
	if v.drawn == len(v.rows) {
		return ""
	}
	return v.view.link("after", strconv.Itoa(v.drawn))
}

// Onward leads to the first difference after the page, if there is one.
func (v *stepsView) Onward() string {
	for n := v.drawn; n < len(v.rows); n++ {
		if v.kind(n) != alignment.Same {
			return v.Href(n)
		}
	}
	return ""
}

// Equal reports whether the page has steps, and all are the same in both runs.
func (v *stepsView) Equal() bool {
	for n := v.after; n < v.drawn; n++ {
		if v.kind(n) != alignment.Same {
			return false
		}
	}
	return v.drawn > v.after
}

func (v *stepsView) kind(n int) alignment.Kind {
	return alignment.KindOf(v.rows[n], v.runs[0].calls, v.runs[1].calls)
}
