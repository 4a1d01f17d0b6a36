package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"oda"
	"oda/naming"
	"oda/search"
)

// listView is the data for the page that lists entities of a kind.
type listView struct {
	frame
	Kind    oda.Kind
	Form    form
	Rows    []row
	First   string // address of the first page, empty on it
	Next    string // of the next page, empty on the last
	Partial bool   // the search has not looked at everything yet
	Damage  string // why what comes next cannot be shown; the next page begins after it
	Empty   bool   // there is nothing of this kind at all
	Loosen  []chip // filters without which something is found
	Barren  []chip // or else those that find nothing even alone
}

// row is an entity in a list.
type row struct {
	oda.Found
	Title string // the name, or that of the SBDefinition it is of
	Calls int64  // of a block
	tally tally  // of its calls
	Of    *oda.Reference
	More  string // how many targets are not shown
}

// shownTargets is how many targets of an entity a row shows.
const shownTargets = 2

// list serves the list of the entities of a kind.
func (s *Site) list(w http.ResponseWriter, r *http.Request, kind oda.Kind) error {
	params, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return oda.Errorf(oda.InvalidQuery, "The address is not well-formed: write a percent sign as %%25 and a semicolon as %%3B.")
	}
	if tidy, already := tidied(params); !already {
		seeOther(w, kind.Collection()+question(tidy))
		return nil
	}
	params.Del("fields") // a page shows what it shows
	view := listView{frame: s.newFrame(r, kind.String()+"s", kind.Collection()), Kind: kind}
	view.Crumbs = []crumb{{Name: kind.String() + "s"}}
	q, err := search.Parse(kind, params)
	view.Form = newForm(kind, params, err)
	if oda.CodeOf(err) == oda.InvalidQuery {
		return s.unkept(w, http.StatusBadRequest, "list", view)
	}
	if err != nil {
		return err
	}
	if err := s.fillList(r.Context(), &view, q, params); err != nil {
		return err
	}
	if view.Damage != "" {
		return s.unkept(w, http.StatusInternalServerError, "list", view)
	}
	return s.page(w, r, "list", view)
}

// fillList searches, and puts what was found into the view.
func (s *Site) fillList(ctx context.Context, view *listView, q search.Search, params url.Values) error {
	page, err := s.cfg.Searcher.Search(ctx, q)
	if view.Damage = s.passable(page, err); view.Damage == "" && err != nil {
		return err
	}
	items := page.Items
	for more := items; len(more) > 0; {
		if more, err = page.More(ctx); err != nil {
			return err
		}
		items = append(items, more...)
	}
	if view.Rows, err = s.rows(ctx, items); err != nil {
		return err
	}
	if params.Has("cursor") {
		view.First = view.Kind.Collection() + question(without(params, "cursor", ""))
	}
	if page.Next != "" {
		view.Next = view.Kind.Collection() + question(with(params, "cursor", page.Next))
		view.Partial = len(items) < q.Limit && view.Damage == ""
	}
	if len(items) > 0 || page.Next != "" || params.Has("cursor") {
		return nil
	}
	if len(view.Form.Chips) == 0 {
		view.Empty = true
		return nil
	}
	view.Loosen, view.Barren = s.loosen(ctx, view.Kind, view.Form.Chips)
	return nil
}

// passable says what is damaged, if a search failed because of it and can go on after it:
// one entity must not hide the others.
func (s *Site) passable(page *search.Page, err error) string {
	e, ok := errors.AsType[*oda.Error](err)
	if !ok || e.Code != oda.DamagedText || page == nil || page.Next == "" {
		return ""
	}
	s.log.Error("a page leads past what is damaged", "error", err)
	return e.Detail
}

// Bounds of the hint on what to loosen.
const (
	loosenTime  = 100 * time.Millisecond
	loosenWords = 6
)

// loosen finds the filters, or single words, without which the others would find
// something. If there are none, barren are those that find nothing even alone. This is
// only a hint.
func (s *Site) loosen(ctx context.Context, kind oda.Kind, chips []chip) (without, barren []chip) {
	ctx, cancel := context.WithTimeout(ctx, loosenTime)
	defer cancel()
	for _, c := range slices.Concat(chips, wordsOf(kind, chips)) {
		if found, sure := s.finds(ctx, kind, c.rest); sure && found {
			without = append(without, c)
		}
	}
	if without != nil {
		return without, nil
	}
	for _, c := range chips {
		if found, sure := s.finds(ctx, kind, c.alone); sure && !found {
			barren = append(barren, c)
		}
	}
	return nil, barren
}

// finds reports whether a search finds anything, if that is known in time.
func (s *Site) finds(ctx context.Context, kind oda.Kind, params url.Values) (found, sure bool) {
	q, err := search.Parse(kind, params)
	if err != nil {
		return false, false
	}
	q.Fields, q.Limit = search.Identifiers, 1
	page, err := s.cfg.Searcher.Search(ctx, q)
	return err == nil && len(page.Items) > 0, err == nil && (len(page.Items) > 0 || page.Next == "")
}

// wordsOf takes the filter with several words apart: a filter for each word.
func wordsOf(kind oda.Kind, chips []chip) (each []chip) {
	for _, c := range chips {
		words := strings.Fields(c.alone.Get("q"))
		if len(words) < 2 || len(words) > loosenWords {
			continue
		}
		for i, word := range words {
			rest := with(c.rest, "q", strings.Join(slices.Concat(words[:i], words[i+1:]), " "))
			each = append(each, chip{Name: "the word", Value: word, Href: kind.Collection() + question(rest), rest: rest})
		}
	}
	return each
}

// rows are the entities with what else is shown of them: the name of the SBDefinition,
// if they have none of their own, and the calls of blocks.
func (s *Site) rows(ctx context.Context, items []oda.Found) ([]row, error) {
	rows := make([]row, len(items))
	entities := make([]*oda.Found, len(items))
	for i, item := range items {
		rows[i], entities[i] = row{Found: item}, &items[i]
		if len(item.Summary.Targets) > shownTargets {
			rows[i].Summary.Targets, rows[i].More = item.Summary.Targets[:shownTargets], countTargets(item.Summary.Targets, shownTargets)
		}
		rows[i].Of = naming.Definition(entities[i])
	}
	if err := s.countCalls(ctx, rows); err != nil {
		return nil, err
	}
	titles, err := s.cfg.Names.Of(ctx, entities)
	if err != nil {
		return nil, err
	}
	for i, title := range titles {
		rows[i].Title = title
	}
	return rows, nil
}
