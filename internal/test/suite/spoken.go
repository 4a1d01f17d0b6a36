package suite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"oda"
	"oda/archive"
	asking "oda/calls"
	"oda/client"
	"oda/internal/auth"
	"oda/internal/httpapi"
	"oda/internal/test/judge"
	"oda/internal/test/must"
	"oda/naming"
	"oda/night"
	"oda/progress"
	"oda/provenance"
	"oda/search"
)

// spoken is an archive that the Go client speaks to, over HTTP. What goes over the
// wire is checked against the API description.
type spoken struct {
	tb   testing.TB
	url  string
	http *http.Client
}

// speak serves an engine until the test ends.
func speak(tb testing.TB, engine oda.Engine) spoken {
	tb.Helper()
	searcher := search.New(engine)
	nights := night.New(engine, naming.New(engine), searcher)
	api, err := httpapi.New(httpapi.Config{
		Archive: archive.New(guided{engine}, named{}), Gate: auth.NewGate(), Log: slog.New(slog.DiscardHandler),
		Searcher: searcher, Provenance: provenance.New(engine), Nights: nights, Calls: asking.New(engine),
		Progress: progress.New(engine, nights),
		Bounds:   httpapi.Bounds{Body: 64 << 20, InFlight: 256 << 20, Depth: maxDepth},
	})
	if err != nil {
		tb.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		api.ServeHTTP(w, r.WithContext(withAside(r.Context(), r.Header.Get(asideHeader))))
	}))
	tb.Cleanup(server.Close)
	checked := must.Get(judge.New(server.URL+"/api/v1", maxDepth, carrier{server.Client().Transport}, func(complaint string) { tb.Error(complaint) }))(tb)
	return spoken{tb, server.URL, &http.Client{Transport: checked}}
}

// An aside is what a scenario decides about a request, and a client cannot say: when
// it is made, and which identifier it is given. It goes from the context of the
// request into a header, and from there into the context on the server.
type aside struct{}

const asideHeader = "X-Suite-Aside"

func withAside(ctx context.Context, text string) context.Context {
	return context.WithValue(ctx, aside{}, text)
}

func about(ctx context.Context, put oda.Put) context.Context {
	return withAside(ctx, fmt.Sprint(int64(put.At), " ", put.ID))
}

// asideOf returns the aside of a request.
func asideOf(ctx context.Context) (at oda.Instant, id string) {
	text, _ := ctx.Value(aside{}).(string)
	number, id, _ := strings.Cut(text, " ")
	n, _ := strconv.ParseInt(number, 10, 64)
	return oda.Instant(n), id
}

// carrier puts the aside into the header.
type carrier struct{ next http.RoundTripper }

func (c carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	if text, ok := r.Context().Value(aside{}).(string); ok {
		r = r.Clone(r.Context())
		r.Header.Set(asideHeader, text)
	}
	return c.next.RoundTrip(r)
}

// guided is an engine that writes when the aside says.
type guided struct{ oda.Engine }

func (g guided) Put(ctx context.Context, puts []oda.Put) ([]*oda.Entity, error) {
	for i := range puts {
		puts[i].At, _ = asideOf(ctx)
	}
	return g.Engine.Put(ctx, puts)
}

func (g guided) Create(ctx context.Context, put oda.Put, key *oda.Key) (*oda.Entity, error) {
	put.At, _ = asideOf(ctx)
	return g.Engine.Create(ctx, put, key)
}

func (g guided) Append(ctx context.Context, add oda.Append) ([]oda.Receipt, error) {
	add.At, _ = asideOf(ctx)
	return g.Engine.Append(ctx, add)
}

func (g guided) Say(ctx context.Context, say oda.NewStatus) (*oda.Status, error) {
	say.Now, _ = asideOf(ctx)
	return g.Engine.Say(ctx, say)
}

// named mints the identifier that the aside says.
type named struct{}

func (named) Mint(ctx context.Context, _ oda.Kind) (string, error) {
	_, id := asideOf(ctx)
	return id, nil
}

// as returns a client for a user; empty for none.
func (s spoken) as(user string) *client.Client {
	c, err := client.New(s.url, client.WithUser(user), client.WithHTTPClient(s.http), client.WithRetries(0))
	if err != nil {
		s.tb.Fatalf("a client for %q: %v", user, err)
	}
	return c
}

func answered(d *client.Document, err error) (*oda.Entity, error) {
	if err != nil {
		return nil, err
	}
	return &oda.Entity{Ref: oda.Ref{Kind: d.Kind, ID: d.ID}, Metadata: d.Metadata, Body: oda.Body{Text: d.Body}}, nil
}

func (s spoken) Get(ctx context.Context, ref oda.Ref) (*oda.Entity, error) {
	return answered(s.as("").Get(ctx, ref.Kind, ref.ID))
}

