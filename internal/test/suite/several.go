package suite

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"oda"
	"oda/internal/test/must"
)

var several = []scenario{
	{"several entities are stored together and answered in order", func(t *testing.T, d *desk) {
		d.mustPut(sbd("b"), `{"n":0}`)
		refs := []oda.Ref{
			sbd("z"), sbd("b"), {Kind: oda.Project, ID: "b"}, eb("b"), {Kind: oda.SBInstance, ID: "a"}, sbd("a"),
		}
		var puts []writing
		for i, ref := range refs {
			text := fmt.Sprintf(`{"n":%d}`, i+1)
			if i == 1 {
				text = document(d.mustGet(ref).Metadata, `"n":2`)
			}
			puts = append(puts, d.write(ref, text))
		}
		entities := must.Get(d.store.Put(d.ctx, puts))(t)
		for i, ref := range refs {
			same(t, "the entity in the answer", entities[i].Ref, ref)
			same(t, "the document", d.text(ref), Render(t, entities[i]))
			want := int64(1)
			if i == 1 {
				want = 2
			}
			same(t, "the version", entities[i].Metadata.Version, want)
		}
		var changed []oda.Ref
		for _, c := range d.allChanges()[1:] {
			changed = append(changed, c.Ref)
		}
		same(t, "the changes, in their order", changed, slices.SortedFunc(slices.Values(refs), oda.Ref.Compare))
	}},
	{"if one does not match, none is stored, and all that do not match are named", func(t *testing.T, d *desk) {
		texts := map[string]string{}
		for _, id := range []string{"a", "b", "c"} {
			d.mustPut(sbd(id), `{}`)
			d.mustUpdate(sbd(id), "")
			texts[id] = d.text(sbd(id))
		}
		d.mustPut(eb("block"), `{`+listing(`{"request":"one"}`)+`}`)
		texts["block"] = d.text(eb("block"))
		stale := d.mustGet(sbd("c")).Metadata
		stale.Version = 1

		writes := []struct {
			ref     oda.Ref
			pointer string
			text    string
		}{
			{sbd("new"), "/sbds/0", `{}`},
			{sbd("a"), "/sbds/1", `{}`},
			{sbd("b"), "/sbds/2", document(d.mustGet(sbd("b")).Metadata, "")},
			{eb("block"), "/ebs/0", document(d.mustGet(eb("block")).Metadata, listing(`{"request":"other"}`))},
			{sbd("c"), "/sbds/3", document(stale, "")},
		}
		var puts []writing
		for _, w := range writes {
			put := d.write(w.ref, w.text)
			put.Pointer = w.pointer
			puts = append(puts, put)
		}
		_, err := d.store.Put(d.ctx, puts)
		same(t, "the list of faults", pointers(refused(t, err, oda.MetadataMismatch)), []string{
			"/sbds/1/metadata/version", "/sbds/1/metadata/created_by", "/sbds/1/metadata/created_on",
			"/sbds/1/metadata/last_modified_by", "/sbds/1/metadata/last_modified_on", "/sbds/3/metadata/version",
		})
		_, err = d.store.Get(d.ctx, sbd("new"))
		refused(t, err, oda.NotFound)
		for id, text := range texts {
			ref := sbd(id)
			if id == "block" {
				ref = eb(id)
			}
			same(t, id, d.text(ref), text)
		}
		same(t, "the next sequence", d.mustRecord("block", `{"request":"two"}`).Sequence, int64(2))
	}},
	{"several blocks each keep their own records", func(t *testing.T, d *desk) {
		var puts []writing
		for i := range 3 {
			id := fmt.Sprintf("b%d", i)
			d.mustPut(eb(id), fmt.Sprintf(`{%s}`, listing(fmt.Sprintf(`{"request":"old %d"}`, i))))
			puts = append(puts, d.write(eb(id), document(d.mustGet(eb(id)).Metadata,
				listing(fmt.Sprintf(`{"request":"new %d"}`, i), fmt.Sprintf(`{"request":"old %d"}`, i)))))
		}
		must.Get(d.store.Put(d.ctx, puts))(t)
		for i := range 3 {
			id := fmt.Sprintf("b%d", i)
			same(t, "the records", d.records(id), []string{fmt.Sprintf(`{"request":"new %d"}`, i), fmt.Sprintf(`{"request":"old %d"}`, i)})
			same(t, "the next sequence", d.mustRecord(id, `{"request":"x"}`).Sequence, int64(3))
		}
	}},
	{"a thousand entities are stored at once", func(t *testing.T, d *desk) {
		puts := make([]writing, 1000)
		for i := range puts {
			puts[i] = d.write(oda.Ref{Kind: oda.Kinds[i%5], ID: fmt.Sprintf("e%d", i/5)}, fmt.Sprintf(`{"n":%d}`, i))
		}
		entities := must.Get(d.store.Put(d.ctx, puts))(t)
		for i := range puts {
			same(t, "the entity", entities[i].Ref, puts[i].Ref)
		}
		for kind, n := range d.counts() {
			same(t, kind.String(), n, int64(200))
		}
	}},
}

// severalInside need an engine itself: their records do not come out of a text.
var severalInside = []scenario{
	{"the number of new records in one request is bounded", func(t *testing.T, d *desk) {
		records := make([][]byte, oda.MaxNewRecords+1)
		for i := range records {
			records[i] = []byte(`{"request":"r"}`)
		}
		listed := func(id string, records [][]byte) writing {
			put := d.write(eb(id), `{"request_responses":[]}`)
			put.Records = records
			return put
		}
		for name, send := range map[string]func() error{
			"in one list":    func() error { _, err := d.send(listed("a", records)); return err },
			"in a new block": func() error { _, err := d.store.Create(d.ctx, listed("a", records), ""); return err },
			"in lists of two": func() error {
				_, err := d.store.Put(d.ctx, []writing{listed("a", records[:10]), listed("b", records[10:])})
				return err
			},
		} {
			if err := send(); oda.CodeOf(err) != oda.InvalidRequest {
				t.Errorf("%s: got %v, want the code %q", name, err, oda.InvalidRequest)
			}
		}
		if _, err := d.store.Get(d.ctx, eb("a")); oda.CodeOf(err) != oda.NotFound {
			t.Errorf("the request was refused, but a reader gets %v", err)
		}
	}},
	{"records that are far too many take no memory", func(t *testing.T, d *desk) {
		d.mustPut(eb("old"), `{}`)
		d.mustRecord("old", call("one"))
		records := make([][]byte, 10*oda.MaxNewRecords)
		for i := range records {
			records[i] = []byte(`{"request":"r"}`)
		}
		next := d.write(eb("old"), document(d.mustGet(eb("old")).Metadata, `"request_responses":[]`))
		first := d.write(eb("new"), `{"request_responses":[]}`)
		next.Records, first.Records = records[:len(records)/2], records[len(records)/2:]
		took := uint64(math.MaxUint64)
		for range 5 { // other tests take memory too, but not each time
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := d.store.Put(d.ctx, []writing{next, first})
			runtime.ReadMemStats(&after)
			refused(t, err, oda.InvalidRequest)
			took = min(took, after.TotalAlloc-before.TotalAlloc)
		}
		if took > uint64(32*len(records)) {
			t.Errorf("%d records took %d bytes of memory", len(records), took)
		}
	}},
}
