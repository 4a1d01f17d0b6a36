package suite

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"oda"
)

var properties = []scenario{
	{"random requests are answered as the model answers them", func(t *testing.T, d *desk) {
		round := 0
		rapid.Check(t, func(rt *rapid.T) {
			round++
			m := newMachine(rt, d, round)
			rt.Repeat(map[string]func(*rapid.T){
				"store": m.store, "update": m.update, "update again": m.update, "several": m.several, "create": m.create,
				"record": m.record, "record again": m.record, "batch": m.batch, "get": m.get, "list": m.list, "tick": m.tick,
				"say": m.say, "say again": m.say, "search": m.search,
			})
			m.compareAll(rt)
		})
	}},
}

// machine sends random requests to a store and to the model. All rounds share
// one store, but each has its own identifiers, users, keys and hour.
type machine struct {
	desk   *desk
	model  *model
	round  string
	start  oda.Instant
	now    oda.Instant
	before map[oda.Kind]int64
	claims []oda.Metadata // seen so far, to send when stale
	from   oda.Position   // where the log ended before
}

// invented is metadata that no entity has.
var invented = oda.Metadata{Version: 3, CreatedBy: "x", CreatedOn: 1, LastModifiedBy: "y", LastModifiedOn: 2}

func newMachine(t *rapid.T, d *desk, round int) *machine {
	own := *d
	own.tb = t
	const hour = 3_600_000_000
	start := oda.Instant(1_700_000_000_000_000 + hour*int64(round))
	return &machine{
		desk: &own, model: newModel(), round: fmt.Sprintf("c%d", round), start: start, now: start, before: own.counts(), from: own.end(),
	}
}

// tick moves the clock forward or back; otherwise it stands still.
func (m *machine) tick(t *rapid.T) {
	m.now = max(m.start, m.now+rapid.SampledFrom([]oda.Instant{1, 1, 1000, 1_000_000, -1, -2_000_000}).Draw(t, "tick"))
}

func (m *machine) user(t *rapid.T) string {
	return m.round + ":" + rapid.SampledFrom([]string{"anna", "Anna", `an"n\a`, "ünal", "bob"}).Draw(t, "user")
}

func (m *machine) ref(t *rapid.T) oda.Ref {
	kind := rapid.SampledFrom([]oda.Kind{oda.ExecutionBlock, oda.ExecutionBlock, oda.SBDefinition, oda.Project}).Draw(t, "kind")
	return oda.Ref{Kind: kind, ID: m.round + rapid.SampledFrom([]string{".a", ".b", "-C"}).Draw(t, "id")}
}

// key draws an idempotency key, usually none.
func (m *machine) key(t *rapid.T) string {
	if k := rapid.SampledFrom([]string{"", "", "k1", "k2"}).Draw(t, "key"); k != "" {
		return m.round + k
	}
	return ""
}

// write draws a document for an entity, usually one that matches what is
// stored.
func (m *machine) write(t *rapid.T, ref oda.Ref) write {
	w := write{ref: ref, user: m.user(t), at: m.now}
	stored := m.model.entities[ref]
	if stored == nil {
		w.draft = anyDraft(t, ref.Kind, false, true)
		w.claim = invented
		w.createOnly = rapid.IntRange(0, 5).Draw(t, "create only") == 0
		return w
	}
	w.keep = ref.Kind == oda.ExecutionBlock && rapid.IntRange(0, 3).Draw(t, "keep") == 0
	w.draft = anyDraft(t, ref.Kind, rapid.IntRange(0, 9).Draw(t, "complete") > 0, !w.keep)
	w.claim = stored.metadata
	m.claims = append(m.claims, w.claim)
	switch rapid.IntRange(0, 11).Draw(t, "way") {
	case 0:
		w.claim = rapid.SampledFrom(m.claims).Draw(t, "stale")
	case 1:
		w.claim.Version++
	case 2:
		w.claim.LastModifiedOn--
	case 3:
		w.ifMatch = stored.metadata.Tag()
	case 4:
		w.ifMatch = rapid.SampledFrom(m.claims).Draw(t, "stale").Tag()
	case 5:
		w.createOnly = true
	}
	return w
}

// request turns a write into a Put, as the rules do.
func (m *machine) request(w write) writing {
	text := w.draft.sent(w.ref.ID, w.claim)
	put := writing{Put(Document(m.desk.tb, w.ref.Kind, text), w.ref.ID, w.user, w.at), text}
	if w.keep {
		put.KeepRecords, put.Compare = true, oda.KeptFields
	}
	if w.ifMatch != "" {
		put.Condition = match(w.ifMatch)
	}
	if w.createOnly {
		put.Condition.NoneMatch = &oda.Tags{Any: true}
	}
	return put
}

// put sends writes to the store and to the model.
func (m *machine) put(t *rapid.T, writes []write) {
	var puts []writing
	for _, w := range writes {
		puts = append(puts, m.request(w))
	}
	entities, err := m.desk.store.Put(m.desk.ctx, puts)
	answers, code, faults := m.model.put(writes)
	if code != "" {
		problem := refused(t, err, code)
		if faults != nil {
			same(t, "the list of faults", pointers(problem), faults)
		}
		return
	}
	if err != nil {
		t.Fatalf("the store refused what the model stored: %v", err)
	}
	for i, e := range entities {
		same(t, "the answer", Render(t, e), answers[i])
		same(t, "the metadata", e.Metadata, m.model.entities[writes[i].ref].metadata)
	}
}

func (m *machine) store(t *rapid.T) { m.put(t, []write{m.write(t, m.ref(t))}) }

func (m *machine) update(t *rapid.T) {
	ref := m.ref(t)
	if m.model.entities[ref] == nil {
		t.Skip("not stored yet")
	}
	m.put(t, []write{m.write(t, ref)})
}

