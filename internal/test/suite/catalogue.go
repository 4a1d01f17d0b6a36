package suite

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"oda"
	"oda/internal/test/must"
	"oda/summary"
)

// look gives an entity as search sees it, nil if it is unknown.
func (d *desk) look(ref oda.Ref) *oda.Found {
	d.tb.Helper()
	found, err := d.engine.Look(d.ctx, []oda.Ref{ref})
	if err != nil {
		d.tb.Fatalf("look at %s: %v", ref.ID, err)
	}
	return found[0]
}

// mustBeCatalogued holds what search sees of an entity against its current
// document: the metadata, the summary, and that it is found by all of its terms.
func (d *desk) mustBeCatalogued(ref oda.Ref) {
	d.tb.Helper()
	e, found := d.mustGet(ref), d.look(ref)
	if found == nil {
		d.tb.Fatalf("%s %s is stored, but not in the catalogue", ref.Kind, ref.ID)
	}
	x, err := summary.OfBody(ref.Kind, oda.Body{Text: []byte(Render(d.tb, e))})
	if err != nil {
		d.tb.Fatalf("%v", err)
	}
	same(d.tb, "what search sees of "+ref.ID, *found, oda.Found{Ref: ref, Metadata: e.Metadata, Summary: *x.Summary(), Standing: d.stands(ref)})
	var clauses []oda.Clause
	for _, term := range x.Summary().Terms(ref) {
		clauses = append(clauses, oda.Clause{Any: []string{"0no-such-term", term}})
	}
	if got := d.candidates(ref.Kind, clauses...); !slices.Contains(got, ref.ID) {
		d.tb.Fatalf("%s is not found by its terms, but %v", ref.ID, got)
	}
}

