package web

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"oda"
	"oda/calls"
	"oda/night"
	"oda/search"
)

// nowView is what the telescopes are doing. It is a part of the home page, and nearly all
// of the page for the wall of a control room.
type nowView struct {
	frame
	At         oda.Instant // when it was asked for
	Trouble    string      // why the archive cannot be used fully, empty if it can
	Telescopes []nowTelescope
	More       int // telescopes
	Plot       *nightPlot
	Night      string // the address of the night
	Noon       string // when the night began, in its zone
	Zone       string // of the archive
	Late       bool   // what was done tonight is not all known yet
	Failed     *failedSince
	Notes      []noteRow // of the night, the newest first
	Newest     []row     // blocks, as far as they are read

	found []oda.Found // the newest blocks
}

// nowTelescope is what a telescope is doing.
type nowTelescope struct {
	Name   string // empty: the blocks without one
	Blocks []nowBlock
	More   string // the address of others that should be running, empty if there are none
	Last   *nowBlock
	Failed *failedSince // since noon, nil if that is not known
	Latest *foundCall   // the last of these

	active oda.Moment // when something was heard of it
}

// failedSince is how many calls failed.
type failedSince struct {
	Calls int64
	Href  string
}

// nowBlock is a block that is running, or the last that was.
type nowBlock struct {
	oda.Ref
	Telescope   string
	Title, Href string
	Status      oda.Standing
	Since       oda.Moment
	LastCall    oda.Moment // when the last call ended, 0 if that is not known
	Calls       []nowCall
	MoreCalls   int

	now    oda.Moment
	live   bool // a call of it is running and not silent
	active oda.Moment
}

// Running reports whether somebody said that the block is running.
func (b *nowBlock) Running() bool { return b.Status.Class == oda.ClassRunning }

// Quiet reports whether the last call of the block is not of the last minutes.
func (b *nowBlock) Quiet() bool { return b.LastCall+recently < b.now }

// nowCall is a call in progress.
type nowCall struct {
	oda.RunningCall
	Name  string      // of the function, without its module
	Usual oda.Elapsed // how long such a call takes, 0 if that is not known
	Long  bool        // it takes much longer
}

// UsualText is how long such a call takes, for people.
func (c *nowCall) UsualText() string { return showElapsed(c.Usual) }

// muchLonger is how many times the median a call takes that takes much longer, as in the
// report on a night.
const muchLonger = 2

// newNowCall reads a call in progress, given how long such calls take.
func newNowCall(c oda.RunningCall, now oda.Instant, usual oda.Elapsed) nowCall {
	_, name := lastName(c.Request)
	return nowCall{c, name, usual, usual > 0 && oda.Elapsed(now-oda.Instant(c.SentAt)) > muchLonger*usual}
}

// Bounds of what is shown, and of what it takes to find it.
const (
	nowTelescopes = 8
	nowBlocks     = 2  // of a telescope
	nowCalls      = 3  // of a block
	nowOverlap    = 2  // rows of a telescope in the strip
	saidRunning   = 20 // blocks that should be running
	nowNotes      = 4
	nowOnWall     = 12 // newest blocks, where no telescope is known

	latestTime = 10 * time.Millisecond // to find the last call of a telescope that failed

	recently = oda.Moment(10 * time.Minute / time.Microsecond) // a block with calls since then has not ended
	lately   = oda.Moment(24 * time.Hour / time.Microsecond)   // a block without calls since then hardly runs
)

// now serves the page for a wall.
func (s *Site) now(w http.ResponseWriter, r *http.Request) error {
	view, err := s.newNow(r)
	if err != nil {
		return err
	}
	view.Title, view.Wall = "Now", true
	if len(view.Telescopes) == 0 {
		if view.Newest, err = s.rows(r.Context(), view.found[:min(len(view.found), nowOnWall)]); err != nil {
			return err
		}
	}
	return s.page(w, r, "now", view)
}

// Block is the kind of the newest entities.
func (nowView) Block() oda.Kind { return oda.ExecutionBlock }

// newNow finds what the telescopes are doing.
func (s *Site) newNow(r *http.Request) (*nowView, error) {
	ctx := r.Context()
	now := s.nowIn(nil)
	v := &nowView{frame: s.newFrame(r, "", ""), At: oda.InstantOf(now), Zone: now.Location().String()}
	v.Trouble = s.trouble(ctx)
	begun, err := s.cfg.Archive.Running(ctx, "")
	if err != nil {
		return nil, err
	}
	newest, err := s.cfg.Searcher.Search(ctx, search.Search{Kind: oda.ExecutionBlock, Limit: nowOnWall})
	if err != nil {
		return nil, err
	}
	v.found = newest.Items
	said, err := s.cfg.Searcher.Search(ctx, search.Search{Kind: oda.ExecutionBlock, Class: oda.ClassRunning, Sort: oda.LastModifiedFirst, Limit: saidRunning})
	if err != nil {
		return nil, err
	}
	report, fresh := s.tonight.report(ctx, now)
	v.Late = !fresh
	g := gathering{now: oda.Moment(v.At), blocks: make(map[string]*nowBlock), telescopes: make(map[string]*nowTelescope), report: report}
	if err := s.lookAt(ctx, &g, begun); err != nil {
		return nil, err
	}
	for _, f := range slices.Concat(newest.Items, said.Items) {
		g.block(&f)
	}
	g.addReport()
	g.addCalls(begun)
	g.choose(v)
	if err := s.name(ctx, v, &g); err != nil {
		return nil, err
	}
	if report != nil {
		s.addNight(ctx, v, report, now)
	}
	return v, nil
}