func (m *machine) several(t *rapid.T) {
	var writes []write
	for _, ref := range rapid.SliceOfNDistinct(rapid.Custom(m.ref), 2, 4, rapid.ID[oda.Ref]).Draw(t, "refs") {
		w := m.write(t, ref)
		w.keep, w.ifMatch, w.createOnly = false, "", false // which are for one document alone
		if len(writes) > 0 {
			w.user = writes[0].user
		}
		if i := find(w.draft.members, identifier); i != nil {
			i.null = false
		}
		writes = append(writes, w)
	}
	m.put(t, writes)
}

func (m *machine) create(t *rapid.T) {
	w := write{ref: m.ref(t), user: m.user(t), at: m.now, claim: invented}
	w.draft = anyDraft(t, w.ref.Kind, false, true)
	if rapid.Bool().Draw(t, "plain") {
		w.draft = draft{kind: w.ref.Kind} // so that a key is repeated with the same body
	}
	key := m.key(t)
	e, err := m.desk.store.Create(m.desk.ctx, m.request(w), key)
	ref, answer, taken, code := m.model.create(w, key)
	switch {
	case taken:
		if !errors.Is(err, oda.ErrTaken) {
			t.Fatalf("got %v, want ErrTaken", err)
		}
	case code != "":
		refused(t, err, code)
	case err != nil:
		t.Fatalf("the store refused what the model created: %v", err)
	default:
		same(t, "the entity", e.Ref, ref)
		same(t, "the answer", Render(t, e), answer)
	}
}

func (m *machine) record(t *rapid.T) {
	block, text, key, user := m.ref(t).ID, anyRecord(t), m.key(t), m.user(t)
	add := oda.Append{Block: block, By: user, At: m.now, Records: []oda.NewRecord{{Key: key, Text: Record(t, text)}}}
	got, err := m.desk.one(add)
	want, code := m.model.record(block, text, key, user, m.now)
	if code != "" {
		refused(t, err, code)
		return
	}
	if err != nil {
		t.Fatalf("the store refused what the model recorded: %v", err)
	}
	same(t, "the answer", got, want)
}

// batch records several at once. They come without keys: what a known key does
// to the others is shown elsewhere.
func (m *machine) batch(t *rapid.T) {
	block, user := m.ref(t).ID, m.user(t)
	if m.model.entities[eb(block)] == nil {
		t.Skip("not stored yet")
	}
	add := oda.Append{Block: block, By: user, At: m.now}
	var want []oda.Receipt
	for range rapid.IntRange(2, 5).Draw(t, "records") {
		text := anyRecord(t)
		add.Records = append(add.Records, oda.NewRecord{Text: Record(t, text)})
		receipt, _ := m.model.record(block, text, "", user, m.now)
		want = append(want, receipt)
	}
	got, err := m.desk.store.Append(m.desk.ctx, add)
	if err != nil {
		t.Fatalf("the store refused what the model records: %v", err)
	}
	for i := range got {
		if m.desk.engine == nil { // clients are told the sequences only
			want[i].Metadata = oda.Metadata{}
		}
	}
	same(t, "the answer", got, want)
}

func (m *machine) get(t *rapid.T) { m.compare(t, m.ref(t)) }

// compare compares what a reader gets with the model.
func (m *machine) compare(t *rapid.T, ref oda.Ref) {
	e, err := m.desk.store.Get(m.desk.ctx, ref)
	if m.model.entities[ref] == nil {
		refused(t, err, oda.NotFound)
		return
	}
	if err != nil {
		t.Fatalf("get %v: %v", ref, err)
	}
	same(t, "the document", Render(t, e), m.model.text(ref))
	same(t, "the metadata", e.Metadata, m.model.entities[ref].metadata)
}

func (m *machine) list(t *rapid.T) {
	q := oda.Query{Kind: m.ref(t).Kind, Order: oda.ByCreation}
	instant := func(name string) oda.Instant {
		return m.start + oda.Instant(rapid.SampledFrom([]int64{0, 1, 2, 1000, 1_000_000, 2_000_000}).Draw(t, name))
	}
	if rapid.Bool().Draw(t, "by user") {
		q.Match = rapid.SampledFrom([]oda.MatchType{oda.UserEquals, oda.UserStartsWith, oda.UserContains}).Draw(t, "match")
		q.User = m.round + rapid.SampledFrom([]string{":anna", ":", ":a", ":A", ":ü", ":b", `:an"n\a`, `:an"`}).Draw(t, "user")
	} else {
		q.Order = rapid.SampledFrom([]oda.Order{oda.ByCreation, oda.ByModification}).Draw(t, "order")
		after := instant("after")
		q.After = &after
		if rapid.Bool().Draw(t, "bounded") {
			before := instant("before")
			q.Before = &before
		}
	}
	if m.desk.engine != nil && rapid.IntRange(0, 2).Draw(t, "place") == 0 {
		q.Start = &oda.Place{At: instant("place"), ID: m.ref(t).ID}
	}
	page := rapid.IntRange(0, 3).Draw(t, "page")
	same(t, fmt.Sprintf("the listing %+v by %d", q, page), m.desk.pages(q, page, func() {}), m.model.list(q))
}

// compareAll compares every entity and the counts with the model.
func (m *machine) compareAll(t *rapid.T) {
	want := m.before
	for ref := range m.model.entities {
		m.compare(t, ref)
		m.comparePast(t, ref)
		m.compareStatuses(t, ref)
		if m.desk.engine != nil {
			m.desk.mustBeCatalogued(ref)
		}
		want[ref.Kind]++
	}
	same(t, "the count", m.desk.counts(), want)
	m.compareLog(t)
}