func (s spoken) Version(ctx context.Context, ref oda.Ref, version int64) (*oda.Entity, error) {
	return answered(s.as("").Version(ctx, ref.Kind, ref.ID, version))
}

func (s spoken) AsOf(ctx context.Context, ref oda.Ref, at oda.Instant) (*oda.Entity, error) {
	return answered(s.as("").AsOf(ctx, ref.Kind, ref.ID, at.Time()))
}

func (s spoken) Versions(ctx context.Context, ref oda.Ref, before int64, limit int) (page []oda.VersionInfo, err error) {
	for v, err := range s.as("").Versions(ctx, ref.Kind, ref.ID) {
		if err != nil || len(page) == limit {
			return page, err
		}
		if v.Metadata.Version < before {
			page = append(page, v)
		}
	}
	return page, nil
}

func (s spoken) Records(ctx context.Context, block string, after int64, limit int) (page oda.RecordPage, err error) {
	for r, err := range s.as("").Records(ctx, block, after) {
		if page.More = err == nil && len(page.Records) == limit; err != nil || page.More {
			return page, err
		}
		page.Records = append(page.Records, r)
	}
	return page, nil
}

func (s spoken) Put(ctx context.Context, writes []writing) ([]*oda.Entity, error) {
	if len(writes) > 1 {
		return s.several(ctx, writes)
	}
	w := writes[0]
	var options []client.StoreOption
	if w.KeepRecords {
		options = append(options, client.KeepRecords())
	}
	if w.Condition.NoneMatch != nil {
		options = append(options, client.CreateOnly())
	}
	if match := w.Condition.Match; match != nil && match.Any {
		options = append(options, client.IfMatch("*"))
	} else if match != nil {
		options = append(options, client.IfMatch(`"`+strings.Join(match.List, `", "`)+`"`))
	}
	e, err := answered(s.as(w.Modifier).Store(about(ctx, w.Put), w.Kind, w.ID, []byte(w.text), options...))
	return []*oda.Entity{e}, err
}

// several stores several documents. In the request they are in lists by their
// kinds; the answers and the faults are in the order of the writes.
func (s spoken) several(ctx context.Context, writes []writing) ([]*oda.Entity, error) {
	lists := map[string][]string{}
	places := make([]string, len(writes))
	for i, w := range writes {
		text, name := w.text, w.Kind.Collection()
		if Document(s.tb, w.Kind, text).ID == "" { // the path cannot say it here
			member := fmt.Sprintf(`{"%s":"%s"`, w.Kind.IDField(), w.ID)
			if rest := text[1:]; !strings.HasPrefix(strings.TrimSpace(rest), "}") {
				member += ","
			}
			text = member + text[1:]
		}
		places[i] = fmt.Sprintf("/%s/%d", name, len(lists[name]))
		lists[name] = append(lists[name], text)
	}
	var members []string
	for name, texts := range lists {
		members = append(members, `"`+name+`":[`+strings.Join(texts, ",")+`]`)
	}
	answer, err := s.as(writes[0].Modifier).StoreSeveral(about(ctx, writes[0].Put), []byte("{"+strings.Join(members, ",")+"}"))
	if problem, ok := errors.AsType[*oda.Error](err); ok {
		var faults []oda.Fault
		for i, place := range places {
			for _, f := range problem.Faults {
				if rest, ok := strings.CutPrefix(f.Pointer, place+"/"); ok {
					faults = append(faults, oda.Fault{Pointer: writes[i].Pointer + "/" + rest, Detail: f.Detail})
				}
			}
		}
		problem.Faults = faults
	}
	if err != nil {
		return nil, err
	}
	var stored map[string][]json.RawMessage
	if err := json.Unmarshal(answer, &stored); err != nil {
		return nil, err
	}
	entities := make([]*oda.Entity, len(writes))
	for i, w := range writes {
		list := stored[w.Kind.Collection()]
		text := []byte(list[0])
		stored[w.Kind.Collection()] = list[1:]
		m := Document(s.tb, w.Kind, string(text)).Metadata
		entities[i] = &oda.Entity{Ref: w.Ref, Body: oda.Body{Text: text}, Metadata: oda.Metadata{
			Version: m.Version, CreatedBy: m.CreatedBy, CreatedOn: oda.InstantOf(m.CreatedOn),
			LastModifiedBy: m.LastModifiedBy, LastModifiedOn: oda.InstantOf(m.LastModifiedOn),
		}}
	}
	return entities, nil
}

