package suite

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oda"
)

// desk is a caller of a store. It turns texts into writes, as the rules do with
// requests. Methods that begin with must end the test on an error.
type desk struct {
	tb     TB
	ctx    context.Context
	store  subject
	engine oda.Engine // of the store; nil where only the client may speak to it
	clock  *Clock
	user   string
	fresh  func() *desk // makes one at another empty store
}

func newDesk(t *testing.T, store subject, engine oda.Engine) *desk {
	return &desk{tb: t, ctx: t.Context(), store: store, engine: engine, clock: NewClock(), user: "anna"}
}

// as returns a desk for another user, with the same store and clock.
func (d *desk) as(user string) *desk {
	other := *d
	other.user = user
	return &other
}

// write returns the write of a document.
func (d *desk) write(ref oda.Ref, text string) writing {
	d.tb.Helper()
	text = worded(ref.Kind, text)
	return writing{Put(Document(d.tb, ref.Kind, text), ref.ID, d.user, d.clock.Now()), text}
}

// put stores a document.
func (d *desk) put(ref oda.Ref, text string) (*oda.Entity, error) {
	d.tb.Helper()
	return d.send(d.write(ref, text))
}

// send sends one write.
func (d *desk) send(put writing) (*oda.Entity, error) {
	entities, err := d.store.Put(d.ctx, []writing{put})
	if err != nil {
		return nil, err
	}
	return entities[0], nil
}

func (d *desk) mustPut(ref oda.Ref, text string) *oda.Entity {
	d.tb.Helper()
	e, err := d.put(ref, text)
	if err != nil {
		d.tb.Fatalf("store %s %s: %v", ref.Kind, ref.ID, err)
	}
	return e
}

// mustUpdate stores the next version of an entity: the members, with the stored
// metadata.
func (d *desk) mustUpdate(ref oda.Ref, members string) *oda.Entity {
	d.tb.Helper()
	return d.mustPut(ref, document(d.mustGet(ref).Metadata, members))
}

// keep returns the write of a document that keeps the stored records.
func (d *desk) keep(ref oda.Ref, text string) writing {
	d.tb.Helper()
	put := d.write(ref, text)
	put.KeepRecords, put.Compare = true, oda.KeptFields
	return put
}

func (d *desk) mustGet(ref oda.Ref) *oda.Entity {
	d.tb.Helper()
	e, err := d.store.Get(d.ctx, ref)
	if err != nil {
		d.tb.Fatalf("get %s %s: %v", ref.Kind, ref.ID, err)
	}
	return e
}

// text returns the document of an entity as a reader gets it.
func (d *desk) text(ref oda.Ref) string {
	d.tb.Helper()
	return Render(d.tb, d.mustGet(ref))
}

// keyed returns a record with a key, which may be empty.
func (d *desk) keyed(key, record string) oda.NewRecord {
	d.tb.Helper()
	return oda.NewRecord{Key: key, Text: Record(d.tb, record)}
}

// adding returns a request to add records.
func (d *desk) adding(block string, records ...oda.NewRecord) oda.Append {
	return oda.Append{Block: block, By: d.user, At: d.clock.Now(), Records: records}
}

func (d *desk) record(block, record string) (oda.Receipt, error) {
	d.tb.Helper()
	return d.one(d.adding(block, d.keyed("", record)))
}

func (d *desk) mustRecord(block, record string) oda.Receipt {
	d.tb.Helper()
	r, err := d.record(block, record)
	if err != nil {
		d.tb.Fatalf("record into %s: %v", block, err)
	}
	return r
}

// records returns the records of a stored block, each as sent, or nil if its
// document has no list.
func (d *desk) records(block string) []string {
	d.tb.Helper()
	records, err := recordsIn(d.text(eb(block)))
	if err != nil {
		d.tb.Fatalf("records of %s: %v", block, err)
	}
	return records
}

// recordsIn reads the records out of a document.
func recordsIn(text string) ([]string, error) {
	var document struct {
		Records *[]json.RawMessage `json:"request_responses"`
	}
	if err := json.Unmarshal([]byte(text), &document); err != nil || document.Records == nil {
		return nil, err
	}
	records := []string{}
	for _, r := range *document.Records {
		records = append(records, string(r))
	}
	return records, nil
}

// list returns what a query lists.
func (d *desk) list(q oda.Query) []string { return d.pages(q, 0, nil) }

// pages reads a listing page by page, and calls between after each.
func (d *desk) pages(q oda.Query, limit int, between func()) []string {
	d.tb.Helper()
	ids, err := d.store.List(d.ctx, q, limit, between)
	if err != nil {
		d.tb.Fatalf("list %+v: %v", q, err)
	}
	return ids
}

func (d *desk) counts() map[oda.Kind]int64 {
	d.tb.Helper()
	counts, err := d.store.Counts(d.ctx)
	if err != nil {
		d.tb.Fatalf("count: %v", err)
	}
	return counts
}

// eb returns the reference of an ExecutionBlock.
func eb(id string) oda.Ref { return oda.Ref{Kind: oda.ExecutionBlock, ID: id} }

// sbd returns the reference of an SBDefinition.
func sbd(id string) oda.Ref { return oda.Ref{Kind: oda.SBDefinition, ID: id} }

// document returns a document with this metadata and, if any, further members.
func document(m oda.Metadata, members string) string {
	if members != "" {
		members = "," + members
	}
	return `{"metadata":` + string(m.AppendJSON(nil)) + members + `}`
}

// listing returns the member that lists records.
func listing(records ...string) string {
	return `"request_responses":[` + strings.Join(records, ",") + `]`
}

// refused checks that err is an Error with this code, and returns it.
func refused(tb TB, err error, code oda.Code) *oda.Error {
	tb.Helper()
	problem, ok := errors.AsType[*oda.Error](err)
	if !ok || problem.Code != code {
		tb.Fatalf("got the error %v, want one with the code %s", err, code)
	}
	return problem
}

// pointers returns the pointers of an error's faults.
func pointers(e *oda.Error) []string {
	var places []string
	for _, f := range e.Faults {
		places = append(places, f.Pointer)
	}
	return places
}

// same checks that two values are equal.
func same(tb TB, what string, got, want any) {
	tb.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		tb.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// one adds one record.
func (d *desk) one(add oda.Append) (oda.Receipt, error) {
	receipts, err := d.store.Append(d.ctx, add)
	if err != nil {
		return oda.Receipt{}, err
	}
	return receipts[0], nil
}