// trouble says why the archive cannot be used fully, empty if it can.
func (s *Site) trouble(ctx context.Context) string {
	quick, cancel := context.WithTimeout(ctx, healthTime)
	defer cancel()
	return troubleOf(s.cfg.Archive.Ping(quick))
}

// gathering is what is known of blocks that may be running.
type gathering struct {
	now        oda.Moment
	report     *night.Report // nil if it is not known
	found      map[string]*oda.Found
	blocks     map[string]*nowBlock
	telescopes map[string]*nowTelescope
}

// lookAt reads the blocks that calls in progress belong to, and those with calls of the last minutes.
func (s *Site) lookAt(ctx context.Context, g *gathering, begun []oda.RunningCall) error {
	var refs []oda.Ref
	known := make(map[string]bool)
	want := func(id string) {
		if !known[id] {
			known[id], refs = true, append(refs, oda.Ref{Kind: oda.ExecutionBlock, ID: id})
		}
	}
	for i := range begun {
		want(begun[i].Block)
	}
	if g.report != nil {
		for i := range g.report.Blocks {
			if b := &g.report.Blocks[i]; b.LastResponse+recently > g.now && !b.Status.Class.Ended() {
				want(b.ID)
			}
		}
	}
	found, err := s.cfg.Archive.Look(ctx, refs)
	if err != nil {
		return err
	}
	for _, f := range found {
		if f != nil {
			g.block(f)
		}
	}
	return nil
}

// block notes a block.
func (g *gathering) block(f *oda.Found) *nowBlock {
	b := g.blocks[f.ID]
	if b == nil {
		b = &nowBlock{now: g.now, Ref: f.Ref, Telescope: f.Summary.Telescope, Status: f.Standing, Since: oda.Moment(f.Metadata.CreatedOn), active: oda.Moment(f.Metadata.LastModifiedOn)}
		g.blocks[f.ID] = b
		if g.found == nil {
			g.found = make(map[string]*oda.Found)
		}
		g.found[f.ID] = f
		g.telescope(b.Telescope)
	}
	return b
}

func (g *gathering) telescope(name string) *nowTelescope {
	t := g.telescopes[name]
	if t == nil {
		t = &nowTelescope{Name: name}
		g.telescopes[name] = t
	}
	return t
}

// addReport adds what was done tonight.
func (g *gathering) addReport() {
	if g.report == nil {
		return
	}
	for i := range g.report.Blocks {
		done := &g.report.Blocks[i]
		t := g.telescope(telescopeOf(*done))
		t.active = max(t.active, done.LastResponse)
		if b := g.blocks[done.ID]; b != nil {
			b.Since, b.LastCall, b.active = done.FirstCall, done.LastResponse, max(done.LastResponse, b.active)
		}
	}
}

// addCalls adds the calls in progress to their blocks.
func (g *gathering) addCalls(begun []oda.RunningCall) {
	slices.SortStableFunc(begun, func(a, b oda.RunningCall) int { return cmp.Compare(a.SentAt, b.SentAt) })
	for i := range begun {
		b := g.blocks[begun[i].Block]
		if b == nil {
			continue // it was read before the call began
		}
		if !begun[i].Silent {
			b.live = true
		}
		b.active = max(b.active, begun[i].RenewedOn)
		if b.Since > begun[i].SentAt {
			b.Since = begun[i].SentAt
		}
		if len(b.Calls) == nowCalls {
			b.MoreCalls++
			continue
		}
		usual := oda.Elapsed(0)
		if g.report != nil {
			usual = g.report.Usual[begun[i].Request]
		}
		b.Calls = append(b.Calls, newNowCall(begun[i], oda.Instant(g.now), usual))
	}
}

// runs reports whether a block may be running: its recorder says so, or somebody did, or it
// has calls of the last minutes. A call that is silent in a block that has ended is over.
func (g *gathering) runs(b *nowBlock) bool {
	switch {
	case b.live:
		return true
	case b.Status.Class.Ended():
		return false
	case len(b.Calls) > 0:
		return true
	case b.Running():
		return b.active+lately > g.now
	}
	return b.LastCall+recently > g.now
}

