package suite

import (
	"fmt"
	"strings"
	"testing"

	"oda"
	"oda/internal/test/must"
	"oda/provenance"
)

func sbi(id string) oda.Ref { return oda.Ref{Kind: oda.SBInstance, ID: id} }
func prj(id string) oda.Ref { return oda.Ref{Kind: oda.Project, ID: id} }

// provenance gives that of an entity.
func (d *desk) provenance(ref oda.Ref) *provenance.Graph {
	d.tb.Helper()
	p, err := d.store.Provenance(d.ctx, ref)
	if err != nil {
		d.tb.Fatalf("provenance of %s: %v", ref.ID, err)
	}
	return p
}

// refs gives the nodes in order.
func refs(nodes []provenance.Node) []oda.Ref {
	var all []oda.Ref
	for _, n := range nodes {
		all = append(all, n.Ref)
	}
	return all
}

func stored(ref oda.Ref, version int64, name string) provenance.Node {
	return provenance.Node{Ref: ref, Exists: true, Version: version, Name: name}
}

var tracing = []scenario{
	{"everything is reached in both directions, nearest first", func(t *testing.T, d *desk) {
		d.mustPut(sbd("sbd"), `{"name":"Plan","ob_ref":"ob-2"}`)
		d.mustUpdate(sbd("sbd"), `"name":"Plan","ob_ref":"ob-2","n":1`)
		d.mustPut(sbi("sbi"), `{"sbd_ref":"sbd","sbd_version":1,"eb_ref":"eb"}`)
		d.mustPut(eb("eb"), `{"sbd_ref":"sbd","sbd_version":1,"sbi_ref":"sbi"}`)
		d.mustPut(prj("prj"), `{"title":"Survey","obs_blocks":[{"obs_block_id":"ob-1","sbd_ids":["sbd"]},{"obs_block_id":"ob-2","sbd_ids":["other","sbd"]}]}`)
		d.mustPut(sbd("stranger"), `{"ob_ref":"ob-3"}`)
		p := d.provenance(eb("eb"))
		same(t, "the nodes", p.Nodes, []provenance.Node{
			stored(eb("eb"), 1, ""),
			stored(sbd("sbd"), 2, "Plan"), stored(sbi("sbi"), 1, ""),
			stored(prj("prj"), 1, "Survey"),
			{Ref: sbd("other")},
		})
		same(t, "the edges", p.Edges, []provenance.Edge{
			{From: eb("eb"), To: sbd("sbd"), Version: 1, Field: "sbd_ref"},
			{From: eb("eb"), To: sbi("sbi"), Field: "sbi_ref"},
			{From: sbd("sbd"), To: prj("prj"), Field: "ob_ref"},
			{From: sbi("sbi"), To: sbd("sbd"), Version: 1, Field: "sbd_ref"},
			{From: sbi("sbi"), To: eb("eb"), Field: "eb_ref"},
			{From: prj("prj"), To: sbd("sbd"), Field: "obs_blocks/0/sbd_ids/0"},
			{From: prj("prj"), To: sbd("other"), Field: "obs_blocks/1/sbd_ids/0"},
			{From: prj("prj"), To: sbd("sbd"), Field: "obs_blocks/1/sbd_ids/1"},
		})
		same(t, "whether there is more", p.Truncated, false)
		same(t, "the nodes from the other end", refs(d.provenance(prj("prj")).Nodes), []oda.Ref{prj("prj"), sbd("other"), sbd("sbd"), sbi("sbi"), eb("eb")})
	}},
	{"references dangle, lead to themselves, and have older names", func(t *testing.T, d *desk) {
		d.mustPut(sbi("sbi"), `{"sbd_id":"gone","sbd_version":4,"eb_ref":"no identifier/"}`)
		p := d.provenance(sbi("sbi"))
		same(t, "the nodes", p.Nodes, []provenance.Node{stored(sbi("sbi"), 1, ""), {Ref: sbd("gone")}, {Ref: eb("no identifier/")}})
		same(t, "the edges", p.Edges, []provenance.Edge{
			{From: sbi("sbi"), To: sbd("gone"), Version: 4, Field: "sbd_id"}, {From: sbi("sbi"), To: eb("no identifier/"), Field: "eb_ref"},
		})
		d.mustPut(sbi("friend"), `{"sbd_ref":"gone"}`)
		same(t, "the nodes beyond what is not stored", refs(d.provenance(sbi("sbi")).Nodes), []oda.Ref{sbi("sbi"), sbd("gone"), eb("no identifier/"), sbi("friend")})

		d.mustPut(prj("self"), `{"obs_blocks":[{"obs_block_id":"self-ob","sbd_ids":["loop"]}]}`)
		d.mustPut(sbd("loop"), `{"ob_ref":"self-ob","prj_ref":"self"}`)
		p = d.provenance(sbd("loop"))
		same(t, "the nodes of a loop", refs(p.Nodes), []oda.Ref{sbd("loop"), prj("self")})
		same(t, "the number of edges of a loop", len(p.Edges), 3)
		d.mustPut(sbd("lonely"), `{"ob_ref":"nobody","prj_ref":"lonely"}`)
		same(t, "the nodes of one that nothing has", d.provenance(sbd("lonely")).Nodes,
			[]provenance.Node{stored(sbd("lonely"), 1, ""), {Ref: prj("lonely")}, {Ref: prj("nobody")}})
	}},
	{"only current versions count", func(t *testing.T, d *desk) {
		d.mustPut(sbd("a"), `{}`)
		d.mustPut(sbi("i"), `{"sbd_ref":"a"}`)
		same(t, "the nodes", refs(d.provenance(sbd("a")).Nodes), []oda.Ref{sbd("a"), sbi("i")})
		d.mustUpdate(sbi("i"), `"sbd_ref":"b"`)
		same(t, "the nodes of what is not referred to any more", refs(d.provenance(sbd("a")).Nodes), []oda.Ref{sbd("a")})
		same(t, "the nodes now", refs(d.provenance(sbi("i")).Nodes), []oda.Ref{sbi("i"), sbd("b")})
	}},
	{"identifiers of different kinds are different entities", func(t *testing.T, d *desk) {
		d.mustPut(sbd("x"), `{}`)
		d.mustPut(sbi("x"), `{"sbd_ref":"x","eb_ref":"x"}`)
		d.mustPut(eb("x"), `{"sbi_ref":"x"}`)
		d.mustPut(prj("x"), `{}`)
		same(t, "the nodes of the Project", refs(d.provenance(prj("x")).Nodes), []oda.Ref{prj("x")})
		same(t, "the nodes of the others", refs(d.provenance(sbd("x")).Nodes), []oda.Ref{sbd("x"), sbi("x"), eb("x")})
	}},
	{"there are at most 1,000 nodes", func(t *testing.T, d *desk) {
		var puts []writing
		for i := range 1100 {
			puts = append(puts, d.write(eb(fmt.Sprintf("eb-%04d", i)), `{"sbd_ref":"hub","sbd_version":3}`))
		}
		puts = append(puts, d.write(sbi("sbi"), `{"sbd_ref":"hub"}`))
		must.Get(d.store.Put(d.ctx, puts))(t)
		p := d.provenance(sbi("sbi"))
		if len(p.Nodes) != 1000 || !p.Truncated || p.Nodes[1].Ref != sbd("hub") || p.Nodes[1].Exists || len(p.Edges) != 999 {
			t.Fatalf("%d nodes, truncated: %t, the second is %+v, %d edges", len(p.Nodes), p.Truncated, p.Nodes[1], len(p.Edges))
		}
	}},
	{"there are at most 10,000 edges, and all nodes hang together", func(t *testing.T, d *desk) {
		d.mustPut(sbd("hub"), `{}`)
		text := `{"obs_blocks":[{"sbd_ids":["other"` + strings.Repeat(`,"hub"`, 3000) + `]}]}`
		for i := range 20 {
			d.mustPut(prj(fmt.Sprint("prj-", i)), text)
		}
		p := d.provenance(sbd("hub"))
		linked := map[[2]oda.Ref]bool{}
		for _, e := range p.Edges {
			linked[[2]oda.Ref{e.From, e.To}] = true
		}
		if len(p.Nodes) != 22 || len(p.Edges) != 10_000 || len(linked) != 40 || !p.Truncated {
			t.Fatalf("%d nodes, %d edges between %d pairs, truncated: %t", len(p.Nodes), len(p.Edges), len(linked), p.Truncated)
		}
	}},
	{"a document with more references or blocks than are known has more", func(t *testing.T, d *desk) {
		ids := func(n int, id string) string {
			var list []string
			for i := range n {
				list = append(list, fmt.Sprintf(id, i))
			}
			return strings.Join(list, ",")
		}
		for name, test := range map[string]struct {
			blocks string
			more   bool
		}{
			"few-blocks":      {ids(999, `{"obs_block_id":"ob-%d"}`), false},
			"many-blocks":     {ids(1100, `{"obs_block_id":"ob-%d"}`), true},
			"long-blocks":     {ids(100, `{"obs_block_id":"`+strings.Repeat("long-", 180)+`%d"}`), true},
			"long-references": {`{"sbd_ids":[` + ids(300, `"`+strings.Repeat("long-", 180)+`%d"`) + `]}`, true},
		} {
			d.mustPut(prj(name), fmt.Sprintf(`{"obs_blocks":[%s]}`, test.blocks))
			same(t, name+": whether there is more", d.provenance(prj(name)).Truncated, test.more)
		}
	}},
	{"an unknown entity has none", func(t *testing.T, d *desk) {
		d.mustPut(sbi("sbi"), `{"sbd_ref":"unknown"}`)
		for _, id := range []string{"unknown", "no identifier/", ""} {
			_, err := d.store.Provenance(d.ctx, sbd(id))
			refused(t, err, oda.NotFound)
		}
	}},
}

