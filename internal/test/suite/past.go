package suite

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"oda"
	"oda/internal/test/must"
)

var past = []scenario{
	{"an older version is what a reader got while it was current", func(t *testing.T, d *desk) {
		var texts []string
		d.mustPut(sbd("s"), `{"n":1, "freq":0.35e9}`)
		for n := 2; n <= 5; n++ {
			texts = append(texts, d.text(sbd("s")))
			d.as(fmt.Sprint("user ", n)).mustUpdate(sbd("s"), fmt.Sprintf(`"n":%d`, n))
		}
		texts = append(texts, d.text(sbd("s")))
		for i, want := range texts {
			e := d.mustVersion(sbd("s"), int64(i)+1)
			same(t, "the document", Render(t, e), want)
		}
	}},
	{"an older version of a block has the records and the metadata with which it ended", func(t *testing.T, d *desk) {
		m := d.mustPut(eb("b"), `{}`).Metadata
		empty := d.text(eb("b"))
		d.as("bob").mustRecord("b", call("one"))
		d.as("carl").mustRecord("b", call("two"))
		first := d.text(eb("b"))
		m.Version = d.mustUpdate(eb("b"), listing(call("two"), call("three"))).Metadata.Version
		d.as("dora").mustRecord("b", call("four"))
		second := d.text(eb("b"))
		keep := d.keep(eb("b"), document(m, ""))
		must.Get(d.send(keep))(t)
		third := d.text(eb("b"))
		for i, want := range []string{first, second, third} {
			same(t, "the document", Render(t, d.mustVersion(eb("b"), int64(i)+1)), want)
		}
		same(t, "the document as it was created", Render(t, d.mustAsOf(eb("b"), m.CreatedOn)), empty)
		records := must.Get(recordsIn(third))(t)
		same(t, "what the last version keeps", records, []string{call("two"), call("three"), call("four")})
	}},
	{"a version that there is not could not be found", func(t *testing.T, d *desk) {
		d.mustPut(sbd("s"), `{}`)
		for _, missing := range []struct {
			ref     oda.Ref
			version int64
		}{{sbd("s"), 2}, {sbd("s"), 0}, {sbd("s"), -1}, {sbd("s"), math.MaxInt64}, {sbd("other"), 1}, {eb("s"), 1}} {
			_, err := d.store.Version(d.ctx, missing.ref, missing.version)
			notFound(t, err)
		}
		_, err := d.store.Versions(d.ctx, sbd("other"), math.MaxInt64, 10)
		notFound(t, err)
	}},
	{"as of an instant an entity is what it was then", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{}`)
		texts := map[oda.Instant]string{d.mustGet(eb("b")).Metadata.LastModifiedOn: d.text(eb("b"))}
		for n := range 20 {
			if n%5 == 4 {
				d.mustUpdate(eb("b"), listing(d.records("b")...))
			} else {
				d.mustRecord("b", call(fmt.Sprint(n)))
			}
			texts[d.mustGet(eb("b")).Metadata.LastModifiedOn] = d.text(eb("b"))
		}
		for at, want := range texts {
			same(t, "the document at "+at.String(), Render(t, d.mustAsOf(eb("b"), at)), want)
			same(t, "the document a moment after "+at.String(), Render(t, d.mustAsOf(eb("b"), at+1)), want)
		}
		same(t, "the document in a hundred years", Render(t, d.mustAsOf(eb("b"), d.clock.Now()+100*365*86400*1e6)), d.text(eb("b")))
	}},
	{"before its first store an entity could not be found", func(t *testing.T, d *desk) {
		m := d.mustPut(sbd("s"), `{}`).Metadata
		for _, at := range []oda.Instant{m.CreatedOn - 1, 0, oda.InstantOf(at("0001-01-01T00:00:00Z"))} {
			_, err := d.store.AsOf(d.ctx, sbd("s"), at)
			notFound(t, err)
		}
		_, err := d.store.AsOf(d.ctx, sbd("other"), m.CreatedOn)
		notFound(t, err)
	}},
	{"versions are listed newest first, page by page, while others are stored", func(t *testing.T, d *desk) {
		d.mustPut(sbd("s"), `{}`)
		for range 9 {
			d.mustUpdate(sbd("s"), "")
		}
		var seen []int64
		for before := int64(math.MaxInt64); before > 1; {
			page := must.Get(d.store.Versions(d.ctx, sbd("s"), before, 4))(t)
			for _, v := range page {
				seen = append(seen, v.Metadata.Version)
			}
			before = seen[len(seen)-1]
			d.mustUpdate(sbd("s"), "")
		}
		same(t, "the list", seen, []int64{10, 9, 8, 7, 6, 5, 4, 3, 2, 1})
	}},
	{"readers of the past see the same while others write", pastBesideWriters},
}

// pastInside need an engine itself.
var pastInside = []scenario{
	{"a state is superseded once there is a later version, and not before", func(t *testing.T, d *desk) {
		m := d.mustPut(eb("b"), `{}`).Metadata
		recorded := d.mustRecord("b", call("one")).Metadata
		for _, at := range []oda.Instant{m.LastModifiedOn, recorded.LastModifiedOn, recorded.LastModifiedOn + 1} {
			same(t, "whether it is superseded", d.mustAsOf(eb("b"), at).Superseded, false)
		}
		next := d.mustUpdate(eb("b"), "").Metadata
		for at, want := range map[oda.Instant]bool{m.LastModifiedOn: true, recorded.LastModifiedOn: true, next.LastModifiedOn: false} {
			same(t, "whether it is superseded", d.mustAsOf(eb("b"), at).Superseded, want)
		}
	}},
	{"an older version of a long block is read as it is asked for", func(t *testing.T, d *desk) {
		const length, parts = 6000, 6
		d.mustPut(eb("b"), `{"request_responses":[]}`)
		for part := range parts {
			var some []oda.NewRecord
			for i := range length / parts {
				some = append(some, d.keyed("", call(fmt.Sprint(part*length/parts+i))))
			}
			must.Get(d.store.Append(d.ctx, d.adding("b", some...)))(t)
		}
		want := d.text(eb("b"))
		d.mustUpdate(eb("b"), listing())
		e := d.mustVersion(eb("b"), 1)
		for text, err := range e.Records {
			if err != nil || string(text) != call("0") {
				t.Fatalf("the first record is %s, %v", text, err)
			}
			break // nobody has to read the others
		}
		same(t, "the document", Render(t, e) == want, true)
	}},
}

// pastBesideWriters changes a block in every way while others read what it was.
func pastBesideWriters(t *testing.T, d *desk) {
	const changes = 60
	m := d.mustPut(eb("b"), `{}`).Metadata
	moments := make(chan oda.Metadata, changes)
	go func() {
		defer close(moments)
		for n := range changes {
			switch {
			case n%3 > 0:
				receipt, err := d.record("b", call(fmt.Sprint(n)))
				if err != nil {
					t.Error(err)
					return
				}
				m = receipt.Metadata
			default:
				e, err := d.send(d.keep(eb("b"), document(m, fmt.Sprintf(`"n":%d`, n))))
				if err != nil {
					t.Error(err)
					return
				}
				m = e.Metadata
			}
			moments <- m
		}
	}()
	texts := map[oda.Metadata]string{}
	var known []oda.Metadata
	check := func(e *oda.Entity) {
		text := Render(t, e)
		if before, seen := texts[e.Metadata]; seen && before != text {
			t.Errorf("the state %s was\n%s\nand is\n%s", e.Metadata.Tag(), before, text)
		}
		texts[e.Metadata] = text
	}
	for now := range moments {
		known = append(known, now)
		for _, at := range []oda.Metadata{now, known[len(known)/2], known[0]} {
			e := d.mustAsOf(eb("b"), at.LastModifiedOn)
			same(t, "the metadata of then", e.Metadata, at)
			check(e)
			e = d.mustVersion(eb("b"), at.Version)
			if e.Superseded {
				check(e)
			}
		}
	}
	for _, at := range known {
		check(d.mustAsOf(eb("b"), at.LastModifiedOn))
	}
}

func (d *desk) mustVersion(ref oda.Ref, version int64) *oda.Entity {
	d.tb.Helper()
	e, err := d.store.Version(d.ctx, ref, version)
	if err != nil {
		d.tb.Fatalf("version %d of %s %s: %v", version, ref.Kind, ref.ID, err)
	}
	return e
}

func (d *desk) mustAsOf(ref oda.Ref, at oda.Instant) *oda.Entity {
	d.tb.Helper()
	e, err := d.store.AsOf(d.ctx, ref, at)
	if err != nil {
		d.tb.Fatalf("%s %s as of %s: %v", ref.Kind, ref.ID, at, err)
	}
	return e
}

// notFound demands the error for what is not there, in the words that clients
// look for.
func notFound(tb TB, err error) {
	tb.Helper()
	if problem := refused(tb, err, oda.NotFound); !strings.Contains(problem.Detail, "could not be found") {
		tb.Fatalf("got the detail %q", problem.Detail)
	}
}

// comparePast holds every state that an entity ever had against the model: each
// version, and the instants at, between, before and behind its changes.
func (m *machine) comparePast(t *rapid.T, ref oda.Ref) {
	e := m.model.entities[ref]
	current := e.metadata.Version
	instants := map[oda.Instant]bool{0: true, oda.InstantOf(at("9999-12-31T23:59:59Z")): true}
	for _, moment := range e.past {
		on := moment.info.Metadata.LastModifiedOn
		instants[on-1], instants[on], instants[on+1] = true, true, true
	}
	for at := range instants {
		got, err := m.desk.store.AsOf(m.desk.ctx, ref, at)
		m.compareMoment(t, fmt.Sprintf("%v as of %d", ref, at), got, err, e.asOf(at), current)
	}
	for version := range current + 2 {
		got, err := m.desk.store.Version(m.desk.ctx, ref, version)
		m.compareMoment(t, fmt.Sprintf("version %d of %v", version, ref), got, err, e.version(version), current)
	}
	limit := rapid.IntRange(1, 5).Draw(t, "page")
	for before := current + 1; before > 1; {
		page, err := m.desk.store.Versions(m.desk.ctx, ref, before, limit)
		if err != nil || len(page) == 0 || len(page) > limit {
			t.Fatalf("the versions of %v before %d: %d of them, %v", ref, before, len(page), err)
		}
		for _, got := range page {
			before--
			same(t, fmt.Sprintf("what is told of version %d of %v", before, ref), got, e.version(before).info)
		}
	}
}

func (m *machine) compareMoment(t *rapid.T, what string, got *oda.Entity, err error, want *moment, current int64) {
	if want == nil {
		notFound(t, err)
		return
	}
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	same(t, what, Render(t, got), want.text)
	same(t, what, got.Metadata, want.info.Metadata)
	if m.desk.engine != nil {
		same(t, "whether "+what+" is superseded", got.Superseded, want.info.Metadata.Version < current)
	}
}
