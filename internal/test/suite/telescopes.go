package suite

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"oda"
	"oda/archive"
	"oda/internal/test/must"
	"oda/internal/test/proof"
	"oda/summary"
)

// boundTo returns the telescopes of a caller.
func boundTo(names ...string) *oda.Telescopes { return oda.NewTelescopes("editor", names) }

// of returns the member of a document that names its telescope, or none.
func of(telescope string) string {
	if telescope == "" {
		return `"n":1`
	}
	return `"n":1,"telescope":"` + telescope + `"`
}

const (
	absent = "absent" // no document is stored
	none   = ""       // the document has no telescope
)

// beyond is a telescope that is too long to be looked for.
var beyond = strings.Repeat("mid", 1000)

// mayStore is what the specification says about a caller bound to mid and aux.
func mayStore(kind oda.Kind, stored, sent string) bool {
	own := func(telescope string) bool { return telescope == "mid" || telescope == "aux" }
	switch kind {
	case oda.Project, oda.Note:
		return (own(stored) || stored == none || stored == absent) && (own(sent) || sent == none)
	case oda.ExecutionBlock:
		return own(stored) && own(sent) || stored == absent && (own(sent) || sent == none)
	default:
		return (own(stored) || stored == absent) && own(sent)
	}
}

// forms are the ways to store one document.
var forms = []struct {
	name string
	only func(kind oda.Kind, isNew bool) bool
	send func(a *archive.Archive, d *desk, id string, doc *oda.Document, w archive.Write) error
	list bool // the document lists a record
}{
	{name: "alone", send: storeAlone},
	{name: "if it is stored", only: func(_ oda.Kind, isNew bool) bool { return !isNew }, send: func(a *archive.Archive, d *desk, id string, doc *oda.Document, w archive.Write) error {
		w.Condition = oda.Condition{Match: &oda.Tags{Any: true}}
		return storeAlone(a, d, id, doc, w)
	}},
	{name: "if it is new", only: func(_ oda.Kind, isNew bool) bool { return isNew }, send: func(a *archive.Archive, d *desk, id string, doc *oda.Document, w archive.Write) error {
		w.Condition = oda.Condition{NoneMatch: &oda.Tags{Any: true}}
		return storeAlone(a, d, id, doc, w)
	}},
	{name: "with a record", list: true, only: func(kind oda.Kind, _ bool) bool { return kind == oda.ExecutionBlock }, send: storeAlone},
	{name: "keeping the records", only: func(kind oda.Kind, _ bool) bool { return kind == oda.ExecutionBlock }, send: func(a *archive.Archive, d *desk, id string, doc *oda.Document, w archive.Write) error {
		w.KeepRecords = true
		return storeAlone(a, d, id, doc, w)
	}},
	{name: "with others", send: func(a *archive.Archive, d *desk, id string, doc *oda.Document, w archive.Write) error {
		beside := Document(d.tb, oda.SBDefinition, `{"sbd_id":"beside-`+id+`","telescope":"aux"}`)
		_, err := a.StoreAll(d.ctx, []*oda.Document{beside, doc}, w)
		if _, found := d.engine.Get(d.ctx, sbd("beside-"+id)); (found == nil) != (err == nil) {
			d.tb.Fatalf("%s: of two documents one was stored: %v, %v", id, err, found)
		}
		return err
	}},
}

func storeAlone(a *archive.Archive, d *desk, id string, doc *oda.Document, w archive.Write) error {
	_, err := a.Store(d.ctx, id, doc, w)
	return err
}