// tracingInside need an engine itself.
var tracingInside = []scenario{
	{"a walk goes up or down, one step or all the way", func(t *testing.T, d *desk) {
		d.mustPut(prj("prj"), `{"obs_blocks":[{"obs_block_id":"ob-1","sbd_ids":["sbd"]}]}`)
		d.mustPut(prj("other"), `{"obs_blocks":[{"obs_block_id":"ob-2","sbd_ids":["sbd"]}]}`)
		d.mustPut(sbd("sbd"), `{}`)
		d.mustPut(sbd("named"), `{"ob_ref":"ob-1"}`)
		d.mustPut(sbi("sbi"), `{"sbd_ref":"named"}`)
		d.mustPut(eb("eb"), `{"sbi_ref":"sbi","sbd_ref":"sbd"}`)
		for about, test := range map[string]struct {
			from oda.Ref
			walk provenance.Walk
			want []oda.Ref
		}{
			"up":               {sbi("sbi"), provenance.Walk{Direction: provenance.Up}, []oda.Ref{sbi("sbi"), sbd("named"), prj("prj")}},
			"up from the end":  {eb("eb"), provenance.Walk{Direction: provenance.Up}, []oda.Ref{eb("eb"), sbd("sbd"), sbi("sbi"), sbd("named"), prj("other"), prj("prj")}},
			"down":             {prj("prj"), provenance.Walk{Direction: provenance.Down}, []oda.Ref{prj("prj"), sbd("named"), sbd("sbd"), sbi("sbi"), eb("eb")}},
			"one step down":    {prj("prj"), provenance.Walk{Direction: provenance.Down, Depth: 1}, []oda.Ref{prj("prj"), sbd("named"), sbd("sbd")}},
			"one step":         {sbi("sbi"), provenance.Walk{Depth: 1}, []oda.Ref{sbi("sbi"), sbd("named"), eb("eb")}},
			"to few":           {sbi("sbi"), provenance.Walk{Most: 2}, []oda.Ref{sbi("sbi"), sbd("named")}},
			"down from an end": {eb("eb"), provenance.Walk{Direction: provenance.Down}, []oda.Ref{eb("eb")}},
		} {
			nodes := must.Get(provenance.New(d.engine).Walk(d.ctx, test.walk, d.look(test.from)))(t)
			same(t, "what is reached "+about, refs(nodes), test.want)
		}
	}},
	{"a walk without a bound leaves out nothing", func(t *testing.T, d *desk) {
		const blocks = 2500 // more than one question to the index finds
		puts := []writing{d.write(sbd("hub"), `{}`)}
		for i := range blocks {
			puts = append(puts, d.write(eb(fmt.Sprintf("eb-%04d", i)), `{"sbd_ref":"hub"}`))
		}
		must.Get(d.store.Put(d.ctx, puts))(t)
		nodes, err := provenance.New(d.engine).Below(d.ctx, sbd("hub"))
		if err != nil || len(nodes) != 1+blocks {
			t.Fatalf("%d entities are reached, error %v", len(nodes), err)
		}
	}},
}