// choose puts the blocks that run into the view: for each telescope those with the latest
// news. Where none runs, it takes the last one that did.
func (g *gathering) choose(v *nowView) {
	var all []*nowBlock
	for _, b := range g.blocks {
		all = append(all, b)
	}
	slices.SortFunc(all, func(a, b *nowBlock) int {
		return cmp.Or(compareBool(b.live, a.live), cmp.Compare(b.active, a.active), cmp.Compare(a.ID, b.ID))
	})
	for _, b := range all {
		t := g.telescope(b.Telescope)
		t.active = max(t.active, b.active)
		switch runs := g.runs(b); {
		case runs && len(t.Blocks) < nowBlocks:
			if b.Running() && b.Status.Sequence > 0 {
				b.Since = oda.Moment(b.Status.At)
			}
			t.Blocks = append(t.Blocks, *b)
		case runs:
			t.More = "ebs" + question(withoutEmpty(url.Values{"class": {oda.ClassRunning.String()}, "telescope": {t.Name}}))
		case t.Last == nil:
			t.Last = b
		}
	}
	for _, t := range g.telescopes {
		if t.Name != "" || len(t.Blocks) > 0 { // blocks of no telescope are of interest while they run
			v.Telescopes = append(v.Telescopes, *t)
		}
	}
	slices.SortFunc(v.Telescopes, func(a, b nowTelescope) int {
		return cmp.Or(compareBool(a.Name == "", b.Name == ""), strings.Compare(a.Name, b.Name))
	})
	if len(v.Telescopes) > nowTelescopes {
		v.More = len(v.Telescopes) - nowTelescopes
		slices.SortStableFunc(v.Telescopes, func(a, b nowTelescope) int { return cmp.Compare(b.active, a.active) })
		v.Telescopes = v.Telescopes[:nowTelescopes]
	}
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// shownBlocks are the blocks of the view.
func (v *nowView) shownBlocks() []*nowBlock {
	var all []*nowBlock
	for i := range v.Telescopes {
		t := &v.Telescopes[i]
		for j := range t.Blocks {
			all = append(all, &t.Blocks[j])
		}
		if len(t.Blocks) > 0 {
			t.Last = nil
		} else if t.Last != nil {
			all = append(all, t.Last)
		}
	}
	return all
}

// name gives the blocks of the view their names.
func (s *Site) name(ctx context.Context, v *nowView, g *gathering) error {
	shown := v.shownBlocks()
	found := make([]*oda.Found, len(shown))
	for i, b := range shown {
		found[i] = g.found[b.ID]
	}
	names, err := s.cfg.Names.Called(ctx, found)
	if err != nil {
		return err
	}
	for i, b := range shown {
		b.Title, b.Href = cmp.Or(names[i].Text, names[i].Targets, b.ID), v.EntityHref(b.Ref)
	}
	return nil
}

// addNight adds the strip of the night, and what failed in it.
func (s *Site) addNight(ctx context.Context, v *nowView, report *night.Report, now time.Time) {
	drawn := &nightView{frame: v.frame, Report: report, zone: now.Location(), now: now, overlap: nowOverlap, SoFar: true}
	v.Noon, v.Night = drawn.Begin(), v.Root+"night"+question(url.Values{"date": {night.Of(report.From.Time().In(drawn.zone))}})
	params := url.Values{"outcome": {string(oda.CallFailed)}, "from": {inAddress(oda.Instant(report.From))}}
	v.Failed = &failedSince{report.Failures, v.Root + callsHref(params)}
	latest := slices.Clone(report.Notes[max(0, len(report.Notes)-nowNotes):])
	slices.Reverse(latest)
	v.Notes = v.noteRows(latest, drawn.zone, false)
	if report.Calls == 0 {
		return
	}
	drawn.fillUse()
	plot := drawn.draw()
	v.Plot = &plot
	for _, use := range report.Telescopes {
		i := slices.IndexFunc(v.Telescopes, func(t nowTelescope) bool { return t.Name == orEmpty(use.Telescope) })
		if i < 0 {
			continue
		}
		t := &v.Telescopes[i]
		t.Failed = &failedSince{Calls: use.Failures}
		if t.Name != "" { // a question about calls cannot ask for those of no telescope
			t.Failed.Href = v.Root + callsHref(with(params, "telescope", t.Name))
			if use.Failures > 0 {
				t.Latest = s.latestFailed(ctx, v, t.Name, oda.Instant(report.From))
			}
		}
	}
}

// latestFailed is the last call of a telescope that failed since a time, nil if it is not
// found in a moment.
func (s *Site) latestFailed(ctx context.Context, v *nowView, telescope string, since oda.Instant) *foundCall {
	page, err := s.cfg.Calls.Page(ctx, calls.Query{Outcome: oda.CallFailed, Telescope: telescope, From: &since, Limit: 1, Within: latestTime})
	if err != nil || len(page.Calls) == 0 {
		return nil
	}
	rows, err := s.callRows(ctx, v.frame, page.Calls)
	if err != nil {
		return nil
	}
	return &rows[0]
}