var telescopes = []scenario{
	{"a bound caller stores only where the stored and the new telescope are theirs", func(t *testing.T, d *desk) {
		a := archive.New(d.engine, &Minter{})
		w := archive.Write{User: "eve", Telescopes: boundTo("mid", "aux")}
		n := 0
		for _, kind := range oda.Kinds {
			for _, stored := range []string{absent, none, "mid", "aux", "low"} {
				for _, sent := range []string{none, "mid", "aux", "low", "Mid", "mi", beyond, `mid\u0000`} {
					for _, form := range forms {
						if form.only != nil && !form.only(kind, stored == absent) {
							continue
						}
						n++
						ref := oda.Ref{Kind: kind, ID: fmt.Sprintf("e%d", n)}
						members := fmt.Sprintf(`"%s":"%s",`, kind.IDField(), ref.ID) + of(sent)
						text, before := "{"+members+"}", ""
						if stored != absent {
							m := d.mustPut(ref, "{"+of(stored)+"}").Metadata
							text, before = document(m, members), d.text(ref)
						}
						if form.list {
							text = text[:len(text)-1] + "," + listing(call("one")) + "}"
						}
						err := form.send(a, d, ref.ID, Document(t, kind, text), w)
						what := fmt.Sprintf("%s: %q over %q, %s", kind, sent, stored, form.name)
						switch may := mayStore(kind, stored, sent); {
						case may && err != nil:
							t.Errorf("%s: %v", what, err)
						case !may && oda.CodeOf(err) != oda.Forbidden:
							t.Errorf("%s: got %v", what, err)
						case !may && stored != absent:
							same(t, what, d.text(ref), before)
						case !may:
							_, err := d.engine.Get(d.ctx, ref)
							refused(t, err, oda.NotFound)
						}
					}
				}
			}
		}
	}},
	{"a bound caller creates only for their telescopes", func(t *testing.T, d *desk) {
		a := archive.New(d.engine, &Minter{})
		for _, kind := range oda.Kinds {
			for _, sent := range []string{none, "mid", "low"} {
				for _, key := range []string{"", "key " + sent} {
					w := archive.Write{User: "eve", Telescopes: boundTo("mid"), Key: key, Received: []byte(sent)}
					for range 2 { // the second time a key is known
						_, err := a.Create(d.ctx, Document(t, kind, "{"+of(sent)+"}"), w)
						if may := mayStore(kind, absent, sent); may && err != nil || !may && oda.CodeOf(err) != oda.Forbidden {
							t.Errorf("%s of %q with the key %q: %v", kind, sent, key, err)
						}
					}
				}
			}
		}
	}},
	{"a bound caller records only into blocks of their telescopes, or of none", func(t *testing.T, d *desk) {
		for i, telescope := range []string{none, "mid", "low"} {
			block := fmt.Sprintf("b%d", i)
			d.mustPut(eb(block), "{"+of(telescope)+"}")
			for n, keys := range [][]string{{""}, {"k"}, {"k"}, {"k", "l", ""}, {"", ""}} {
				var records []oda.NewRecord
				for _, key := range keys {
					records = append(records, d.keyed(key, call("x"+key)))
				}
				add := d.adding(block, records...)
				add.Telescopes = boundTo("mid", "aux")
				_, err := d.engine.Append(d.ctx, add)
				if telescope == "low" {
					refused(t, err, oda.Forbidden)
				} else if err != nil {
					t.Errorf("%d into a block of %q: %v", n, telescope, err)
				}
			}
		}
		same(t, "the records of another telescope", d.records("b2"), []string(nil))
		same(t, "the records of the own telescope", len(d.records("b1")), 6)
		add := d.adding("unknown", d.keyed("", call("one")))
		add.Telescopes = boundTo("mid")
		_, err := d.engine.Append(d.ctx, add)
		refused(t, err, oda.NotFound)
	}},
	{"a retry is refused once the block is of another telescope", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), "{"+of("mid")+"}")
		add := d.adding("b", d.keyed("k", call("one")))
		add.Telescopes = boundTo("mid")
		for range 2 {
			must.Get(d.engine.Append(d.ctx, add))(t)
		}
		d.mustUpdate(eb("b"), of("low")+","+listing(call("one")))
		_, err := d.engine.Append(d.ctx, add)
		refused(t, err, oda.Forbidden)
		add.Telescopes = nil
		must.Get(d.engine.Append(d.ctx, add))(t)
	}},
	{"a bound caller says statuses only of entities of their telescopes, or of none", func(t *testing.T, d *desk) {
		for _, kind := range oda.Kinds {
			for i, telescope := range []string{none, "mid", "low"} {
				ref := oda.Ref{Kind: kind, ID: fmt.Sprint("e", i)}
				d.mustPut(ref, "{"+of(telescope)+"}")
				say := d.saying(ref, "Running")
				say.Telescopes, say.Key = boundTo("mid", "aux"), &oda.Key{Value: "k"}
				for range 2 { // the second time the key is known
					_, err := d.store.Say(d.ctx, say)
					if telescope == "low" {
						refused(t, err, oda.Forbidden)
					} else {
						must.Do(t, err)
					}
				}
				if telescope == "low" {
					same(t, "the status", d.status(ref), unsaid(ref, 1, "", oda.NoClass))
					continue
				}
				d.mustUpdate(ref, of("low"))
				_, err := d.store.Say(d.ctx, say)
				refused(t, err, oda.Forbidden)
				say.Telescopes = nil
				same(t, "the entry", d.mustSay(say).Sequence, int64(1))
			}
		}
		unknown := d.saying(eb("unknown"), "Running")
		unknown.Telescopes = boundTo("mid")
		_, err := d.store.Say(d.ctx, unknown)
		refused(t, err, oda.NotFound)
	}},
	{"whatever races, a bound caller writes only where the telescope is theirs", movingTelescopes},
}

