package suite

import (
	"strings"
	"testing"

	"oda"
)

// recordOnce records with a key, which may be empty.
func (d *desk) recordOnce(block, key, record string) (oda.Receipt, error) {
	d.tb.Helper()
	return d.one(d.adding(block, d.keyed(key, record)))
}

func (d *desk) mustRecordOnce(block, key, record string) oda.Receipt {
	d.tb.Helper()
	r, err := d.recordOnce(block, key, record)
	if err != nil {
		d.tb.Fatalf("record into %s: %v", block, err)
	}
	return r
}

var recordKeys = []scenario{
	{"the same key with the same record is answered as the first time and stores nothing", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{}`)
		d.mustRecord("b", call("zero"))
		first := d.mustRecordOnce("b", "key", call("one"))
		same(t, "the sequence", first.Sequence, int64(2))
		for _, change := range []func(){
			func() {},
			func() { d.mustRecord("b", call("two")) },
			func() { d.as("bob").mustUpdate(eb("b"), listing(calls("zero", "one", "three")...)) },
			func() { d.mustUpdate(eb("b"), "") }, // drops the record
		} {
			change()
			before := d.text(eb("b"))
			same(t, "the answer", d.as("carol").mustRecordOnce("b", "key", call("one")), first)
			same(t, "the block", d.text(eb("b")), before)
		}
	}},
	{"a key with another record is refused", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{}`)
		d.mustRecordOnce("b", "key", call("one"))
		before := d.text(eb("b"))
		_, err := d.recordOnce("b", "key", `{"request": "one"}`)
		refused(t, err, oda.KeyReused)
		same(t, "the block", d.text(eb("b")), before)
		same(t, "the next sequence", d.mustRecord("b", call("two")).Sequence, int64(2))
	}},
	{"a key belongs to one block", func(t *testing.T, d *desk) {
		for _, id := range []string{"a", "b"} {
			d.mustPut(eb(id), `{}`)
			same(t, "the sequence", d.mustRecordOnce(id, "key", call("in "+id)).Sequence, int64(1))
		}
		_, err := d.recordOnce("unknown", "key", call("one"))
		refused(t, err, oda.NotFound)
	}},
	{"keys of records and keys of creations are independent", func(t *testing.T, d *desk) {
		d.mustCreate(eb("b"), "key", `{}`)
		same(t, "the sequence", d.mustRecordOnce("b", "key", call("one")).Sequence, int64(1))
		same(t, "the entity", d.mustCreate(eb("c"), "key", `{}`).Ref, eb("b"))
	}},
	{"the same record with another key, or with none, is another record", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{}`)
		for i, key := range []string{"k", "K", "", "", "k~", "k%", `'"\`, strings.Repeat("k", 255)} {
			same(t, "the sequence", d.mustRecordOnce("b", key, call("one")).Sequence, int64(i+1))
		}
		same(t, "the number of records", len(d.records("b")), 8)
	}},
}
