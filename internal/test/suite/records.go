package suite

import (
	"fmt"
	"strings"
	"testing"

	"oda"
	"oda/internal/test/must"
)

// call returns a record.
func call(name string) string { return `{"request":"` + name + `"}` }

// calls returns records.
func calls(names ...string) []string {
	texts := []string{}
	for _, name := range names {
		texts = append(texts, call(name))
	}
	return texts
}

var records = []scenario{
	{"records are numbered from 1 and listed in the order of recording", func(t *testing.T, d *desk) {
		first := d.mustPut(eb("b"), `{"a":1,"request_responses":[]}`).Metadata
		var want []string
		for i := range 20 {
			text := fmt.Sprintf("{ \"request\":\"r\\u0061%d\",\"n\":%d.50, \"response\": {\"a\":null} }", i, i)
			r := d.as("bob").mustRecord("b", text)
			same(t, "the sequence", r.Sequence, int64(i+1))
			same(t, "the version", r.Metadata.Version, int64(1))
			same(t, "who recorded", r.Metadata.LastModifiedBy, "bob")
			same(t, "who created", r.Metadata.CreatedBy, "anna")
			same(t, "when it was created", r.Metadata.CreatedOn, first.CreatedOn)
			same(t, "the metadata of the block", d.mustGet(eb("b")).Metadata, r.Metadata)
			want = append(want, text)
			same(t, "the document", d.text(eb("b")), fill(
				`{"eb_id":"b","a":1,"request_responses":[`+strings.Join(want, ",")+`],"metadata":{<M>}}`, "", r.Metadata))
		}
	}},
	{"a document without a list has none until the first record", func(t *testing.T, d *desk) {
		e := d.mustPut(eb("b"), `{"a":1 }`)
		same(t, "the document", d.text(eb("b")), fill(`{"eb_id":"b","a":1,"metadata":{<M>} }`, "", e.Metadata))
		e = d.mustUpdate(eb("b"), `"a":2`)
		same(t, "the document", d.text(eb("b")), `{"eb_id":"b",`+document(e.Metadata, `"a":2`)[1:])
		m := d.mustRecord("b", call("one")).Metadata
		same(t, "the document", d.text(eb("b")), `{"eb_id":"b",`+document(m, `"a":2,`+listing(call("one")))[1:])
	}},
	{"an unknown block could not be found", func(t *testing.T, d *desk) {
		d.mustPut(sbd("b"), `{}`)
		_, err := d.record("b", call("one"))
		if problem := refused(t, err, oda.NotFound); !strings.Contains(problem.Detail, "could not be found") {
			t.Fatalf("got the detail %q", problem.Detail)
		}
	}},
	{"each block has its own numbers", func(t *testing.T, d *desk) {
		d.mustPut(eb("a"), `{}`)
		d.mustPut(eb("b"), `{`+listing(calls("x", "y")...)+`}`)
		same(t, "the sequence in a", d.mustRecord("a", call("one")).Sequence, int64(1))
		same(t, "the sequence in b", d.mustRecord("b", call("one")).Sequence, int64(3))
		same(t, "the sequence in a", d.mustRecord("a", call("two")).Sequence, int64(2))
	}},
	{"a PUT of a document read before a record is refused", func(t *testing.T, d *desk) {
		read := d.mustPut(eb("b"), `{`+listing(call("one"))+`}`)
		d.mustRecord("b", call("two"))
		_, err := d.put(eb("b"), Render(t, read))
		same(t, "the list of faults", pointers(refused(t, err, oda.MetadataMismatch)), []string{"/metadata/last_modified_on"})
		d.as("bob").mustRecord("b", call("three"))
		_, err = d.put(eb("b"), Render(t, read))
		same(t, "the list of faults", pointers(refused(t, err, oda.MetadataMismatch)),
			[]string{"/metadata/last_modified_by", "/metadata/last_modified_on"})
		same(t, "the records", d.records("b"), calls("one", "two", "three"))
	}},
	{"an update may start from the answer to a record", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{}`)
		m := d.mustRecord("b", call("one")).Metadata
		d.mustPut(eb("b"), document(m, listing(call("one"))))
	}},
	{"a PUT says which records the new version has", func(t *testing.T, d *desk) {
		for name, test := range map[string]struct {
			before, after []string
			next          int64 // sequence of the next record
		}{
			"the same":            {calls("a", "b", "c"), calls("a", "b", "c"), 4},
			"one more":            {calls("a", "b"), calls("a", "b", "c"), 4},
			"one more in front":   {calls("a", "b"), calls("c", "a", "b"), 4},
			"one edited":          {calls("a", "b", "c"), calls("a", "B", "c"), 5},
			"one dropped":         {calls("a", "b", "c"), calls("a", "c"), 4},
			"reordered":           {calls("a", "b", "c"), calls("c", "a", "b"), 4},
			"all dropped":         {calls("a", "b"), calls(), 3},
			"one doubled":         {calls("a", "b"), calls("a", "a", "b"), 4},
			"a double taken away": {calls("a", "a", "b"), calls("a", "b"), 4},
			"doubles kept":        {calls("a", "a"), calls("a", "a"), 3},
			"white space differs": {calls("a"), []string{`{"request": "a"}`}, 3},
			"none before":         {nil, calls("a"), 2},
			"all others":          {calls("a", "b"), calls("c", "d", "e"), 6},
		} {
			id := strings.ReplaceAll(name, " ", "-")
			members := ""
			if test.before != nil {
				members = listing(test.before...)
			}
			d.mustPut(eb(id), "{"+members+"}")
			e := d.mustUpdate(eb(id), listing(test.after...))
			want := `{"eb_id":"` + id + `",` + document(e.Metadata, listing(test.after...))[1:]
			same(t, name+": the answer", Render(t, e), want)
			same(t, name+": the document", d.text(eb(id)), want)
			same(t, name+": the next sequence", d.mustRecord(id, call("z")).Sequence, test.next)
			same(t, name+": the records", d.records(id), append(test.after, call("z")))
		}
	}},
	{"records that were added one by one are kept by a PUT that lists them", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{}`)
		for _, name := range []string{"a", "b", "c"} {
			d.mustRecord("b", call(name))
		}
		d.mustPut(eb("b"), d.text(eb("b")))
		same(t, "the next sequence", d.mustRecord("b", call("d")).Sequence, int64(4))
		same(t, "the records", d.records("b"), calls("a", "b", "c", "d"))
	}},
	{"a sequence is never reused, not even in another version", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{`+listing(calls("a", "b")...)+`}`)
		d.mustUpdate(eb("b"), "") // drops the list
		if got := d.records("b"); got != nil {
			t.Fatalf("a PUT without a list left the records %v", got)
		}
		same(t, "the sequence", d.mustRecord("b", call("c")).Sequence, int64(3))
		same(t, "the records", d.records("b"), calls("c"))
		d.mustUpdate(eb("b"), listing())
		same(t, "the records", d.records("b"), calls())
		same(t, "the sequence", d.mustRecord("b", call("d")).Sequence, int64(4))
		// A record of an older version is new here.
		d.mustUpdate(eb("b"), listing(calls("a", "d")...))
		same(t, "the sequence", d.mustRecord("b", call("e")).Sequence, int64(6))
		same(t, "the records", d.records("b"), calls("a", "d", "e"))
	}},
	{"a block can be changed while a script records into it", func(t *testing.T, d *desk) {
		m := d.mustPut(eb("b"), `{"n":1,`+listing(call("a"))+`}`).Metadata
		d.as("script").mustRecord("b", call("b"))
		e := must.Get(d.send(d.keep(eb("b"), document(m, `"n":2`))))(t)
		want := `{"eb_id":"b",` + document(e.Metadata, `"n":2,`+listing(calls("a", "b")...))[1:]
		same(t, "the version", e.Metadata.Version, int64(2))
		same(t, "the answer", Render(t, e), want)
		same(t, "the document", d.text(eb("b")), want)
		same(t, "the sequence", d.mustRecord("b", call("c")).Sequence, int64(3))
		same(t, "the records", d.records("b"), calls("a", "b", "c"))

		// Only the version and the creation are compared.
		_, err := d.send(d.keep(eb("b"), document(m, `"n":3`)))
		same(t, "the list of faults", pointers(refused(t, err, oda.MetadataMismatch)), []string{"/metadata/version"})
		_, err = d.send(d.keep(eb("b"), `{"metadata":{"version":2,"last_modified_by":"x"}}`))
		same(t, "the list of faults", pointers(refused(t, err, oda.MetadataMismatch)),
			[]string{"/metadata/created_by", "/metadata/created_on"})
	}},
	{"a keep of a long block returns all of it", func(t *testing.T, d *desk) {
		long := strings.Repeat("0123456789abcdef", 4<<10)
		m := d.mustPut(eb("b"), `{`+listing(call("first"))+`}`).Metadata
		for i := range 9 {
			m = d.mustRecord("b", call(fmt.Sprint(i, long))).Metadata
		}
		m = d.mustPut(eb("b"), document(m, listing(append(d.records("b")[5:], d.records("b")[:5]...)...))).Metadata
		d.mustRecord("b", call("last"))
		e := must.Get(d.send(d.keep(eb("b"), document(m, ""))))(t)
		same(t, "the answer", Render(t, e), d.text(eb("b")))
	}},
	{"a keep works on a block without a list, with an empty list, and on a new block", func(t *testing.T, d *desk) {
		for id, members := range map[string]string{"none": "", "empty": listing()} {
			m := d.mustPut(eb(id), "{"+members+"}").Metadata
			e := must.Get(d.send(d.keep(eb(id), document(m, ""))))(t)
			want := `{"eb_id":"` + id + `",` + document(e.Metadata, members)[1:]
			same(t, "the answer", Render(t, e), want)
			same(t, "the document", d.text(eb(id)), want)
		}
		e := must.Get(d.send(d.keep(eb("new"), `{}`)))(t)
		same(t, "the document", d.text(eb("new")), fill(`{"eb_id":"new","metadata":{<M>}}`, "", e.Metadata))
	}},
	{"a keep after a reordering keeps the records of the version", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{`+listing(calls("a", "b", "c")...)+`}`)
		d.mustUpdate(eb("b"), listing(calls("c", "x", "a")...))
		d.mustRecord("b", call("y"))
		m := d.mustGet(eb("b")).Metadata
		for range 2 {
			e := must.Get(d.send(d.keep(eb("b"), document(m, ""))))(t)
			m = e.Metadata
			same(t, "the records", d.records("b"), calls("c", "x", "a", "y"))
		}
		same(t, "the sequence", d.mustRecord("b", call("z")).Sequence, int64(6))
		same(t, "the records", d.records("b"), calls("c", "x", "a", "y", "z"))
	}},
	{"a block of 3,000 records comes back in order and byte for byte", longBlock},
	{"large records are returned unchanged", func(t *testing.T, d *desk) {
		var want []string
		for i := range 6 {
			want = append(want, fmt.Sprintf(`{"request":"%d","response":{"data":"%s"}}`, i, strings.Repeat("é ", 150_000+i)))
		}
		d.mustPut(eb("b"), `{`+listing(want[:3]...)+`}`)
		for _, text := range want[3:] {
			d.mustRecord("b", text)
		}
		got := d.records("b")
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("record %d has %d bytes, want %d, or different ones", i+1, len(got[i]), len(want[i]))
			}
		}
		d.mustPut(eb("b"), d.text(eb("b")))
		same(t, "the next sequence", d.mustRecord("b", call("z")).Sequence, int64(7))
	}},
}

