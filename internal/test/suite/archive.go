package suite

import (
	"context"
	"crypto/sha256"
	"fmt"

	"oda"
	"oda/archive"
	asking "oda/calls"
	"oda/client"
	"oda/naming"
	"oda/night"
	"oda/progress"
	"oda/provenance"
	"oda/search"
)

// subject is the archive as a scenario sees it: an engine, or a server that the Go
// client speaks to.
type subject interface {
	oda.Reader
	oda.Runner
	oda.Statuses // a key has no digest, and an entry does not say whether it became the current one
	Put(ctx context.Context, writes []writing) ([]*oda.Entity, error)
	Create(ctx context.Context, w writing, key string) (*oda.Entity, error)
	Append(ctx context.Context, add oda.Append) ([]oda.Receipt, error)
	// List reads pages of this length and calls between after each; without a
	// length there is one answer.
	List(ctx context.Context, q oda.Query, page int, between func()) ([]string, error)
	Counts(ctx context.Context) (map[oda.Kind]int64, error)
	Changes(ctx context.Context, f archive.Following) (oda.ChangePage, error)
	Provenance(ctx context.Context, ref oda.Ref) (*provenance.Graph, error)
	Night(ctx context.Context, which client.Night) (*night.Report, error)
	Progress(ctx context.Context, id string) (*progress.Report, error)
	// Calls reads all pages.
	Calls(ctx context.Context, q asking.Query) ([]oda.CallEntry, error)
	Tally(ctx context.Context, q asking.Query, by asking.By) (*asking.Tally, error)
	// Search reads all pages and calls between after each.
	Search(ctx context.Context, s search.Search, between func()) ([]oda.Found, error)
}

// writing is a document to be stored: as an engine gets it, and as a caller sends it.
type writing struct {
	oda.Put
	text string
}

// direct is an engine.
type direct struct {
	oda.Reader
	engine   oda.Engine
	nights   *night.Reporter
	reporter *progress.Reporter
	finder   *asking.Finder
}

// directTo returns an archive that asks an engine itself.
func directTo(engine oda.Engine) direct {
	nights := night.New(engine, naming.New(engine), search.New(engine))
	return direct{engine, engine, nights, progress.New(engine, nights), asking.New(engine)}
}

func (a direct) Put(ctx context.Context, writes []writing) ([]*oda.Entity, error) {
	puts := make([]oda.Put, len(writes))
	for i, w := range writes {
		puts[i] = w.Put
	}
	return a.engine.Put(ctx, puts)
}

func (a direct) Create(ctx context.Context, w writing, key string) (*oda.Entity, error) {
	if key == "" {
		return a.engine.Create(ctx, w.Put, nil)
	}
	return a.engine.Create(ctx, w.Put, keyOf(key, w.text))
}

func (a direct) Append(ctx context.Context, add oda.Append) ([]oda.Receipt, error) {
	return a.engine.Append(ctx, add)
}

func (a direct) List(ctx context.Context, q oda.Query, page int, between func()) ([]string, error) {
	ids := []string{}
	for q.Limit = page; ; between() {
		var last oda.Place
		n := 0
		err := a.engine.List(ctx, q, func(id string, at oda.Instant) error {
			n, last = n+1, oda.Place{At: at, ID: id}
			ids = append(ids, id)
			return nil
		})
		if page > 0 && n > page {
			return nil, fmt.Errorf("a page has %d identifiers, but the limit is %d", n, page)
		}
		if err != nil || page == 0 || n < page {
			return ids, err
		}
		q.Start = &last
	}
}

func (a direct) Counts(ctx context.Context) (map[oda.Kind]int64, error) { return a.engine.Counts(ctx) }

func (a direct) Changes(ctx context.Context, f archive.Following) (oda.ChangePage, error) {
	return archive.New(a.engine, nil).Changes(ctx, f)
}

func (a direct) Provenance(ctx context.Context, ref oda.Ref) (*provenance.Graph, error) {
	return provenance.New(a.engine).Graph(ctx, ref)
}

func (a direct) Progress(ctx context.Context, id string) (*progress.Report, error) {
	return a.reporter.Report(ctx, id)
}

func (a direct) Night(ctx context.Context, which client.Night) (*night.Report, error) {
	params := map[string][]string{"date": {which.Date}, "zone": {which.Zone}}
	if which.Telescope != "" {
		params["telescope"] = []string{which.Telescope}
	}
	q, err := a.nights.Zones().Parse(params)
	if err != nil {
		return nil, err
	}
	return a.nights.Report(ctx, q)
}

func (a direct) Calls(ctx context.Context, q asking.Query) (found []oda.CallEntry, err error) {
	for {
		page, err := a.finder.Page(ctx, q)
		if err == nil && len(page.Calls) > q.Limit {
			err = fmt.Errorf("a page has %d calls", len(page.Calls))
		}
		if err != nil {
			return nil, err
		}
		if found = append(found, page.Calls...); page.Next == nil {
			return found, nil
		}
		if q, err = asking.Parse(map[string][]string{"cursor": {*page.Next}}); err != nil {
			return nil, err
		}
	}
}

func (a direct) Tally(ctx context.Context, q asking.Query, by asking.By) (*asking.Tally, error) {
	return a.finder.Tally(ctx, q, by)
}

// keyOf returns an idempotency key for a request with this body.
func keyOf(value, body string) *oda.Key {
	return &oda.Key{Value: value, Digest: sha256.Sum256([]byte(body))}
}

func (a direct) Search(ctx context.Context, s search.Search, between func()) ([]oda.Found, error) {
	searcher, all := search.New(a.engine), []oda.Found{}
	for {
		page, err := searcher.Search(ctx, s)
		if err == nil && len(page.Items) > s.Limit {
			err = fmt.Errorf("a page has %d items", len(page.Items))
		}
		if all = append(all, page.Items...); err != nil || page.Next == "" {
			return all, err
		}
		if s, err = search.Parse(s.Kind, map[string][]string{"cursor": {page.Next}}); err != nil {
			return nil, err
		}
		between()
	}
}
