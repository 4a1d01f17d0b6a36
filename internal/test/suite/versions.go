package suite

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"oda"
	"oda/internal/test/must"
)

var versions = []scenario{
	{"the first store of an identifier makes version 1", func(t *testing.T, d *desk) {
		for _, kind := range oda.Kinds {
			ref := oda.Ref{Kind: kind, ID: "first"}
			at := oda.Instant(1_767_225_600_000_000)
			d.clock.Set(at, 0)
			e := d.mustPut(ref, `{"a":1}`)
			want := oda.Metadata{Version: 1, CreatedBy: "anna", CreatedOn: at, LastModifiedBy: "anna", LastModifiedOn: at}
			same(t, "the metadata in the answer", e.Metadata, want)
			same(t, "the entity in the answer", e.Ref, ref)
			got := d.mustGet(ref)
			same(t, "the metadata", got.Metadata, want)
			same(t, "the entity", got.Ref, ref)
			same(t, "the document", Render(t, got), Render(t, e))
		}
	}},
	{"a first store is version 1 whatever the document says", func(t *testing.T, d *desk) {
		e := d.mustPut(sbd("s"), `{"metadata":{"version":7,"created_by":"bob","created_on":"2001-01-01T00:00:00Z",`+
			`"last_modified_by":"bob","last_modified_on":"2001-01-01T00:00:00Z"}}`)
		if e.Metadata.Version != 1 || e.Metadata.CreatedBy != "anna" || e.Metadata.CreatedOn != e.Metadata.LastModifiedOn {
			t.Fatalf("got the metadata %+v", e.Metadata)
		}
	}},
	{"an update makes the next version and keeps creator and creation time", func(t *testing.T, d *desk) {
		m := d.mustPut(sbd("s"), `{"n":1}`).Metadata
		for version := int64(2); version <= 5; version++ {
			user := fmt.Sprintf("user %d", version)
			next := d.as(user).mustPut(sbd("s"), document(m, `"n":2`)).Metadata
			want := m
			want.Version, want.LastModifiedBy, want.LastModifiedOn = version, user, next.LastModifiedOn
			same(t, "the metadata", next, want)
			if next.LastModifiedOn <= m.LastModifiedOn {
				t.Fatalf("last_modified_on went from %s to %s", m.LastModifiedOn, next.LastModifiedOn)
			}
			m = next
		}
		same(t, "the document", d.text(sbd("s")), `{"sbd_id":"s",`+document(m, `"n":2`)[1:])
	}},
	{"an update with any one managed field missing, null or different is refused", oneFieldWrong},
	{"an update without metadata is refused and names all five fields", func(t *testing.T, d *desk) {
		d.mustPut(sbd("s"), `{}`)
		for _, text := range []string{`{}`, `{"metadata":null}`, `{"metadata":{}}`, `{"metadata":{"pdm_version":"1"}}`} {
			_, err := d.put(sbd("s"), text)
			same(t, "the list of faults", pointers(refused(t, err, oda.MetadataMismatch)), []string{
				"/metadata/version", "/metadata/created_by", "/metadata/created_on",
				"/metadata/last_modified_by", "/metadata/last_modified_on",
			})
		}
	}},
	{"a time may be spelt in any valid way", func(t *testing.T, d *desk) {
		d.clock.Set(oda.InstantOf(time.Date(2026, 3, 1, 12, 0, 0, 250_000_000, time.UTC)), 0)
		d.mustPut(sbd("s"), `{}`)
		for version, spelling := range []string{
			"2026-03-01T12:00:00.25Z", "2026-03-01t12:00:00.25z", "2026-03-01T12:00:00.250000+00:00", "2026-03-01T17:30:00.25+05:30",
			"2026-03-01 12:00:00.25", "2026-03-01T04:00:00.25-08:00",
		} {
			m := d.mustGet(sbd("s")).Metadata
			text := strings.ReplaceAll(document(m, ""), m.CreatedOn.String(), spelling)
			if got := d.mustPut(sbd("s"), text).Metadata.Version; got != int64(version)+2 {
				t.Fatalf("%s: got version %d", spelling, got)
			}
		}
	}},
	{"other members of the metadata are not compared", func(t *testing.T, d *desk) {
		d.mustPut(sbd("s"), `{"metadata":{"pdm_version":"1.0"}}`)
		text := strings.Replace(d.text(sbd("s")), `"1.0"`, `"2.0"`, 1)
		d.mustPut(sbd("s"), text)
		if got := d.text(sbd("s")); !strings.Contains(got, `"pdm_version":"2.0"`) {
			t.Fatalf("got %s", got)
		}
	}},
	{"last_modified_on grows even if the clock stands still or goes back", timeGoesOn},
	{"the same document again makes a new version", func(t *testing.T, d *desk) {
		d.mustPut(sbd("s"), `{"a":[1,2]}`)
		for version := int64(2); version < 5; version++ {
			if got := d.mustPut(sbd("s"), d.text(sbd("s"))).Metadata.Version; got != version {
				t.Fatalf("got version %d, want %d", got, version)
			}
		}
	}},
	{"the same identifier in two kinds names two entities", func(t *testing.T, d *desk) {
		for i, kind := range oda.Kinds {
			d.mustPut(oda.Ref{Kind: kind, ID: "same"}, fmt.Sprintf(`{"n":%d}`, i))
		}
		d.mustUpdate(sbd("same"), `"n":9`)
		for i, kind := range oda.Kinds[1:] {
			text := d.text(oda.Ref{Kind: kind, ID: "same"})
			if !strings.Contains(text, fmt.Sprintf(`"n":%d`, i+1)) || !strings.Contains(text, `"version":1`) {
				t.Fatalf("%s is now %s", kind, text)
			}
		}
	}},
	{"identifiers are case-sensitive", func(t *testing.T, d *desk) {
		d.mustPut(sbd("sbd-A"), `{"n":1}`)
		_, err := d.store.Get(d.ctx, sbd("sbd-a"))
		refused(t, err, oda.NotFound)
		same(t, "the version of the other", d.mustPut(sbd("sbd-a"), `{"n":2}`).Metadata.Version, int64(1))
	}},
	{"an unknown identifier could not be found", func(t *testing.T, d *desk) {
		d.mustPut(sbd("s"), `{}`)
		for _, ref := range []oda.Ref{sbd("other"), eb("s")} {
			_, err := d.store.Get(d.ctx, ref)
			if problem := refused(t, err, oda.NotFound); !strings.Contains(problem.Detail, "could not be found") {
				t.Fatalf("got the detail %q", problem.Detail)
			}
		}
	}},
	{"a write whose caller has gone is stored completely or not at all", func(t *testing.T, d *desk) {
		ctx, cancel := context.WithCancel(d.ctx)
		cancel()
		_, err := d.store.Put(ctx, []writing{d.write(sbd("s"), `{}`)})
		_, found := d.store.Get(d.ctx, sbd("s"))
		if err != nil {
			refused(t, found, oda.NotFound)
		} else if found != nil {
			t.Fatalf("the write was acknowledged, but: %v", found)
		}
	}},
	{"entities are counted by kind", func(t *testing.T, d *desk) {
		same(t, "the count", d.counts(), map[oda.Kind]int64{oda.SBDefinition: 0, oda.SBInstance: 0, oda.ExecutionBlock: 0, oda.Project: 0, oda.Note: 0})
		d.mustPut(sbd("s"), `{}`)
		d.mustPut(eb("b"), `{}`)
		d.mustPut(eb("c"), `{}`)
		d.mustUpdate(eb("b"), "")
		d.mustRecord("b", `{"request":"r"}`)
		_, err := d.put(sbd("s"), `{}`)
		refused(t, err, oda.MetadataMismatch)
		_, err = d.store.Put(d.ctx, []writing{d.write(sbd("s"), `{}`), d.write(sbd("new"), `{}`)})
		refused(t, err, oda.MetadataMismatch)
		same(t, "the count", d.counts(), map[oda.Kind]int64{oda.SBDefinition: 1, oda.SBInstance: 0, oda.ExecutionBlock: 2, oda.Project: 0, oda.Note: 0})
	}},
}

