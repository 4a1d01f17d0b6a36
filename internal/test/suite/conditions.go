package suite

import (
	"testing"

	"oda"
)

// match returns the condition of If-Match with these entity tags.
func match(tags ...string) oda.Condition { return oda.Condition{Match: &oda.Tags{List: tags}} }

var (
	matchAny  = oda.Condition{Match: &oda.Tags{Any: true}}
	noneMatch = oda.Condition{NoneMatch: &oda.Tags{Any: true}}
)

var conditions = []scenario{
	{"If-Match and If-None-Match on a new identifier", func(t *testing.T, d *desk) {
		for _, test := range []struct {
			name, id  string
			condition oda.Condition
			code      oda.Code
		}{
			{"If-Match with a tag", "a", match("1-1"), oda.Precondition},
			{"If-Match: *", "b", matchAny, oda.Precondition},
			{"If-None-Match: *", "c", noneMatch, ""},
			{"If-None-Match with a tag", "d", oda.Condition{NoneMatch: &oda.Tags{List: []string{"1-1"}}}, ""},
		} {
			put := d.write(sbd(test.id), `{}`)
			put.Condition = test.condition
			if _, err := d.send(put); oda.CodeOf(err) != test.code {
				t.Errorf("%s: got %v, want the code %q", test.name, err, test.code)
			}
			if _, err := d.store.Get(d.ctx, sbd(test.id)); (err == nil) != (test.code == "") {
				t.Errorf("%s: a reader then gets %v", test.name, err)
			}
		}
	}},
	{"If-Match and If-None-Match on a stored entity", func(t *testing.T, d *desk) {
		first := d.mustPut(sbd("s"), `{}`).Metadata
		m := d.mustPut(sbd("s"), document(first, "")).Metadata
		for _, test := range []struct {
			name      string
			condition oda.Condition
			sent      oda.Metadata
			code      oda.Code
		}{
			{"an older tag", match(first.Tag()), m, oda.Precondition},
			{"a tag of another version", match("3-" + m.Tag()[2:]), m, oda.Precondition},
			{"no tag at all", match(), m, oda.Precondition},
			{"tags that are not UTF-8", match("\xff", "\x00"), m, oda.Precondition},
			{"create only", noneMatch, m, oda.Precondition},
			{"a wrong tag counts before wrong metadata", match(first.Tag()), first, oda.Precondition},
			{"the current tag does not excuse wrong metadata", match(m.Tag()), first, oda.MetadataMismatch},
			{"any tag does not excuse wrong metadata", matchAny, first, oda.MetadataMismatch},
		} {
			put := d.write(sbd("s"), document(test.sent, ""))
			put.Condition = test.condition
			if _, err := d.send(put); oda.CodeOf(err) != test.code {
				t.Errorf("%s: got %v, want the code %s", test.name, err, test.code)
			}
			same(t, test.name+": the metadata", d.mustGet(sbd("s")).Metadata, m)
		}
		for _, condition := range []oda.Condition{
			match(m.Tag()), matchAny, match("1-1", "", "2-2", "9-9"), match("\xff", "\x00", "9-9"),
			{NoneMatch: &oda.Tags{List: []string{"1-1"}}},
			{NoneMatch: &oda.Tags{List: []string{"\xff", "\x00"}}},
		} {
			if condition.Match != nil && len(condition.Match.List) > 0 {
				condition.Match.List[len(condition.Match.List)-1] = m.Tag()
			}
			put := d.write(sbd("s"), document(m, ""))
			put.Condition = condition
			e, err := d.send(put)
			if err != nil {
				t.Fatalf("%+v: %v", condition, err)
			}
			m = e.Metadata
		}
	}},
	{"If-Match with a keep", func(t *testing.T, d *desk) {
		m := d.mustPut(eb("b"), `{}`).Metadata
		r := d.mustRecord("b", `{"request":"r"}`)
		put := d.keep(eb("b"), document(m, ""))
		put.Condition = match(m.Tag())
		_, err := d.send(put)
		refused(t, err, oda.Precondition)
		put.Condition = match(r.Metadata.Tag())
		if _, err := d.send(put); err != nil {
			t.Fatal(err)
		}
	}},
}
