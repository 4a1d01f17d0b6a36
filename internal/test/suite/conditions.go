package suite

import (
	"testing"

	"oda"
	"oda/internal/test/must"
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
			match(m.Tag()), matchAny, match("1-1", "", "2-2", "9-9"),
		} {
			if n := len(condition.Match.List); n > 0 {
				condition.Match.List[n-1] = m.Tag()
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
		must.Get(d.send(put))(t)
	}},
}

// conditionsInside need an engine itself: clients cannot say them.
var conditionsInside = []scenario{
	{"tags of any bytes, and If-None-Match with tags", func(t *testing.T, d *desk) {
		notThese := func(tags ...string) oda.Condition { return oda.Condition{NoneMatch: &oda.Tags{List: tags}} }
		fresh := d.write(sbd("s"), `{}`)
		fresh.Condition = notThese("1-1")
		e := must.Get(d.send(fresh))(t)
		m := e.Metadata
		for i, test := range []struct {
			condition oda.Condition
			holds     bool
		}{
			{match("\xff", "\x00"), false},
			{notThese("1-1"), true},
			{notThese("\xff", "\x00"), true},
		} {
			put := d.write(sbd("s"), document(m, ""))
			put.Condition = test.condition
			e, err := d.send(put)
			if (err == nil) != test.holds {
				t.Fatalf("condition %d: %v", i, err)
			}
			if err == nil {
				m = e.Metadata
			}
		}
		put := d.write(sbd("s"), document(m, ""))
		put.Condition = match("\xff", m.Tag())
		must.Get(d.send(put))(t)
	}},
}