// versionsInside need an engine itself.
var versionsInside = []scenario{
	{"a running engine answers a ping", func(t *testing.T, d *desk) {
		must.Do(t, d.engine.Ping(d.ctx))
	}},
}

// oneFieldWrong tries every managed field in every wrong way, one at a time.
func oneFieldWrong(t *testing.T, d *desk) {
	stored := d.mustPut(sbd("s"), `{"keep":"me"}`).Metadata
	stored = d.as("bob").mustPut(sbd("s"), document(stored, `"keep":"me"`)).Metadata
	before := d.text(sbd("s"))
	spelled := string(stored.AppendJSON(nil))
	for field, wrong := range map[string][]string{
		"version":          {"1", "3", "9223372036854775807", "1e300", "1e400", "null"},
		"created_by":       {`"bob"`, `"Anna"`, `"anna "`, "null"},
		"created_on":       {`"2026-01-01T00:00:00.000001Z"`, `"2026-01-01T00:00:00.0000001Z"`, `"2026-01-01T00:00:00+01:00"`, "null"},
		"last_modified_by": {`"anna"`, `"bob\u0020"`, "null"},
		"last_modified_on": {`"2026-01-01T00:00:00Z"`, `"2026-01-01"`, `"2026-01-01T00:00:01.0000009Z"`, "null"},
	} {
		value := memberOf(t, spelled, field)
		texts := []string{ // without the field
			strings.Replace(strings.Replace(spelled, `"`+field+`":`+value, "", 1), ",,", ",", 1),
		}
		texts[0] = strings.NewReplacer("{,", "{", ",}", "}").Replace(texts[0])
		for _, w := range wrong {
			texts = append(texts, strings.Replace(spelled, `"`+field+`":`+value, `"`+field+`":`+w, 1))
		}
		for _, text := range texts {
			_, err := d.put(sbd("s"), `{"metadata":`+text+`}`)
			problem := refused(t, err, oda.MetadataMismatch)
			if !strings.Contains(problem.Detail, "Read the entity") {
				t.Errorf("the detail does not say what to do: %s", problem.Detail)
			}
			same(t, "the list of faults for "+text, pointers(problem), []string{"/metadata/" + field})
			if !strings.Contains(problem.Faults[0].Detail, strings.Trim(value, `"`)) {
				t.Errorf("%s: the fault %q does not say what is stored", text, problem.Faults[0].Detail)
			}
			same(t, "the document after a refusal", d.text(sbd("s")), before)
		}
	}
	d.mustPut(sbd("s"), `{"metadata":`+spelled+`}`)
}

