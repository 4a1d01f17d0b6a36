package client

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"net/url"

	"oda"
	"oda/search"
)

// Search gives what matches, in the order of its sort: of each entity what the
// archive knows of its current version. It reads page after page. An error is the
// last that it gives, unless the archive goes on after what is damaged (Answer.More).
func (c *Client) Search(ctx context.Context, s search.Search) iter.Seq2[*oda.Found, error] {
	return each(c.SearchPages(ctx, s))
}

// SearchPages is Search, page by page. A page may be short, or empty, and not be
// the last.
func (c *Client) SearchPages(ctx context.Context, s search.Search) iter.Seq2[[]*oda.Found, error] {
	return searchPages(ctx, c, s, search.Summaries, func(item json.RawMessage) (*oda.Found, error) {
		f := new(oda.Found)
		return f, json.Unmarshal(item, f)
	})
}

// SearchIDs is Search for those who need the identifiers only.
func (c *Client) SearchIDs(ctx context.Context, s search.Search) iter.Seq2[string, error] {
	return each(searchPages(ctx, c, s, search.Identifiers, func(item json.RawMessage) (id string, err error) {
		return id, json.Unmarshal(item, &id)
	}))
}

// SearchJSON is Search with what the archive knows of each entity as it sends it.
func (c *Client) SearchJSON(ctx context.Context, s search.Search) iter.Seq2[json.RawMessage, error] {
	return each(searchPages(ctx, c, s, search.Summaries, func(item json.RawMessage) (json.RawMessage, error) {
		return item, nil
	}))
}

// SearchDocuments is Search with the whole documents. A page is held in memory:
// where documents are large, ask for few at once. They have no entity tags.
func (c *Client) SearchDocuments(ctx context.Context, s search.Search) iter.Seq2[*Document, error] {
	return each(searchPages(ctx, c, s, search.Documents, func(item json.RawMessage) (*Document, error) {
		d := &Document{Kind: s.Kind, Body: item}
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
func searchPages[T any](ctx context.Context, c *Client, s search.Search, fields search.Fields, read func(json.RawMessage) (T, error)) iter.Seq2[[]T, error] {
	s.Fields = fields
	return pages(s.Params(), func(values url.Values) ([]T, string, error) {
		return searchPage(ctx, c, "/"+s.Kind.Collection()+"/search?"+values.Encode(), read)
	})
}

// pages gives one page after the other. An error is the last that it gives, unless there
// is a next page all the same.
func pages[T any](values url.Values, read func(url.Values) (items []T, next string, err error)) iter.Seq2[[]T, error] {
	return func(yield func([]T, error) bool) {
		values := maps.Clone(values)
		for {
			items, next, err := read(values)
			if next != "" && next == values.Get("cursor") {
				next, err = "", errors.New("the archive's pages do not go on")
			}
			if !yield(items, err) || next == "" {
				return
			}
			values.Set("cursor", next)
		}
	}
}

func searchPage[T any](ctx context.Context, c *Client, path string, read func(json.RawMessage) (T, error)) (items []T, next string, err error) {
	var page struct {
		Items []json.RawMessage `json:"items"`
		Next  string            `json:"next"` // null if there is none
	}
	r, err := c.readJSON(ctx, path, &page)
	if err != nil {
		if a, ok := errors.AsType[*Answer](err); ok {
			next = a.after
		}
		return nil, next, err
	}
	for _, raw := range page.Items {
		item, err := read(raw)
		if err != nil {
			return nil, "", garbled(r, err)
		}
		items = append(items, item)
	}
	return items, page.Next, nil
}
