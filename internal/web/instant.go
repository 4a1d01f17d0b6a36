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
)

// instantView is the data for the page of what was running at an instant.
type instantView struct {
	frame
	Form          form
	At            oda.Instant
	Local         string // the time in the zone of the archive, if that is not UTC
	Now           bool   // it has not come yet
	Groups        []atTelescope
	Number        int  // of the calls
	More          bool // there are other calls
	Late          bool // blocks between two calls were not looked for in time
	Steps         []otherInstant
	Night         string      // the address of the night around it
	Before, After *otherNight // with calls, if nothing was running
}

// otherInstant leads to another instant.
type otherInstant struct{ Name, Title, Href string }

// atTelescope is what a telescope did at an instant.
type atTelescope struct {
	Telescope string
	Blocks    []atBlock
}

// atBlock is a block that was running at an instant, with its calls in progress.
type atBlock struct {
	ID, Title, Telescope, Href string
	Status                     oda.Standing
	Calls                      []inProgress
	First, Last                oda.Moment // of its calls, 0 if they are not known
}

// inProgress is a call that was in progress.
type inProgress struct {
	foundCall
	For string // how long, at the instant
}

// Bounds of the page of an instant.
const (
	instantCalls = 300
	betweenTime  = 2 * time.Second
	instantSpan  = 12 * time.Hour // around it, in which blocks are looked for
	aroundView   = 5 * time.Minute
)

// instant serves what was running at an instant.
func (s *Site) instant(w http.ResponseWriter, r *http.Request, params url.Values) error {
	view := &instantView{frame: s.newFrame(r, "What was running", "calls")}
	view.Crumbs = []crumb{{"Calls", "calls"}, {Name: "What was running"}}
	q, err := calls.Parse(params)
	view.Form = newCallForm(params, err)
	if oda.CodeOf(err) == oda.InvalidQuery {
		return s.unkept(w, http.StatusBadRequest, "instant", view)
	}
	if err != nil {
		return err
	}
	view.Form.Chips = slices.DeleteFunc(view.Form.Chips, func(c chip) bool { return c.rest.Get("at") == "" })
	view.At = *q.At
	view.Title, view.Crumbs[1].Name = "Running at "+inWords(view.At)+" UTC", inWords(view.At)
	local := view.At.Time().In(s.zone())
	if local.Location().String() != "UTC" {
		view.Local = local.Format("2006-01-02 15:04:05 MST")
	}
	view.Now = view.At > oda.InstantOf(time.Now())
	view.Night = "night" + question(url.Values{"date": {night.Of(local)}})
	view.step(params)
	if err := s.fillInstant(r.Context(), view, q); err != nil {
		return err
	}
	return s.page(w, r, "instant", view)
}

// step leads to the instants around this one.
func (v *instantView) step(params url.Values) {
	for _, by := range []time.Duration{-time.Hour, -10 * time.Minute, -time.Minute, time.Minute, 10 * time.Minute, time.Hour} {
		long := strings.NewReplacer(" minutes", " min", " minute", " min", " hour", " h").Replace(inUnits(by.Abs()))
		name, title := "+ "+long, long+" later"
		if by < 0 {
			name, title = "− "+long, long+" earlier"
		}
		to := with(params, "at", inAddress(v.At+oda.Instant(by/time.Microsecond)))
		to.Del("cursor")
		v.Steps = append(v.Steps, otherInstant{name, title, callsHref(to)})
	}
}

// fillInstant puts what was running into the view.
func (s *Site) fillInstant(ctx context.Context, view *instantView, q calls.Query) error {
	q.Limit = instantCalls
	page, err := s.cfg.Calls.Page(ctx, q)
	if err != nil {
		return err
	}
	rows, err := s.callRows(ctx, view.frame, page.Calls)
	if err != nil {
		return err
	}
	view.Number, view.More = len(rows), page.Next != nil
	blocks := make(map[string]*atBlock)
	block := func(id string, telescope *string) *atBlock {
		if blocks[id] == nil {
			blocks[id] = &atBlock{ID: id}
			if telescope != nil {
				blocks[id].Telescope = *telescope
			}
		}
		return blocks[id]
	}
	for _, row := range rows {
		b := block(row.Block, row.Telescope)
		b.Calls = append(b.Calls, inProgress{row, showElapsed(oda.Elapsed(view.At - oda.Instant(*row.SentAt)))})
	}
	if q == (calls.Query{At: q.At, Telescope: q.Telescope, Limit: q.Limit, OldestFirst: q.OldestFirst}) {
		view.Late = !s.addBetween(ctx, q, block)
	}
	if len(blocks) == 0 {
		view.Before, view.After = s.nightsAround(ctx, night.Query{From: *q.At, To: *q.At + 1, Telescope: q.Telescope}, withoutEmpty(url.Values{"telescope": {q.Telescope}}))
		return nil
	}
	return s.groupAt(ctx, view, blocks)
}

// addBetween adds the blocks that had calls before and after the instant. It reports whether
// there was time for it.
func (s *Site) addBetween(ctx context.Context, q calls.Query, block func(id string, telescope *string) *atBlock) bool {
	ctx, cancel := context.WithTimeout(ctx, betweenTime)
	defer cancel()
	span := oda.Instant(instantSpan / time.Microsecond)
	report, err := s.cfg.Nights.Report(ctx, night.Query{From: *q.At - span, To: *q.At + span, Telescope: q.Telescope})
	if err != nil {
		return false
	}
	for _, found := range report.Blocks {
		if found.FirstCall <= oda.Moment(*q.At) && found.LastResponse >= oda.Moment(*q.At) {
			b := block(found.ID, found.Telescope)
			b.First, b.Last = found.FirstCall, found.LastResponse
		}
	}
	return true
}

// groupAt puts the blocks of each telescope together, the first that began first.
func (s *Site) groupAt(ctx context.Context, view *instantView, blocks map[string]*atBlock) error {
	var refs []oda.Ref
	for id := range blocks {
		refs = append(refs, oda.Ref{Kind: oda.ExecutionBlock, ID: id})
	}
	found, err := s.cfg.Archive.Look(ctx, refs)
	if err != nil {
		return err
	}
	titles, err := s.cfg.Names.Of(ctx, found)
	if err != nil {
		return err
	}
	for i, ref := range refs {
		b := blocks[ref.ID]
		around := url.Values{"from": {inAddress(view.At - oda.Instant(aroundView/time.Microsecond))}, "to": {inAddress(view.At + oda.Instant(aroundView/time.Microsecond))}}
		if b.Title, b.Href = titles[i], view.EntityHref(ref)+question(around)+"#timeline"; found[i] != nil {
			b.Status = found[i].Standing
		}
		at := slices.IndexFunc(view.Groups, func(g atTelescope) bool { return g.Telescope == b.Telescope })
		if at < 0 {
			at = len(view.Groups)
			view.Groups = append(view.Groups, atTelescope{Telescope: b.Telescope})
		}
		view.Groups[at].Blocks = append(view.Groups[at].Blocks, *b)
	}
	slices.SortFunc(view.Groups, func(a, b atTelescope) int { return cmp.Compare(a.Telescope, b.Telescope) })
	for _, g := range view.Groups {
		slices.SortFunc(g.Blocks, func(a, b atBlock) int { return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.ID, b.ID)) })
	}
	return nil
}
