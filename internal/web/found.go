package web

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"slices"
	"strings"

	"oda"
	"oda/search"
	"oda/sky"
)

// foundView is the data for the page of what the search box found.
type foundView struct {
	frame
	Groups []foundGroup
	Calls  *callsFound
	None   bool
	Near   *nearby
	Apart  string // what was searched for instead, as nothing had the text itself
}

// nearby is the position in the name of a source.
type nearby struct {
	RA, Dec float64
	Href    string // of what is near it
}

// foundGroup is what was found of one kind.
type foundGroup struct {
	Kind oda.Kind
	Rows []row
	All  string // address of all of them, empty if these are all
	Of   string // what they have to do with the text, if it is not in them

	Damage string // why there are no rows, though others may match
}

// foundOfKind is how many entities of a kind the page shows.
const foundOfKind = 8

// search answers the search box, which takes whatever names a page, words, the name of a
// user or a telescope, a position on the sky, a time, or what calls are about.
func (s *Site) search(w http.ResponseWriter, r *http.Request) error {
	text := strings.TrimSpace(r.URL.Query().Get("q"))
	if text == "" {
		seeOther(w, "")
		return nil
	}
	to, err := s.pageNamed(r.Context(), text)
	if err != nil {
		return err
	}
	if cone, ok := onTheSky(text); ok && to == "" {
		to = coneHref(cone)
	}
	if to != "" {
		seeOther(w, to)
		return nil
	}
	view := foundView{frame: s.newFrame(r, "Search: "+clipped(text, briefText), ""), None: true}
	view.Crumbs = []crumb{{Name: "Search"}}
	view.Query = text
	if ra, dec, ok := sky.PositionInName(text); ok {
		view.Near = &nearby{ra, dec, coneHref(sky.Cone{RA: ra, Dec: dec, Radius: sky.DefaultRadius})}
	}
	if err := s.fillFound(r.Context(), &view, text); err != nil {
		return err
	}
	if apart := lettersApart(text); view.None && apart != text {
		if err := s.fillFound(r.Context(), &view, apart); err != nil {
			return err
		}
		if !view.None {
			view.Apart = apart
		}
	}
	return s.page(w, r, "found", view)
}

// fillFound puts into the view what has something to do with a text.
func (s *Site) fillFound(ctx context.Context, view *foundView, text string) (err error) {
	view.Groups, view.None = nil, true
	for _, kind := range view.Kinds() {
		group, err := s.group(ctx, kind, text)
		if err != nil {
			return err
		}
		view.None = view.None && len(group.Rows) == 0 && group.Damage == ""
		view.Groups = append(view.Groups, group)
	}
	if err := s.made(ctx, view.Groups); err != nil {
		return err
	}
	view.Calls, err = s.callsFound(ctx, view.frame, text)
	view.None = view.None && view.Calls == nil
	return err
}

// onTheSky reads a circle from a text. It takes neither whole numbers, which may be words,
// nor the position in the name of a source, which is a name first.
func onTheSky(text string) (sky.Cone, bool) {
	if _, _, named := sky.PositionInName(text); named || !strings.ContainsAny(text, ".:") {
		return sky.Cone{}, false
	}
	cone, err := sky.ReadCone(text)
	return cone, err == nil
}

// coneHref is the address of what is within a circle.
func coneHref(c sky.Cone) string {
	for _, degrees := range []*float64{&c.RA, &c.Dec, &c.Radius} {
		*degrees = math.Round(*degrees*1e6) / 1e6
	}
	return listHref(search.Search{Kind: oda.SBDefinition, Cone: &c})
}

// listHref is the address of what a search finds.
func listHref(s search.Search) string { return s.Kind.Collection() + question(s.Params()) }

// identified gives the entities that a text is the identifier of: identifiers
// are unique in each kind only.
func (s *Site) identified(ctx context.Context, text string) ([]oda.Ref, error) {
	if !oda.ValidID(text) {
		return nil, nil
	}
	refs := make([]oda.Ref, len(oda.Kinds))
	for i, kind := range oda.Kinds {
		refs[i] = oda.Ref{Kind: kind, ID: text}
	}
	found, err := s.cfg.Archive.Look(ctx, refs)
	if err != nil {
		return nil, err
	}
	var stored []oda.Ref
	for i, ref := range refs {
		if found[i] != nil {
			stored = append(stored, ref)
		}
	}
	return stored, nil
}

// group finds entities of a kind by their telescope, by words in their own texts, or else
// by the identifier that they refer to, or by who created them.
func (s *Site) group(ctx context.Context, kind oda.Kind, text string) (foundGroup, error) {
	group := foundGroup{Kind: kind}
	ways := []struct {
		asked search.Search
		of    string
	}{
		{search.Search{Words: text}, ""},
		{search.Search{Reference: text}, "that refer to it"},
		{search.Search{User: text}, "created by this user"},
		{search.Search{Status: text}, "with this status"},
		{search.Search{Telescope: text}, "of this telescope"},
	}
	if telescope, ok := telescopeNamed(text); ok {
		last := len(ways) - 1
		ways[last].asked.Telescope = telescope
		ways[0], ways[last] = ways[last], ways[0]
	}
	for _, by := range ways {
		params := by.asked.Params()
		q, err := search.Parse(kind, params)
		if err != nil {
			continue // no word in it
		}
		q.Limit = foundOfKind
		page, err := s.cfg.Searcher.Search(ctx, q)
		if group.Damage = s.passable(page, err); group.Damage != "" {
			group.All = kind.Collection() + question(with(params, "cursor", page.Next))
			return group, nil
		}
		if err != nil {
			return group, err
		}
		if len(page.Items) == 0 {
			continue
		}
		if page.Next != "" {
			group.All = kind.Collection() + question(params)
		}
		group.Of = by.of
		group.Rows, err = s.rows(ctx, page.Items)
		return group, err
	}
	return group, nil
}

// made adds the blocks and instances that were made of the SBDefinitions that were
// found: they have no names of their own.
func (s *Site) made(ctx context.Context, groups []foundGroup) error {
	at := slices.IndexFunc(groups, func(g foundGroup) bool { return g.Kind == oda.SBDefinition })
	definitions := groups[at].Rows
	for i := range groups {
		g := &groups[i]
		if len(g.Rows) > 0 || g.Damage != "" || g.Kind != oda.ExecutionBlock && g.Kind != oda.SBInstance {
			continue
		}
		var found []oda.Found
		for _, d := range definitions {
			q := search.Search{Kind: g.Kind, Reference: d.ID, Limit: foundOfKind}
			page, err := s.cfg.Searcher.Search(ctx, q)
			if err != nil {
				return err
			}
			if found = append(found, page.Items...); page.Next != "" && len(definitions) == 1 {
				g.All = listHref(search.Search{Kind: g.Kind, Reference: d.ID})
			}
		}
		slices.SortStableFunc(found, func(a, b oda.Found) int { return cmp.Compare(b.Metadata.CreatedOn, a.Metadata.CreatedOn) })
		rows, err := s.rows(ctx, found[:min(len(found), foundOfKind)])
		if err != nil {
			return err
		}
		g.Rows, g.Of = rows, "made of these SBDefinitions"
	}
	return nil
}

// telescopeNamed returns the telescope that people call so.
func telescopeNamed(text string) (telescope string, ok bool) {
	telescope = strings.NewReplacer("-", "_", " ", "_").Replace(strings.ToLower(strings.TrimSpace(text)))
	return telescope, slices.Contains([]string{"ska_mid", "ska_low"}, telescope)
}