// memberOf returns the value of a member of an object that has no white space,
// and no commas in its values.
func memberOf(t *testing.T, object, name string) string {
	_, rest, found := strings.Cut(object, `"`+name+`":`)
	if !found {
		t.Fatalf("%s has no %s", object, name)
	}
	return rest[:strings.IndexAny(rest, ",}")]
}

// timeGoesOn changes a block in every way for which an engine has a statement.
func timeGoesOn(t *testing.T, d *desk) {
	start := d.clock.Now()
	d.clock.Set(start, 0)
	var m oda.Metadata
	put := func(p writing) oda.Metadata {
		e := must.Get(d.send(p))(t)
		return e.Metadata
	}
	changes := map[string]func() oda.Metadata{
		"an update":                  func() oda.Metadata { return put(d.write(eb("b"), document(m, ""))) },
		"an update with new records": func() oda.Metadata { return put(d.write(eb("b"), document(m, listing(call(m.Tag()))))) },
		"a keep":                     func() oda.Metadata { return put(d.keep(eb("b"), document(m, ""))) },
		"an update with If-Match": func() oda.Metadata {
			p := d.write(eb("b"), document(m, ""))
			p.Condition = oda.Condition{Match: &oda.Tags{List: []string{m.Tag()}}}
			return put(p)
		},
		"an update beside another entity": func() oda.Metadata {
			all := must.Get(d.store.Put(d.ctx, []writing{d.write(sbd("s-"+m.Tag()), `{}`), d.write(eb("b"), document(m, ""))}))(t)
			return all[1].Metadata
		},
		"a record": func() oda.Metadata { return d.mustRecord("b", call("r")).Metadata },
		"several records": func() oda.Metadata {
			receipts := must.Get(d.store.Append(d.ctx, d.adding("b", d.keyed("", call("r")), d.keyed("", call("s")), d.keyed("", call("t")))))(t)
			m.LastModifiedOn += oda.Instant(len(receipts) - 1)
			return d.mustGet(eb("b")).Metadata
		},
	}
	m = d.mustPut(eb("b"), `{}`).Metadata
	for _, back := range []oda.Instant{0, 1_000_000_000} {
		d.clock.Set(start-back, 0)
		for name, change := range changes {
			after := change()
			if after.LastModifiedOn != m.LastModifiedOn+1 || after.CreatedOn != start {
				t.Fatalf("%s: last_modified_on went from %s to %s", name, m.LastModifiedOn, after.LastModifiedOn)
			}
			m = after
		}
	}
}