// movingTelescopes moves blocks from one telescope to another while callers with and
// without bounds record into them and store them. The version in an answer tells
// which telescope the block had when the write was accepted.
func movingTelescopes(t *testing.T, d *desk) {
	const blocks, recorders = 3, 12
	each := proof.Rounds(15, 30)
	names := []string{"mid", "low", none}
	created := make([]oda.Metadata, blocks)
	for i := range created {
		created[i] = d.mustPut(eb(fmt.Sprintf("b%d", i)), "{"+of("mid")+","+listing()+"}").Metadata
	}
	bounds := []*oda.Telescopes{nil, boundTo("mid"), boundTo("low"), boundTo("low", "mid"), boundTo("aux")}
	var recording atomic.Int32
	recording.Store(recorders)
	type write struct {
		block   string
		bound   *oda.Telescopes
		version int64
		stored  bool // a new version
	}
	accepted := make([][]write, recorders+blocks+2)
	var mu sync.Mutex
	recorded := make(map[string]bool)
	forbidden, moves := make([]int, len(accepted)), make([]int, len(accepted))
	together(t, len(accepted), func(i int) error {
		if i < recorders {
			defer recording.Add(-1)
			for j := range each {
				block := fmt.Sprintf("b%d", j%blocks)
				add := d.adding(block, d.keyed(fmt.Sprintf("%d-%d", i, j), call(fmt.Sprintf("%d-%d", i, j))), d.keyed("", call(fmt.Sprintf("%d-%d-", i, j))))
				if j%2 == 0 {
					add.Records = add.Records[:1]
				}
				add.Telescopes = bounds[i%len(bounds)]
				for range 1 + j%3/2 { // some are sent again
					receipts, err := d.engine.Append(d.ctx, add)
					switch {
					case err == nil:
						accepted[i] = append(accepted[i], write{block, add.Telescopes, receipts[0].Metadata.Version, false})
						mu.Lock()
						for _, r := range add.Records {
							recorded[string(r.Text)] = true
						}
						mu.Unlock()
					case oda.CodeOf(err) == oda.Forbidden && add.Telescopes != nil:
						forbidden[i]++
					case oda.CodeOf(err) == oda.Overloaded && add.Telescopes != nil: // it moved at each try
					default:
						return err
					}
					if len(add.Records) > 1 {
						break // the record without a key would be stored twice
					}
				}
			}
			return nil
		}
		for n := 0; recording.Load() > 0; n++ {
			nth := i % blocks
			ref := eb(fmt.Sprintf("b%d", nth))
			m := created[nth]
			m.Version = d.mustGet(ref).Metadata.Version
			put := d.keep(ref, document(m, of(names[n%len(names)])))
			if i >= recorders+blocks {
				put = d.keep(ref, document(m, of("mid")))
				put.Telescopes = boundTo("mid")
			}
			e, err := d.send(put)
			switch code := oda.CodeOf(err); {
			case err == nil:
				moves[i]++
				accepted[i] = append(accepted[i], write{ref.ID, put.Telescopes, e.Metadata.Version, true})
			case code == oda.Forbidden && put.Telescopes != nil:
				forbidden[i]++
			case code != oda.MetadataMismatch && code != oda.Overloaded:
				return err
			}
		}
		return nil
	})
	telescopeOf := func(block string, version int64) string {
		found := must.Get(d.engine.Version(d.ctx, eb(block), version))(t)
		s := must.Get(summary.OfEntity(found))(t)
		return s.Telescope
	}
	theirs := func(w write, version int64, orNone bool) {
		telescope := telescopeOf(w.block, version)
		if w.bound == nil || orNone && telescope == none || slices.Contains(w.bound.Names(), telescope) {
			return
		}
		t.Errorf("a caller bound to %v wrote to %s, which was of %q", w.bound.Names(), w.block, telescope)
	}
	refusals := 0
	for i, writes := range accepted {
		refusals += forbidden[i]
		for _, w := range writes {
			theirs(w, w.version, !w.stored)
			if w.stored {
				theirs(w, w.version-1, false)
			}
		}
	}
	if refusals == 0 || slices.Max(moves) == 0 {
		t.Fatalf("%d writes were refused, and the telescopes moved %v times: nothing was tested", refusals, moves)
	}
	// Nothing of a refused request is stored.
	var all []string
	for i := range blocks {
		all = append(all, d.records(fmt.Sprintf("b%d", i))...)
	}
	slices.Sort(all)
	same(t, "the records", all, slices.Sorted(maps.Keys(recorded)))
}