func (s spoken) Create(ctx context.Context, w writing, key string) (*oda.Entity, error) {
	e, err := answered(s.as(w.Modifier).Create(about(ctx, w.Put), w.Kind, []byte(w.text), key))
	if oda.CodeOf(err) == oda.IdentifierService { // the same identifier, whenever it asks for one
		return nil, oda.ErrTaken
	}
	return e, err
}

func (s spoken) Append(ctx context.Context, add oda.Append) ([]oda.Receipt, error) {
	ctx = about(ctx, oda.Put{At: add.At})
	if len(add.Records) == 1 && !add.Batch {
		receipt, err := s.as(add.By).Record(ctx, add.Block, add.Records[0].Text, add.Records[0].Key)
		return []oda.Receipt{receipt}, err
	}
	sequences, err := s.as(add.By).RecordBatch(ctx, add.Block, add.Records)
	var receipts []oda.Receipt
	for _, n := range sequences {
		receipts = append(receipts, oda.Receipt{Sequence: n})
	}
	return receipts, err
}

func (s spoken) Say(ctx context.Context, say oda.NewStatus) (*oda.Status, error) {
	sent := client.NewStatus{Status: say.Text, Reason: say.Reason, Version: say.Version}
	if say.Class != nil {
		sent.Class = *say.Class
	}
	if say.At != nil {
		sent.At = say.At.Time()
	}
	if say.Guarded {
		sent.Previous = &say.Previous
	}
	if say.Key != nil {
		sent.Key = say.Key.Value
	}
	return only(s.as(say.By).Say(about(ctx, oda.Put{At: say.Now}), say.Ref, sent))
}

func (s spoken) Status(ctx context.Context, ref oda.Ref) (*oda.Status, error) {
	return only(s.as("").Status(ctx, ref))
}

func only(said oda.Status, err error) (*oda.Status, error) {
	if err != nil {
		return nil, err
	}
	return &said, nil
}

func (s spoken) StatusesBefore(ctx context.Context, ref oda.Ref, before int64, limit int) (page []oda.Status, err error) {
	for said, err := range s.as("").Statuses(ctx, ref) {
		if err != nil || len(page) == limit {
			return page, err
		}
		if said.Sequence < before {
			page = append(page, said)
		}
	}
	return page, nil
}

func (s spoken) List(ctx context.Context, q oda.Query, page int, between func()) ([]string, error) {
	q.Limit = page
	if q.User == "" && q.After == nil {
		q.After = new(oda.Instant) // a listing needs one filter
	}
	ids := []string{}
	for id, err := range s.as("").List(ctx, q) {
		if err != nil {
			return nil, err
		}
		if ids = append(ids, id); page > 0 && len(ids)%page == 0 {
			between()
		}
	}
	return ids, nil
}

func (s spoken) Counts(ctx context.Context) (map[oda.Kind]int64, error) {
	counts := map[oda.Kind]int64{}
	for _, kind := range oda.Kinds {
		ids, err := s.List(ctx, everything(kind, oda.ByCreation), 0, nil)
		if err != nil {
			return nil, err
		}
		counts[kind] = int64(len(ids))
	}
	return counts, nil
}

func (s spoken) Changes(ctx context.Context, f archive.Following) (oda.ChangePage, error) {
	q := client.ChangesQuery{After: f.After, Filter: f.Filter, Limit: f.Limit}
	if f.Now {
		q.After = client.Now
	}
	page, err := s.as("").Changes(ctx, q)
	page.AtEnd = page.Next == f.After
	return page, err
}

func (s spoken) Provenance(ctx context.Context, ref oda.Ref) (*provenance.Graph, error) {
	return s.as("").Provenance(ctx, ref.Kind, ref.ID)
}

func (s spoken) Progress(ctx context.Context, id string) (*progress.Report, error) {
	return s.as("").Progress(ctx, id)
}

func (s spoken) Night(ctx context.Context, which client.Night) (*night.Report, error) {
	return s.as("").Night(ctx, which)
}

func (s spoken) Calls(ctx context.Context, q asking.Query) (found []oda.CallEntry, err error) {
	for e, err := range s.as("").Calls(ctx, q) {
		if err != nil {
			return nil, err
		}
		found = append(found, e)
	}
	return found, nil
}

func (s spoken) Tally(ctx context.Context, q asking.Query, by asking.By) (*asking.Tally, error) {
	return s.as("").TallyCalls(ctx, q, by)
}

func (s spoken) Search(ctx context.Context, q search.Search, between func()) ([]oda.Found, error) {
	all := []oda.Found{}
	for page, err := range s.as("").SearchPages(ctx, q) {
		if err == nil && len(page) > q.Limit {
			err = fmt.Errorf("a page has %d items", len(page))
		}
		if err != nil {
			return nil, err
		}
		for _, f := range page {
			all = append(all, *f)
		}
		between()
	}
	return all, nil
}
