package web

import (
	"context"

	"oda"
	"oda/progress"
)

// progressView is how far a Project is, as much of it as its page shows.
type progressView struct {
	frame
	ID      string
	Busy    bool // it cannot be told now
	Blocks  []progressBlock
	Done    int
	All     int
	Unshown int64 // SBDefinitions
	Partial bool  // even the report leaves something out

	report *progress.Report
}

// progressBlock is an observing block.
type progressBlock struct {
	ID, Name    string
	Definitions []progressRow
}

// progressRow is an SBDefinition.
type progressRow struct {
	progress.Definition
	Ref      oda.Ref
	Title    string
	Standing oda.Standing
	Marks    []progressMark // of the last runs
	Earlier  int64          // runs
	Last     *progressMark
	Newer    bool        // than its last run
	Busy     oda.Elapsed // in calls, in all runs
}

// progressMark is a run.
type progressMark struct {
	progress.Run
	Ref oda.Ref // the block, or else the instance
}

// Standing is the status of the run.
func (m progressMark) Standing() oda.Standing {
	standing := oda.Standing{Text: "no status", Class: m.Class}
	if m.Status != nil {
		standing.Text = *m.Status
	}
	return standing
}

// Failed is how many of its calls failed.
func (m progressMark) Failed() int64 {
	if m.Failures == nil {
		return 0
	}
	return *m.Failures
}

// Bounds of what the page shows of the progress.
const (
	shownDefinitions = 200
	shownRuns        = 12 // of an SBDefinition
)

// progress reports on a Project. What the page shows besides does not depend on it, so it is
// shown without if there is too much to do.
func (s *Site) progress(ctx context.Context, f frame, id string) (*progressView, error) {
	report, err := s.cfg.Progress.Report(ctx, id)
	if oda.CodeOf(err) == oda.Overloaded {
		return &progressView{frame: f, ID: id, Busy: true}, nil
	}
	if err != nil {
		return nil, err
	}
	view := &progressView{frame: f, ID: id, Done: report.Done, All: report.Definitions, Partial: report.Truncated, report: report}
	left := shownDefinitions
	for _, b := range report.Blocks {
		some := b.Definitions[:min(left, len(b.Definitions))]
		left -= len(some)
		view.Unshown += int64(len(b.Definitions) - len(some))
		if len(some) == 0 && len(b.Definitions) > 0 {
			continue
		}
		block := progressBlock{ID: textOf(b.ID), Name: textOf(b.Name)}
		for _, d := range some {
			block.Definitions = append(block.Definitions, rowOf(d))
		}
		view.Blocks = append(view.Blocks, block)
	}
	return view, nil
}

func rowOf(d progress.Definition) progressRow {
	row := progressRow{Definition: d, Ref: oda.Ref{Kind: oda.SBDefinition, ID: d.ID}, Title: textOf(d.Name), Standing: oda.Standing{Text: textOf(d.Status), Class: d.Class}}
	row.Newer = d.Changed != nil && *d.Changed
	row.Earlier = int64(max(0, len(d.Runs)-shownRuns))
	for i, r := range d.Runs {
		if r.Busy != nil {
			row.Busy += *r.Busy
		}
		if i >= int(row.Earlier) {
			row.Marks = append(row.Marks, markOf(r))
		}
	}
	for i := range row.Marks {
		if row.Marks[i].Started != nil {
			row.Last = &row.Marks[i]
		}
	}
	return row
}

func markOf(r progress.Run) progressMark {
	if r.Block != nil {
		return progressMark{r, oda.Ref{Kind: oda.ExecutionBlock, ID: *r.Block}}
	}
	return progressMark{r, oda.Ref{Kind: oda.SBInstance, ID: *r.Instance}} // a run has one of them
}

func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// shownOfProject is how many entities the drawing of a Project has.
const shownOfProject = 80

// runs adds the last runs of the SBDefinitions to the drawing of a Project, with the names
// under which they ran.
func (s *Site) runs(ctx context.Context, f *family, report *progress.Report) error {
	first := len(f.Nodes)
	f.goOn(report)
	added := f.Nodes[first:]
	refs := make([]oda.Ref, len(added))
	for i := range added {
		refs[i] = added[i].Ref
	}
	found, err := s.cfg.Archive.Look(ctx, refs)
	if err != nil {
		return err
	}
	titles, err := s.cfg.Names.Of(ctx, found)
	if err != nil {
		return err
	}
	for i := range added {
		added[i].Title, added[i].Exists = titles[i], found[i] != nil
	}
	return nil
}

// goOn adds nodes without titles.
func (f *family) goOn(report *progress.Report) {
	known := make(map[oda.Ref]bool)
	for _, n := range f.Nodes {
		known[n.Ref] = true
	}
	add := func(from, to oda.Ref, node relative) oda.Ref {
		if !known[to] {
			known[to] = true
			f.Nodes = append(f.Nodes, node)
		}
		f.Edges = append(f.Edges, edge{from, to})
		return to
	}
	for _, b := range report.Blocks {
		for _, d := range b.Definitions {
			last := oda.Ref{Kind: oda.SBDefinition, ID: d.ID}
			if len(f.Nodes)+3 > shownOfProject {
				continue
			}
			if !known[last] { // it names the Project, and not the other way round
				add(f.Nodes[0].Ref, last, relative{Ref: last, Status: oda.Standing{Text: textOf(d.Status), Class: d.Class}})
			}
			if len(d.Runs) == 0 {
				continue
			}
			r := d.Runs[len(d.Runs)-1]
			standing := oda.Standing{Text: textOf(r.Status), Class: r.Class}
			if r.Instance != nil {
				ref := oda.Ref{Kind: oda.SBInstance, ID: *r.Instance}
				node := relative{Ref: ref}
				if r.Block == nil {
					node.Status = standing
				}
				last = add(last, ref, node)
			}
			if r.Block != nil {
				ref := oda.Ref{Kind: oda.ExecutionBlock, ID: *r.Block}
				node := relative{Ref: ref, Status: standing}
				if r.Started != nil {
					node.Began = r.Started.Time().Format("2006-01-02 15:04")
				}
				add(last, ref, node)
			}
		}
	}
}