// candidates gives the identifiers that the index gives for clauses.
func (d *desk) candidates(kind oda.Kind, clauses ...oda.Clause) []string {
	d.tb.Helper()
	ids := []string{}
	places, complete, err := d.engine.Candidates(d.ctx, oda.Question{Kind: kind, Clauses: clauses, Most: 1000})
	for _, place := range places {
		ids = append(ids, place.ID)
	}
	if err != nil || !complete {
		d.tb.Fatalf("candidates for %v: %v, complete: %t", clauses, err, complete)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func anyOf(terms ...string) oda.Clause { return oda.Clause{Any: terms} }
func begin(terms ...string) oda.Clause { return oda.Clause{Any: terms, Prefix: true} }

var catalogue = []scenario{
	{"search sees the current version, however it was stored", func(t *testing.T, d *desk) {
		d.mustPut(sbd("s"), `{"name":"First light","telescope":"ska_mid"}`)
		d.mustBeCatalogued(sbd("s"))
		d.mustUpdate(sbd("s"), `"name":"First light","telescope":"ska_mid","n":2`)
		d.mustBeCatalogued(sbd("s"))
		d.mustUpdate(sbd("s"), `"name":"Second light","telescope":"ska_low","targets":[{"ra":1,"dec":2}]`)
		d.mustBeCatalogued(sbd("s"))
		d.mustUpdate(sbd("s"), `"n":3`)
		same(t, "the summary of a document without anything", d.look(sbd("s")).Summary, oda.Summary{})

		must.Get(d.store.Create(d.ctx, d.write(eb("b"), `{"sbd_ref":"s","sbd_version":2,"request_responses":[{"request":"x","name":"no"}]}`), "k"))(t)
		d.mustBeCatalogued(eb("b"))
		d.mustRecord("b", `{"request":"y","sbd_ref":"no"}`)
		d.mustBeCatalogued(eb("b"))
		must.Get(d.send(d.keep(eb("b"), document(d.mustGet(eb("b")).Metadata, `"sbd_ref":"s","sbd_version":3,"name":"kept"`))))(t)
		d.mustBeCatalogued(eb("b"))
		conditional := d.write(eb("b"), document(d.mustGet(eb("b")).Metadata, `"name":"conditional"`))
		conditional.Condition = match(d.mustGet(eb("b")).Metadata.Tag())
		must.Get(d.send(conditional))(t)
		d.mustBeCatalogued(eb("b"))

		several := []writing{
			d.write(sbd("s"), document(d.mustGet(sbd("s")).Metadata, `"name":"of several"`)),
			d.write(eb("b"), document(d.mustGet(eb("b")).Metadata, listing(`{"request":"z"}`)+`,"name":"of several too"`)),
			d.write(oda.Ref{Kind: oda.Project, ID: "p"}, `{"obs_blocks":[{"obs_block_id":"ob-1","sbd_ids":["s"]}]}`),
		}
		must.Get(d.store.Put(d.ctx, several))(t)
		for _, put := range several {
			d.mustBeCatalogued(put.Ref)
		}
	}},
	{"search sees where a reference stands, also if nothing else has changed", func(t *testing.T, d *desk) {
		d.mustPut(prj("p"), `{"obs_programmes":[{"sbd_ids":["sbd-1"]}]}`)
		d.mustUpdate(prj("p"), `"obs_blocks":[{"sbd_ids":["sbd-1"]}]`)
		d.mustBeCatalogued(prj("p"))
	}},
	{"a store that is refused leaves the catalogue as it was", func(t *testing.T, d *desk) {
		m := d.mustPut(sbd("s"), `{"name":"a"}`).Metadata
		d.mustUpdate(sbd("s"), `"name":"b"`)
		_, err := d.put(sbd("s"), document(m, `"name":"c"`))
		refused(t, err, oda.MetadataMismatch)
		_, err = d.store.Put(d.ctx, []writing{d.write(sbd("other"), `{"name":"d"}`), d.write(sbd("s"), document(m, `"name":"e"`))})
		refused(t, err, oda.MetadataMismatch)
		d.mustBeCatalogued(sbd("s"))
		if d.look(sbd("other")) != nil || len(d.candidates(oda.SBDefinition, anyOf("1wd"))) > 0 {
			t.Fatal("what was refused is in the catalogue")
		}
	}},
	{"the index finds by words, beginnings, references and versions of them", func(t *testing.T, d *desk) {
		for i := range 20 {
			d.mustPut(eb(fmt.Sprint("eb-", i)), fmt.Sprintf(`{"sbd_ref":"sbd-%d","sbd_version":%d,"sbi_ref":"not an id %d","name":"scan %d of M83"}`, i%3, i%2+1, i, i))
		}
		d.mustPut(sbd("sbd-1"), `{"name":"scan 7"}`)
		same(t, "those with two words", d.candidates(oda.ExecutionBlock, anyOf("3wscan"), anyOf("3w7")), []string{"eb-7"})
		same(t, "those of the other kind", d.candidates(oda.SBDefinition, anyOf("1wscan")), []string{"sbd-1"})
		same(t, "those with a word that begins so", len(d.candidates(oda.ExecutionBlock, begin("3wm8"))), 20)
		same(t, "those with one or the other", d.candidates(oda.ExecutionBlock, anyOf("3w3", "3w5"), begin("3wsc")), []string{"eb-3", "eb-5"})
		same(t, "those that refer to a version", d.candidates(oda.ExecutionBlock, anyOf("3vsbd-1@2")), []string{"eb-1", "eb-13", "eb-19", "eb-7"})
		same(t, "those that refer to another", d.candidates(oda.ExecutionBlock, anyOf("3rsbd-9")), []string{})
		same(t, "those with a word of their identifier", d.candidates(oda.ExecutionBlock, anyOf("3w13"), anyOf("3web")), []string{"eb-13"})
		same(t, "those with none of no terms", d.candidates(oda.ExecutionBlock, anyOf()), []string{})
		places, complete, err := d.engine.Candidates(d.ctx, oda.Question{Kind: oda.ExecutionBlock, Clauses: []oda.Clause{anyOf("3wscan")}, Most: 5})
		if err != nil || complete || len(places) != 5 {
			t.Fatalf("of 20 there are %d, complete: %t, %v", len(places), complete, err)
		}
		many := make([]string, 600)
		for i := range many {
			many[i] = fmt.Sprint("3w", i)
		}
		same(t, "those with one of many", len(d.candidates(oda.ExecutionBlock, anyOf(many...))), 20)
	}},
	{"an entity that changes is found as it is at once", func(t *testing.T, d *desk) {
		d.mustPut(sbd("s"), `{"name":"w0"}`)
		for i := range 30 {
			d.mustUpdate(sbd("s"), fmt.Sprintf(`"name":"w%d"`, i+1))
			if got := d.candidates(oda.SBDefinition, anyOf(fmt.Sprint("1ww", i+1))); !slices.Equal(got, []string{"s"}) {
				t.Fatalf("after change %d the index gives %v", i, got)
			}
		}
		d.mustBeCatalogued(sbd("s"))
	}},
	{"of updates that race, the catalogue has the summary of the one that is stored", func(t *testing.T, d *desk) {
		for round := range 10 {
			ref := sbd(fmt.Sprint("s", round))
			m := d.mustPut(ref, `{"name":"before"}`).Metadata
			var writers sync.WaitGroup
			stored := make([]error, 4)
			for i := range stored {
				put := d.as(fmt.Sprint("user ", i)).write(ref, document(m, fmt.Sprintf(`"name":"by %d","ob_ref":"ob-%d"`, i, i)))
				writers.Go(func() { _, stored[i] = d.send(put) })
			}
			writers.Wait()
			done := 0
			for _, err := range stored {
				if err == nil {
					done++
				}
			}
			same(t, "how many were stored", done, 1)
			d.mustBeCatalogued(ref)
		}
	}},
}
