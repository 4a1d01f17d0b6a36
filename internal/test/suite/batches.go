package suite

import (
	"fmt"
	"strings"
	"testing"

	"oda"
	"oda/internal/engine"
	"oda/internal/test/must"
)

// readPages reads all records of a block in pages of this length, and returns
// them as "sequence key record".
func (d *desk) readPages(block string, limit int) []string {
	d.tb.Helper()
	var all []string
	after := int64(0)
	for {
		page, err := d.store.Records(d.ctx, block, after, limit)
		if err != nil {
			d.tb.Fatalf("read the records of %s: %v", block, err)
		}
		for _, r := range page.Records {
			all = append(all, fmt.Sprintf("%d %s %s", r.Sequence, r.Key, r.Text))
			after = r.Sequence
		}
		if !page.More {
			return all
		}
		if len(page.Records) == 0 {
			d.tb.Fatalf("an empty page says that there is more")
		}
	}
}

var batches = []scenario{
	{"several records are added in order, each with its own sequence and instant", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{}`)
		d.mustRecord("b", call("zero"))
		got := must.Get(d.store.Append(d.ctx, d.adding("b", d.keyed("k1", call("one")), d.keyed("", call("two")), d.keyed("k3", call("three")))))(t)
		for i, r := range got {
			same(t, "the sequence", r.Sequence, int64(i+2))
		}
		same(t, "the records", d.records("b"), calls("zero", "one", "two", "three"))
		page := must.Get(d.store.Records(d.ctx, "b", 0, 10))(t)
		last := oda.Instant(0)
		for _, r := range page.Records {
			if r.RecordedOn <= last {
				t.Errorf("record %d has the instant %v, the one before it %v", r.Sequence, r.RecordedOn, last)
			}
			last = r.RecordedOn
		}
		same(t, "when the block was modified", d.mustGet(eb("b")).Metadata.LastModifiedOn, last)
	}},
	{"records with a known key are answered as the first time, and the others are stored", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{}`)
		one := d.mustRecordOnce("b", "k1", call("one"))
		two := d.mustRecordOnce("b", "k2", call("two"))
		got, err := d.store.Append(d.ctx, d.as("bob").adding("b",
			d.keyed("k2", call("two")), d.keyed("k3", call("three")), d.keyed("k1", call("one")), d.keyed("k4", call("four")),
		))
		if err != nil {
			t.Fatal(err)
		}
		same(t, "the known records", []int64{got[0].Sequence, got[2].Sequence}, []int64{two.Sequence, one.Sequence})
		same(t, "the new records", []int64{got[1].Sequence, got[3].Sequence}, []int64{3, 4})
		same(t, "the records", d.records("b"), calls("one", "two", "three", "four"))
	}},
	{"a known key with another record stores nothing", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{}`)
		d.mustRecordOnce("b", "k1", call("one"))
		before := d.text(eb("b"))
		_, err := d.store.Append(d.ctx, d.adding("b", d.keyed("k0", call("zero")), d.keyed("k1", call("other")), d.keyed("k2", call("two"))))
		same(t, "the code", oda.CodeOf(err), oda.KeyReused)
		same(t, "the block", d.text(eb("b")), before)
		same(t, "the next sequence", d.mustRecordOnce("b", "k0", call("zero")).Sequence, int64(2))
	}},
	{"the first known key with another record is named", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{}`)
		for _, key := range []string{"k3", "k2", "k1"} {
			d.mustRecordOnce("b", key, call(key))
		}
		add := d.adding("b", d.keyed("new", call("new")), d.keyed("k2", call("k2")), d.keyed("k1", call("other")), d.keyed("k3", call("other")))
		add.Batch = true
		_, err := d.store.Append(d.ctx, add)
		same(t, "the places", pointers(refused(t, err, oda.KeyReused)), []string{"/records/2/key"})
		add.Records = add.Records[2:3]
		_, err = d.store.Append(d.ctx, add)
		same(t, "the places of one", pointers(refused(t, err, oda.KeyReused)), []string{"/records/0/key"})
		_, err = d.recordOnce("b", "k1", call("other"))
		same(t, "the places of a record by itself", pointers(refused(t, err, oda.KeyReused)), []string(nil))
	}},
	{"records of an unknown block are not stored", func(t *testing.T, d *desk) {
		_, err := d.store.Append(d.ctx, d.adding("nowhere", d.keyed("k", call("one")), d.keyed("l", call("two"))))
		same(t, "the code", oda.CodeOf(err), oda.NotFound)
	}},
	{"a batch of thousands is stored completely", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{}`)
		var records []oda.NewRecord
		var want []string
		for i := range 3000 {
			text := call(fmt.Sprint("f", i))
			records = append(records, d.keyed(fmt.Sprint("k", i), text))
			want = append(want, text)
		}
		for range 2 { // the second time nothing is stored
			must.Get(d.store.Append(d.ctx, d.adding("b", records...)))(t)
		}
		same(t, "the records", d.records("b"), want)
	}},
	{"records are read with sequence and key, from any sequence, in pages", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{}`)
		d.mustRecordOnce("b", "k1", call("one"))
		const odd = `{ "request" : "two" , "n" : 0.10e1, "s": "\u00e4</>" }`
		second := d.mustRecordOnce("b", "k2", odd)
		d.mustRecordOnce("b", "k3", call("three"))
		want := []string{"1 k1 " + call("one"), "2 k2 " + odd, "3 k3 " + call("three")}
		for _, limit := range []int{1, 2, 3, 10} {
			same(t, "the records", d.readPages("b", limit), want)
		}
		page, err := d.store.Records(d.ctx, "b", 1, 1)
		if err != nil || !page.More || len(page.Records) != 1 {
			t.Fatalf("got %v, %v", page, err)
		}
		same(t, "the instant", page.Records[0].RecordedOn, second.Metadata.LastModifiedOn)
		page, err = d.store.Records(d.ctx, "b", 3, 10)
		if err != nil || page.More || len(page.Records) != 0 {
			t.Errorf("after the end: got %v, %v", page, err)
		}
		_, err = d.store.Records(d.ctx, "nowhere", 0, 10)
		same(t, "the code", oda.CodeOf(err), oda.NotFound)
	}},
	{"records are read as they are in the current version", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), "{"+listing(calls("one", "two", "three")...)+"}")
		d.mustUpdate(eb("b"), listing(calls("three", "new", "one")...)) // drops two, adds new as the fourth
		d.mustRecordOnce("b", "k5", call("five"))
		same(t, "the records", d.readPages("b", 2), []string{"1  " + call("one"), "3  " + call("three"), "4  " + call("new"), "5 k5 " + call("five")})
		d.mustPut(eb("none"), `{}`)
		same(t, "the records of a block without any", len(d.readPages("none", 5)), 0)
	}},
}

// batchesInside need an engine itself.
var batchesInside = []scenario{
	{"a page of large records ends early, and the next continues", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{}`)
		text := `{"request":"` + strings.Repeat("x", engine.PageBytes/2) + `"}`
		for range 5 {
			d.mustRecord("b", text)
		}
		page, err := d.store.Records(d.ctx, "b", 0, 100)
		if err != nil || !page.More || len(page.Records) >= 5 {
			t.Fatalf("got %d records, more %v, %v", len(page.Records), page.More, err)
		}
		same(t, "the number of all", len(d.readPages("b", 100)), 5)
	}},
}
