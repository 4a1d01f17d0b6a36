package suite

import (
	"fmt"
	"strings"
	"testing"

	"oda"
)

// keyed makes the addition of a record with a key.
func (d *desk) keyed(block, key, record string) oda.Addition {
	d.tb.Helper()
	add := d.addition(block, record)
	add.Key = keyOf(key, record)
	return add
}

// recordings reads all records of a block in pages of that length, and gives
// them as "sequence key record".
func (d *desk) recordings(block string, limit int) []string {
	d.tb.Helper()
	var all []string
	after := int64(0)
	for {
		page, more, err := d.store.Recordings(d.ctx, block, after, limit)
		if err != nil {
			d.tb.Fatalf("read the records of %s: %v", block, err)
		}
		for _, r := range page {
			all = append(all, fmt.Sprintf("%d %s %s", r.Sequence, r.Key, r.Record))
			after = r.Sequence
		}
		if !more {
			return all
		}
		if len(page) == 0 {
			d.tb.Fatalf("an empty page says that there is more")
		}
	}
}

var batches = []scenario{
	{"several records are added in order, each with its own sequence and instant", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{}`)
		d.mustRecord("b", call("zero"))
		got, err := d.store.Record(d.ctx, []oda.Addition{d.keyed("b", "k1", call("one")), d.addition("b", call("two")), d.keyed("b", "k3", call("three"))})
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range got {
			same(t, "the sequence", r.Sequence, int64(i+2))
			if i > 0 && r.Metadata.LastModifiedOn <= got[i-1].Metadata.LastModifiedOn {
				t.Errorf("record %d has the instant %v, the one before it %v", i, r.Metadata.LastModifiedOn, got[i-1].Metadata.LastModifiedOn)
			}
		}
		same(t, "the records", d.records("b"), calls("zero", "one", "two", "three"))
		same(t, "the metadata", d.mustGet(eb("b")).Metadata, got[2].Metadata)
	}},
	{"records whose key is known are answered as the first time and the rest is stored", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{}`)
		one := d.mustRecordOnce("b", "k1", call("one"))
		two := d.mustRecordOnce("b", "k2", call("two"))
		got, err := d.as("bob").store.Record(d.ctx, []oda.Addition{
			d.keyed("b", "k2", call("two")), d.keyed("b", "k3", call("three")), d.keyed("b", "k1", call("one")), d.keyed("b", "k4", call("four")),
		})
		if err != nil {
			t.Fatal(err)
		}
		same(t, "the known ones", []oda.Recorded{got[0], got[2]}, []oda.Recorded{two, one})
		same(t, "the new ones", []int64{got[1].Sequence, got[3].Sequence}, []int64{3, 4})
		same(t, "the records", d.records("b"), calls("one", "two", "three", "four"))
	}},
	{"a known key with another record stores none of them", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{}`)
		d.mustRecordOnce("b", "k1", call("one"))
		before := d.text(eb("b"))
		_, err := d.store.Record(d.ctx, []oda.Addition{d.keyed("b", "k0", call("zero")), d.keyed("b", "k1", call("other")), d.keyed("b", "k2", call("two"))})
		same(t, "the code", oda.CodeOf(err), oda.KeyReused)
		same(t, "the block", d.text(eb("b")), before)
		same(t, "the next sequence", d.mustRecordOnce("b", "k0", call("zero")).Sequence, int64(2))
	}},
	{"records of an unknown block are not stored", func(t *testing.T, d *desk) {
		_, err := d.store.Record(d.ctx, []oda.Addition{d.keyed("nowhere", "k", call("one")), d.keyed("nowhere", "l", call("two"))})
		same(t, "the code", oda.CodeOf(err), oda.NotFound)
	}},
	{"a batch of thousands is stored whole", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{}`)
		var adds []oda.Addition
		var want []string
		for i := range 3000 {
			text := call(fmt.Sprint("f", i))
			adds = append(adds, d.keyed("b", fmt.Sprint("k", i), text))
			want = append(want, text)
		}
		for range 2 { // the second time nothing is stored
			if _, err := d.store.Record(d.ctx, adds); err != nil {
				t.Fatal(err)
			}
		}
		same(t, "the records", d.records("b"), want)
	}},
	{"records are read with sequence and key, from any place, in pages", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{}`)
		d.mustRecord("b", call("one"))
		second := d.mustRecordOnce("b", "k2", call("two"))
		d.mustRecordOnce("b", "k3", call("three"))
		want := []string{"1  " + call("one"), "2 k2 " + call("two"), "3 k3 " + call("three")}
		for _, limit := range []int{1, 2, 3, 10} {
			same(t, "the records", d.recordings("b", limit), want)
		}
		page, more, err := d.store.Recordings(d.ctx, "b", 1, 1)
		if err != nil || !more || len(page) != 1 {
			t.Fatalf("got %v, %v, %v", page, more, err)
		}
		same(t, "the instant", page[0].RecordedOn, second.Metadata.LastModifiedOn)
		page, more, err = d.store.Recordings(d.ctx, "b", 3, 10)
		if err != nil || more || len(page) != 0 {
			t.Errorf("behind the end: got %v, %v, %v", page, more, err)
		}
		_, _, err = d.store.Recordings(d.ctx, "nowhere", 0, 10)
		same(t, "the code", oda.CodeOf(err), oda.NotFound)
	}},
	{"records are read as the current version holds them", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), "{"+listing(calls("one", "two", "three")...)+"}")
		d.mustUpdate(eb("b"), listing(calls("three", "new", "one")...)) // drops two, adds new as the fourth
		d.mustRecord("b", call("five"))
		same(t, "the records", d.recordings("b", 2), []string{"1  " + call("one"), "3  " + call("three"), "4  " + call("new"), "5  " + call("five")})
		d.mustPut(eb("none"), `{}`)
		same(t, "the records of a block without any", len(d.recordings("none", 5)), 0)
	}},
	{"a page of large records ends early and goes on", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{}`)
		text := `{"request":"` + strings.Repeat("x", oda.RecordingsBytes/2) + `"}`
		for range 5 {
			d.mustRecord("b", text)
		}
		page, more, err := d.store.Recordings(d.ctx, "b", 0, 100)
		if err != nil || !more || len(page) >= 5 {
			t.Fatalf("got %d records, more %v, %v", len(page), more, err)
		}
		same(t, "the number of all", len(d.recordings("b", 100)), 5)
	}},
}