// recordsInside need an engine itself.
var recordsInside = []scenario{
	{"the answer to a keep is complete, whatever happens in the store", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{`+listing(call("one"), call("two"))+`}`)
		m := d.mustRecord("b", call("three")).Metadata
		e := must.Get(d.send(d.keep(eb("b"), document(m, ""))))(t)
		want := d.text(eb("b"))
		must.Do(t, d.engine.Close())
		same(t, "the answer", Render(t, e), want)
	}},
}

// longBlock stores most records with a PUT and the others one by one.
func longBlock(t *testing.T, d *desk) {
	var want []string
	for i := range 3000 {
		want = append(want, fmt.Sprintf(`{"request":"observe","request_args":{"n":%d.0},  "pad":"%s"}`, i, strings.Repeat("x", i%700)))
	}
	d.mustPut(eb("b"), `{`+listing(want[:2600]...)+`,"a":1}`)
	for i, text := range want[2600:] {
		same(t, "the sequence", d.mustRecord("b", text).Sequence, int64(2601+i))
	}
	check := func() {
		t.Helper()
		m := d.mustGet(eb("b")).Metadata
		text := d.text(eb("b"))
		if !strings.Contains(text, listing(want...)) || !strings.Contains(text, string(m.AppendJSON(nil))) {
			t.Fatal("the document does not hold the records as sent")
		}
	}
	check()
	same(t, "the number of records", len(d.records("b")), 3000)

	// A PUT that edits one record and moves the last to the front stores only
	// the edited one again.
	want[700] = call("edited")
	want = append([]string{want[2999]}, want[:2999]...)
	d.mustUpdate(eb("b"), listing(want...))
	check()
	same(t, "the sequence", d.mustRecord("b", call("last")).Sequence, int64(3002))
	want = append(want, call("last"))
	check()
}
