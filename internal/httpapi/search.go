package httpapi

import (
	"fmt"
	"net/url"

	"oda"
	"oda/internal/rawjson"
	"oda/internal/sheet"
	"oda/search"
)

// search answers with a page of entities.
func (a *API) search(c *call) error {
	q, err := search.Parse(c.kind, c.query)
	if err != nil {
		return err
	}
	form := itemForm{media: "application/json", first: `{"items":[`, between: ","}
	if c.wantsTable() {
		form = itemForm{media: tableType, table: true}
		if q.Fields != search.Summaries {
			return oda.Errorf(oda.InvalidQuery, "Identifiers and documents are no tables. With Accept: text/csv, leave fields out.")
		}
	}
	for most := q.Limit; ; {
		page, err := a.cfg.Searcher.SearchFirst(c.r.Context(), q, most)
		next := "null"
		c.Header().Del("Link")
		if page != nil && page.Next != "" {
			c.head("Link", fmt.Sprintf(`<search?cursor=%s&fields=%s&limit=%d>; rel="next"`, url.QueryEscape(page.Next), q.Fields, q.Limit))
			next = `"` + page.Next + `"`
		}
		if err != nil {
			return err
		}
		w := c.respond(form.media, "", held)
		good, err := form.write(c, w, q.Fields, page)
		if fewer := max(good, 1); oda.CodeOf(err) == oda.DamagedText && !w.started && fewer < most {
			// The page ends before a document that is damaged. If that is the first one, the
			// answer is the problem, with a link to what comes after it.
			most = fewer
			continue
		}
		if err == nil && !form.table {
			_, err = w.Write([]byte(`],"next":` + next + `}`))
		}
		if err != nil {
			return c.sendError(err)
		}
		return c.sendError(w.close())
	}
}

// itemForm is how the items of a page are written.
type itemForm struct {
	media          string
	table          bool
	first, between string // before the first item, and between two
}

// write writes the answer up to its last item. It returns how many items of the
// page could be read.
func (p *itemForm) write(c *call, w *response, fields search.Fields, page *search.Page) (good int, err error) {
	add := func(text []byte) error { _, err := w.Write(text); return err }
	if p.table {
		t, err := sheet.New(w, oda.FoundColumns(c.kind))
		if err != nil {
			return 0, err
		}
		add = t.Add
	}
	before := p.first
	for items := page.Items; len(items) > 0; {
		for i := range items {
			item, err := itemOf(c, fields, page, &items[i], add)
			if err != nil {
				return good, err
			}
			if item == nil {
				good++
				continue
			}
			if _, err := w.Write([]byte(before)); err != nil {
				return good, err
			}
			before = p.between
			if err := item(w); err != nil {
				return good, err
			}
			good++
		}
		if items, err = page.More(c.r.Context()); err != nil {
			return good, err
		}
	}
	if before != p.between {
		_, err = w.Write([]byte(before))
	}
	return good, err
}

// itemOf returns a function that writes an item. It returns nil if the entity has
// changed since and no longer matches. Documents are read one by one as they are
// written, since together they may be large.
func itemOf(c *call, fields search.Fields, page *search.Page, f *oda.Found, add func([]byte) error) (func(*response) error, error) {
	if fields == search.Documents {
		before := c.held()
		e, err := page.Document(c.work(), f)
		taken := c.held() - before
		if err != nil || e == nil {
			c.Give(taken)
			return nil, err
		}
		return func(w *response) error {
			defer c.Give(taken)
			_, err := e.WriteTo(w)
			return err
		}, nil
	}
	text := rawjson.AppendQuoted(nil, f.ID)
	if fields == search.Summaries {
		var err error
		if text, err = f.MarshalJSON(); err != nil {
			return nil, err
		}
	}
	return func(*response) error { return add(text) }, nil
}
