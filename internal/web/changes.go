package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"oda"
	"oda/archive"
	"oda/naming"
)

// changesView is the data for the page of changes.
type changesView struct {
	frame
	Choices  []kindChoice
	Values   url.Values
	Faults   map[string]string // by the name of the parameter
	Filtered bool
	Rows     []changeRow
	End      oda.Position // of the log
	First    string       // address of the newest changes, empty on their page
	Older    string       // of older ones, empty if there are none
	Partial  bool         // the log was not read far enough to fill the page
	Stream   string       // address of the feed, with the filters that it has
}

// kindChoice is a kind to filter by.
type kindChoice struct {
	oda.Kind
	Chosen bool
}

// changeRow is a change in the table.
type changeRow struct {
	oda.Change
	Title     string
	Telescope string
	Failed    int64 // of the calls
	Counted   bool  // Failed is known
	Past      bool  // the entity has a later version, with calls of its own
}

// Calls is how many calls were recorded.
func (r *changeRow) Calls() int64 { return r.LastSequence - r.FirstSequence + 1 }

// Place is where the calls are, to be added to the address of the block. An older version
// numbers its calls from 1; when they were recorded, only the first version did.
func (r *changeRow) Place() string {
	first := "after=" + strconv.FormatInt(r.FirstSequence-1, 10) + "#call-" + strconv.FormatInt(r.FirstSequence, 10)
	switch {
	case !r.Past:
		return "?" + first
	case r.Version == 1:
		return "?version=1&" + first
	}
	return "?version=" + strconv.FormatInt(r.Version, 10) + "#calls"
}

// Bounds of the page of changes.
const (
	changesOnPage  = 50
	changesOnHome  = 8
	changesTime    = 20 * time.Millisecond // to find them
	changesFailed  = 500                   // records of a change that are looked at for failures
	changesRecords = 2000                  // of all changes of a page
)

// changeFilters are the filters in the address of the page of changes.
var changeFilters = []string{"kind", "id", "by", "change"}

// changes serves the page of changes, the newest first.
func (s *Site) changes(w http.ResponseWriter, r *http.Request) error {
	params := r.URL.Query()
	if clean, already := tidied(params); !already {
		seeOther(w, "changes"+question(clean))
		return nil
	}
	view := changesView{frame: s.newFrame(r, "Changes", "changes"), Values: params}
	view.Crumbs = []crumb{{Name: "Changes"}}
	for _, kind := range view.Kinds() {
		view.Choices = append(view.Choices, kindChoice{kind, slices.Contains(params["kind"], kind.Collection())})
	}
	filters := url.Values{}
	for _, name := range changeFilters {
		if params.Has(name) {
			filters[name] = params[name]
		}
	}
	view.Filtered = len(filters) > 0
	q, faults := parseChanges(params)
	if view.Faults = faults; len(faults) > 0 {
		return s.unkept(w, http.StatusBadRequest, "changes", view)
	}
	page, err := s.cfg.Archive.Recent(r.Context(), q)
	if err != nil {
		return err
	}
	view.End = page.End
	if view.Rows, err = s.changeRows(r.Context(), page.Changes); err != nil {
		return err
	}
	if q.Before > 0 {
		view.First = "changes" + question(filters)
	}
	if page.Next > 0 {
		view.Older = "changes" + question(with(filters, "before", strconv.FormatInt(int64(page.Next), 10)))
		view.Partial = len(page.Changes) < changesOnPage
	}
	feed := url.Values{"after": {"now"}}
	for _, name := range []string{"kind", "id"} {
		if filters.Has(name) {
			feed[name] = filters[name]
		}
	}
	view.Stream = view.Root + "api/v1/changes" + question(feed)
	return s.page(w, r, "changes", view)
}

// parseChanges reads what an address asks of the log, and what is wrong in it.
func parseChanges(params url.Values) (archive.RecentQuery, map[string]string) {
	following, err := archive.ParseFollowing(map[string][]string{"kind": params["kind"], "id": params["id"]}, "")
	faults := faultsIn(err)
	what, by := params.Get("change"), params["by"]
	if what != "" && what != "stored" && what != "recorded" && what != "status" {
		faults["change"] = "must be stored, recorded or status"
	}
	q := archive.RecentQuery{Limit: changesOnPage, Within: changesTime}
	if text := params.Get("before"); text != "" {
		before, err := strconv.ParseInt(text, 10, 64)
		if q.Before = oda.Position(before); err != nil || before < 1 {
			faults["before"] = "must be a position, which is a whole number from 1"
		}
	}
	q.Wants = func(c *oda.Change) bool {
		return following.Filter.Wants(c) && (what == "" || c.Word() == what) && (len(by) == 0 || slices.Contains(by, c.By))
	}
	return q, faults
}

// changeRows are changes with the names of their entities, and the failures among
// the calls that were recorded.
func (s *Site) changeRows(ctx context.Context, changes []oda.Change) ([]changeRow, error) {
	refs := make([]oda.Ref, len(changes))
	for i := range changes {
		refs[i] = changes[i].Ref
	}
	found, err := s.cfg.Archive.Look(ctx, refs)
	if err != nil {
		return nil, err
	}
	titles, err := s.changeTitles(ctx, changes, found)
	if err != nil {
		return nil, err
	}
	rows := make([]changeRow, len(changes))
	room := int64(changesRecords)
	for i, c := range changes {
		rows[i] = changeRow{Change: c, Title: titles[i]}
		if found[i] == nil {
			continue
		}
		rows[i].Telescope, rows[i].Past = found[i].Summary.Telescope, found[i].Metadata.Version != c.Version
		calls := rows[i].Calls()
		if !c.Recorded() || calls > min(room, changesFailed) || rows[i].Past {
			continue
		}
		room, rows[i].Counted = room-calls, true
		if rows[i].Failed, err = s.failures(ctx, &c); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// changeTitles are the names that entities had in the versions of changes. Those that are not
// stored have none.
func (s *Site) changeTitles(ctx context.Context, changes []oda.Change, found []*oda.Found) ([]string, error) {
	titles, err := s.cfg.Names.Of(ctx, found)
	if err != nil {
		return nil, err
	}
	own := make([]naming.Version, len(changes)) // of those with names of their own
	for i, c := range changes {
		if found[i] != nil && found[i].Summary.Name != "" {
			own[i] = naming.Version{Ref: c.Ref, Number: c.Version}
		}
	}
	was, err := s.cfg.Names.In(ctx, own)
	if err != nil {
		return nil, err
	}
	for i := range own {
		if own[i].ID != "" {
			titles[i] = was[i].Text
		}
	}
	return titles, nil
}

// failures counts the calls of a change that failed.
func (s *Site) failures(ctx context.Context, c *oda.Change) (failed int64, err error) {
	for r, err := range s.records(ctx, &blockState{id: c.ID}, c.FirstSequence-1, int(c.LastSequence-c.FirstSequence+1)) {
		if err != nil || r.Sequence > c.LastSequence {
			return failed, err
		}
		if oda.CallOf(r.Text).Failed {
			failed++
		}
		if r.Sequence == c.LastSequence {
			break
		}
	}
	return failed, nil
}
