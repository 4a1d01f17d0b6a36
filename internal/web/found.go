package web

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"oda"
)

// foundView is the data for the page of what the search box found.
type foundView struct {
	frame
	Groups []foundGroup
	None   bool
}

// foundGroup is what was found of one kind.
type foundGroup struct {
	Kind oda.Kind
	Rows []row
	All  string // address of all of them, empty if these are all
}

// foundOfKind is how many entities of a kind the page shows.
const foundOfKind = 8

// search answers the search box, which takes an identifier, words, or a position
// on the sky.
func (s *Site) search(w http.ResponseWriter, r *http.Request) error {
	text := strings.TrimSpace(r.URL.Query().Get("q"))
	if text == "" {
		seeOther(w, "./")
		return nil
	}
	refs, err := s.identified(r.Context(), text)
	if err != nil {
		return err
	}
	if len(refs) == 1 {
		seeOther(w, refs[0].Kind.Collection()+"/"+refs[0].ID)
		return nil
	}
	if ra, dec, ok := oda.ParsePosition(text); ok {
		cone := strconv.FormatFloat(ra, 'f', -1, 64) + "," + strconv.FormatFloat(dec, 'f', -1, 64) + ",1"
		seeOther(w, oda.SBDefinition.Collection()+question(url.Values{"cone": {cone}}))
		return nil
	}
	view := foundView{frame: s.newFrame(r, "Search: "+text, ""), None: true}
	view.Crumbs = []crumb{{Name: "Search"}}
	view.Query = text
	for _, kind := range view.Kinds() {
		group, err := s.group(r.Context(), kind, text)
		if err != nil {
			return err
		}
		view.None = view.None && len(group.Rows) == 0
		view.Groups = append(view.Groups, group)
	}
	return s.page(w, r, "found", view)
}

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

// group finds entities of a kind by words: in their own texts, or else by the
// identifier that they refer to.
func (s *Site) group(ctx context.Context, kind oda.Kind, text string) (foundGroup, error) {
	group := foundGroup{Kind: kind}
	for _, filter := range []string{"q", "ref"} {
		params := url.Values{filter: {text}}
		q, err := oda.ParseSearch(kind, params)
		if err != nil {
			continue // no word in it
		}
		q.Limit = foundOfKind
		page, err := s.cfg.Archive.Search(ctx, &q)
		if err != nil {
			return group, err
		}
		if len(page.Items) == 0 {
			continue
		}
		if page.Next != "" {
			group.All = kind.Collection() + question(params)
		}
		group.Rows, err = s.rows(ctx, page.Items)
		return group, err
	}
	return group, nil
}
