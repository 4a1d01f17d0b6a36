package suite

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"oda"
	"oda/internal/test/must"
	"oda/naming"
)

// namingInside needs an engine itself.
var namingInside = []scenario{
	{"what ran has the name that its SBDefinition had in the version that ran", func(t *testing.T, d *desk) {
		n := naming.New(d.engine)
		d.mustPut(eb("first of all"), `{"sbd_ref":"s"}`)
		d.mustPut(sbd("s"), `{"name":"One"}`)
		d.mustPut(eb("one"), `{"sbd_ref":"s"}`)
		d.mustPut(sbi("by number"), `{"sbd_ref":"s","sbd_version":1}`)
		d.mustPut(sbi("by time"), `{"sbd_id":"s"}`)
		d.mustUpdate(sbd("s"), `"title":"Two"`)
		d.mustPut(eb("two"), `{"sbd_id":"s"}`)
		d.mustPut(eb("through"), `{"sbi_ref":"by number"}`)
		d.mustPut(eb("through by time"), `{"sbi_ref":"by time"}`)
		d.mustPut(eb("both"), `{"sbi_ref":"by number","sbd_ref":"s"}`)
		d.mustPut(eb("both, with a number"), `{"sbi_ref":"by number","sbd_ref":"s","sbd_version":2}`)
		d.mustPut(eb("of another"), `{"sbi_ref":"by number","sbd_ref":"other"}`)
		d.mustUpdate(sbd("s"), `"n":3`)
		d.mustPut(eb("three"), `{"sbd_ref":"s"}`)
		d.mustUpdate(sbd("s"), `"name":"Four"`)
		d.mustPut(sbd("other"), `{"name":"Other"}`)
		for ref, want := range map[oda.Ref]string{
			eb("first of all"): "One", eb("one"): "One", sbi("by number"): "One", sbi("by time"): "One",
			eb("two"): "Two", eb("through"): "One", eb("through by time"): "Two", eb("both"): "One", eb("both, with a number"): "Two",
			eb("of another"): "Other", eb("three"): "", sbd("s"): "Four",
		} {
			for _, how := range []string{"at first", "again"} {
				got := must.Get(n.Of(d.ctx, []*oda.Found{d.look(ref), nil, d.look(ref)}))(t)
				same(t, "the name of "+ref.ID+" "+how, got, []string{want, "", want})
			}
		}
	}},
	{"what has no readable version has another name or none", func(t *testing.T, d *desk) {
		n := naming.New(d.engine)
		d.mustPut(sbd("s"), `{"name":"One"}`)
		d.mustUpdate(sbd("s"), `"name":"Two"`)
		d.mustPut(prj("p"), `{"obs_blocks":[{"sbd_ids":["s"]}]}`)
		d.mustPut(eb("later"), `{"sbd_ref":"s","sbd_version":9}`)
		d.mustPut(eb("own"), `{"sbd_ref":"s","sbd_version":1,"name":"Own"}`)
		d.mustPut(eb("gone"), `{"sbd_ref":"gone","sbd_version":1}`)
		d.mustPut(eb("no identifier"), `{"sbd_ref":"no identifier/","sbi_ref":"nor \"this\""}`)
		d.mustPut(eb("through gone"), `{"sbi_ref":"gone"}`)
		d.mustPut(eb("of nothing"), `{}`)
		for ref, want := range map[oda.Ref]string{
			prj("p"): "", eb("later"): "Two", eb("own"): "Own", eb("gone"): "", eb("no identifier"): "", eb("through gone"): "", eb("of nothing"): "",
		} {
			same(t, "the name of "+ref.ID, must.Get(n.Of(d.ctx, []*oda.Found{d.look(ref)}))(t), []string{want})
		}
		versions := []naming.Version{{Ref: sbd("s"), Number: 1}, {Ref: sbd("s"), Number: 2}, {Ref: sbd("s"), Number: 3}, {}, {Ref: sbd("gone"), Number: 1}}
		same(t, "names by versions", must.Get(n.In(d.ctx, versions))(t), []naming.Name{{Text: "One", Version: 1}, {Text: "Two", Version: 2}, {Text: "Two", Version: 2}, {}, {}})
		d.mustPut(sbd("looks"), `{"name":"Looks","targets":[{"name":"A","ra":1,"dec":2},{"name":"B","ra":1,"dec":2},{"name":"A","ra":3,"dec":4}]}`)
		d.mustPut(eb("looking"), `{"sbd_ref":"looks"}`)
		d.mustUpdate(sbd("looks"), `"targets":[{"name":"C","ra":1,"dec":2},{"name":"D","ra":1,"dec":2},{"name":"E","ra":1,"dec":2},{"name":"F","ra":1,"dec":2},{"ra":1,"dec":2}]`)
		d.mustPut(eb("looking later"), `{"sbd_ref":"looks"}`)
		same(t, "what blocks look at", must.Get(n.Called(d.ctx, []*oda.Found{d.look(eb("looking")), d.look(eb("looking later")), nil, d.look(eb("own"))}))(t),
			[]naming.Name{{Text: "Looks", Targets: "A, B", Version: 1}, {Targets: "C, D, E and 1 more", Version: 2}, {}, {Text: "Own", Version: 1}})
		same(t, "names of nothing", len(must.Get(n.Of(d.ctx, nil))(t)), 0)
	}},
	{"an older version is read once for its name", func(t *testing.T, d *desk) {
		store := &readingPast{Engine: d.engine}
		n := naming.New(store)
		mustRead := func(what string, want int64, names string, entities ...*oda.Found) {
			t.Helper()
			store.reads.Store(0)
			got := must.Get(n.Of(d.ctx, entities))(t)
			same(t, what+": the names", strings.Join(got, " "), names)
			same(t, what+": what was read", store.reads.Load(), want)
		}
		var blocks []*oda.Found
		d.mustPut(sbd("s"), `{"name":"N1"}`)
		for version := range 2 {
			if version > 0 {
				d.mustUpdate(sbd("s"), `"name":"N2"`)
			}
			for i := range 3 {
				ref := eb(fmt.Sprintf("b%d%d", version, i))
				d.mustPut(ref, `{"sbd_ref":"s"}`)
				blocks = append(blocks, d.look(ref))
			}
		}
		mustRead("while it is current", 1, "N1 N1 N1 N2 N2 N2", blocks...)
		d.mustUpdate(sbd("s"), `"name":"N3"`)
		mustRead("once it is not", 1, "N1 N1 N1 N2 N2 N2", blocks...)
		mustRead("again", 0, "N1 N1 N1 N2 N2 N2", blocks...)
	}},
	{"a question reads so many older versions, and the next one goes on", func(t *testing.T, d *desk) {
		const small, large, most = 300, 9, 256
		store := &readingPast{Engine: d.engine}
		n := naming.New(store)
		d.mustPut(sbd("long"), `{"name":"L0","text":"`+strings.Repeat("x", 1<<20)+`"}`)
		for i := range large {
			d.mustUpdate(sbd("long"), fmt.Sprintf(`"name":"L%d","text":"%s"`, i+1, strings.Repeat("x", 1<<20)))
		}
		d.mustPut(sbd("short"), `{"name":"S0"}`)
		for i := range small {
			d.mustUpdate(sbd("short"), fmt.Sprintf(`"name":"S%d"`, i+1))
		}
		for _, of := range []struct {
			ref   oda.Ref
			many  int
			reads []int64
		}{{sbd("short"), small, []int64{most, small - most, 0}}, {sbd("long"), large, []int64{2, 2, 2, 2, 1, 0}}} {
			var versions []naming.Version
			for i := range of.many {
				versions = append(versions, naming.Version{Ref: of.ref, Number: int64(i) + 1})
			}
			known := int64(0)
			for _, reads := range of.reads {
				store.reads.Store(0)
				names := must.Get(n.In(d.ctx, versions))(t)
				same(t, "what was read of "+of.ref.ID, store.reads.Load(), reads)
				known += reads
				for i, name := range names {
					want := naming.Name{}
					if int64(i) < known {
						want = naming.Name{Text: fmt.Sprintf("%c%d", strings.ToUpper(of.ref.ID)[0], i), Version: int64(i) + 1}
					}
					if name != want {
						t.Fatalf("version %d of %s has the name %v, want %v", i+1, of.ref.ID, name, want)
					}
				}
			}
		}
	}},
}

// readingPast counts the older versions that are read.
type readingPast struct {
	oda.Engine
	reads atomic.Int64
}

func (r *readingPast) Version(ctx context.Context, ref oda.Ref, version int64) (*oda.Entity, error) {
	r.reads.Add(1)
	return r.Engine.Version(ctx, ref, version)
}

func (r *readingPast) AsOf(ctx context.Context, ref oda.Ref, at oda.Instant) (*oda.Entity, error) {
	r.reads.Add(1)
	return r.Engine.AsOf(ctx, ref, at)
}
