package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"strconv"
	"time"

	"oda"
	"oda/sky"
)

// Search says what to find. What is left at its zero value is not asked for;
// none at all finds everything.
type Search struct {
	Words string // each must occur, the last as the beginning of a word

	User  string
	Match oda.MatchType // how the user is compared; the zero value: equals

	// A zero time is no bound; both bounds are included.
	CreatedAfter, CreatedBefore           time.Time
	LastModifiedAfter, LastModifiedBefore time.Time

	Telescope        string
	Reference        string // an identifier that the entity refers to
	ReferenceVersion int64  // that it names beside it
	Cone             *sky.Cone
	Where            []string // conditions: POINTER OP VALUE

	Sort oda.Sort // the zero value: what was created last comes first
	Page int      // how many are asked for at once, at most oda.MaxSearchLimit; 0: the archive decides
}

func (s Search) values(fields oda.ItemFields) url.Values {
	values := Query{
		User: s.User, Match: s.Match, CreatedAfter: s.CreatedAfter, CreatedBefore: s.CreatedBefore,
		LastModifiedAfter: s.LastModifiedAfter, LastModifiedBefore: s.LastModifiedBefore, Page: s.Page,
	}.values()
	set := func(name, value string) {
		if value != "" {
			values.Set(name, value)
		}
	}
	set("q", s.Words)
	set("telescope", s.Telescope)
	set("ref", s.Reference)
	if s.ReferenceVersion != 0 {
		set("ref_version", strconv.FormatInt(s.ReferenceVersion, 10))
	}
	if s.Cone != nil {
		set("cone", fmt.Sprintf("%v,%v,%v", s.Cone.RA, s.Cone.Dec, s.Cone.Radius))
	}
	for _, where := range s.Where {
		values.Add("where", where)
	}
	set("sort", s.Sort.String())
	set("fields", fields.String())
	return values
}

// Search gives what matches, in the order of its sort: of each entity what the
// archive knows of its current version. It reads page after page. An error is the
// last that it gives, unless the archive goes on behind what is damaged (Answer.More).
func (c *Client) Search(ctx context.Context, kind oda.Kind, search Search) iter.Seq2[*oda.Found, error] {
	return each(c.SearchPages(ctx, kind, search))
}

// SearchPages is Search, page by page. A page may be short, or empty, and not be
// the last.
func (c *Client) SearchPages(ctx context.Context, kind oda.Kind, search Search) iter.Seq2[[]*oda.Found, error] {
	return searchPages(ctx, c, kind, search.values(oda.SummaryFields), found)
}

// SearchIDs is Search for those who need the identifiers only.
func (c *Client) SearchIDs(ctx context.Context, kind oda.Kind, search Search) iter.Seq2[string, error] {
	return each(searchPages(ctx, c, kind, search.values(oda.IdentifierOnly), func(item json.RawMessage) (id string, err error) {
		return id, json.Unmarshal(item, &id)
	}))
}

// SearchJSON is Search with what the archive knows of each entity as it sends it.
func (c *Client) SearchJSON(ctx context.Context, kind oda.Kind, search Search) iter.Seq2[json.RawMessage, error] {
	return each(searchPages(ctx, c, kind, search.values(oda.SummaryFields), func(item json.RawMessage) (json.RawMessage, error) {
		return item, nil
	}))
}

// SearchDocuments is Search with the whole documents. A page is held in memory:
// where documents are large, ask for few at once. They have no entity tags.
func (c *Client) SearchDocuments(ctx context.Context, kind oda.Kind, search Search) iter.Seq2[*Document, error] {
	return each(searchPages(ctx, c, kind, search.values(oda.WholeDocument), func(item json.RawMessage) (*Document, error) {
		d := &Document{Kind: kind, Body: item}
		return d, d.scan()
	}))
}

// each gives the items of pages one by one.
func each[T any](pages iter.Seq2[[]T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for page, err := range pages {
			if err != nil {
				var nothing T
				if !yield(nothing, err) {
					return
				}
			}
			for _, item := range page {
				if !yield(item, nil) {
					return
				}
			}
		}
	}
}

// searchPages reads the pages of a search.
func searchPages[T any](ctx context.Context, c *Client, kind oda.Kind, values url.Values, read func(json.RawMessage) (T, error)) iter.Seq2[[]T, error] {
	return func(yield func([]T, error) bool) {
		values := maps.Clone(values) // so that a second loop over the sequence begins again
		for {
			items, next, err := searchPage(ctx, c, "/"+kind.Collection()+"/search?"+values.Encode(), read)
			if next != "" && next == values.Get("cursor") {
				next, err = "", errors.New("the archive's search does not go on")
			}
			if !yield(items, err) || next == "" {
				return
			}
			values.Set("cursor", next)
		}
	}
}

func searchPage[T any](ctx context.Context, c *Client, path string, read func(json.RawMessage) (T, error)) (items []T, next string, err error) {
	r, err := c.read(ctx, path, nil)
	if err != nil {
		if a, ok := errors.AsType[*Answer](err); ok {
			next = a.behind
		}
		return nil, next, err
	}
	var page struct {
		Items []json.RawMessage `json:"items"`
		Next  *string           `json:"next"`
	}
	if err := json.Unmarshal(r.body, &page); err != nil {
		return nil, "", garbled(r, err)
	}
	for _, raw := range page.Items {
		item, err := read(raw)
		if err != nil {
			return nil, "", garbled(r, err)
		}
		items = append(items, item)
	}
	if page.Next != nil {
		next = *page.Next
	}
	return items, next, nil
}

// found reads the summary of an entity.
func found(item json.RawMessage) (*oda.Found, error) {
	var sent struct {
		Kind       string
		ID         string
		Metadata   managed
		Telescope  string
		Name       string
		Targets    []oda.Target
		References []struct {
			Kind, ID, Field string
			Version         int64
		}
	}
	if err := json.Unmarshal(item, &sent); err != nil {
		return nil, err
	}
	metadata, err := sent.Metadata.metadata()
	if err != nil {
		return nil, err
	}
	kind, known := oda.KindOf(sent.Kind)
	f := &oda.Found{Ref: oda.Ref{Kind: kind, ID: sent.ID}, Metadata: metadata}
	f.Summary.Telescope, f.Summary.Name, f.Summary.Targets = sent.Telescope, sent.Name, sent.Targets
	for _, r := range sent.References {
		to, ok := oda.KindOf(r.Kind)
		known = known && ok
		f.Summary.References = append(f.Summary.References, oda.Reference{Kind: to, ID: r.ID, Version: r.Version, Field: r.Field})
	}
	if !known {
		return nil, errors.New("it has an entity of a kind that there is not")
	}
	return f, nil
}
