package suite

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"oda"
)

var histories = []scenario{
	{"what many callers see at once is one history of each entity", func(t *testing.T, d *desk) {
		for seed := range uint64(4) {
			h := &history{desk: d, blocks: []oda.Ref{eb(fmt.Sprintf("a%d", seed)), eb(fmt.Sprintf("b%d", seed))}}
			together(t, 6, func(i int) error { return h.caller(rand.New(rand.NewPCG(seed, uint64(i))), fmt.Sprintf("u%d", i)) })
			for _, ref := range h.blocks {
				h.judge(t, ref)
			}
		}
	}},
}

// history gathers what callers did and saw, with the order in which requests
// began and ended.
type history struct {
	desk   *desk
	blocks []oda.Ref
	stamp  atomic.Int64

	mu     sync.Mutex
	events []event
}

// event is one request that was answered: a write, a record or a reading.
type event struct {
	ref        oda.Ref
	begin, end int64
	metadata   oda.Metadata // of the entity then
	text       string       // of the document, but for a record

	write    *write
	record   string
	sequence int64
}

// happened notes an event that began at that stamp.
func (h *history) happened(e event) {
	e.end = h.stamp.Add(1)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

// plain is a document with all managed fields, and records if there are any.
func plain(number int, records []string) draft {
	d := draft{kind: oda.ExecutionBlock, records: records, members: []member{
		{role: other, key: `"n"`, value: fmt.Sprint(number)},
		{role: metadata, key: `"metadata"`},
	}}
	for f := range lastModifiedOn + 1 {
		d.members[1].inner = append(d.members[1].inner, member{role: f, key: `"` + fields[f] + `"`})
	}
	if records != nil {
		d.members = append(d.members, member{role: requestResponses, key: `"request_responses"`})
	}
	return d
}

// caller reads, stores, changes and records, often from an old reading.
func (h *history) caller(random *rand.Rand, user string) error {
	seen := map[oda.Ref]oda.Metadata{}
	for range 50 {
		ref := h.blocks[random.IntN(len(h.blocks))]
		e := event{ref: ref, begin: h.stamp.Add(1)}
		var err error
		switch choice := random.IntN(10); {
		case choice < 3 || seen[ref].Version == 0 && choice > 7:
			err = h.read(&e)
		case choice < 6:
			err = h.recordOne(&e, user, call(fmt.Sprint(random.IntN(5))))
		default:
			w := &write{ref: ref, claim: seen[ref], user: user, at: h.desk.clock.Now(), keep: choice > 7}
			var records []string
			if !w.keep && random.IntN(2) == 0 {
				records = calls("0", "1", fmt.Sprint(random.IntN(5)))
			}
			w.draft = plain(random.IntN(100), records)
			if w.claim.Version == 0 {
				w.claim = invented
			}
			e.write = w
			err = h.put(&e)
		}
		switch oda.CodeOf(err) {
		case "":
			seen[ref] = e.metadata
			h.happened(e)
		case oda.NotFound, oda.MetadataMismatch: // nobody has stored it yet, or somebody else was faster
		default:
			return err
		}
	}
	return nil
}

func (h *history) read(e *event) error {
	found, err := h.desk.store.Get(h.desk.ctx, e.ref)
	if err != nil {
		return err
	}
	e.metadata, e.text = found.Metadata, Render(h.desk.tb, found)
	return nil
}

func (h *history) recordOne(e *event, user, text string) error {
	r, err := h.desk.as(user).record(e.ref.ID, text)
	e.metadata, e.record, e.sequence = r.Metadata, text, r.Sequence
	return err
}

func (h *history) put(e *event) error {
	w := e.write
	m := machine{desk: h.desk}
	stored, err := h.desk.send(m.request(*w))
	if err != nil {
		return err
	}
	e.metadata, e.text = stored.Metadata, Render(h.desk.tb, stored)
	return nil
}

// judge demands that there is one order of the requests in which the model
// gives the same answers, and that no request stands before one that had ended
// when it began. The order can only be that of last_modified_on, a reading
// behind the change that it saw.
func (h *history) judge(t *testing.T, ref oda.Ref) {
	t.Helper()
	var events []event
	for _, e := range h.events {
		if e.ref == ref {
			events = append(events, e)
		}
	}
	isRead := func(e event) int {
		if e.write == nil && e.record == "" {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(events, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.metadata.LastModifiedOn, b.metadata.LastModifiedOn), isRead(a)-isRead(b), cmp.Compare(a.begin, b.begin))
	})
	m := newModel()
	var latest int64 // begin of any event so far
	for i, e := range events {
		if e.end < latest {
			t.Fatalf("event %d had ended before an event began that must stand before it: %+v", i, e)
		}
		latest = max(latest, e.begin)
		switch {
		case e.write != nil:
			answers, code, faults := m.put([]write{*e.write})
			if code != "" {
				t.Fatalf("event %d was accepted, and should be refused as %s (%v): %+v", i, code, faults, e)
			}
			same(t, "the answer", e.text, answers[0])
		case e.record != "":
			want, _ := m.record(ref.ID, e.record, "", e.metadata.LastModifiedBy, e.metadata.LastModifiedOn)
			same(t, "the answer", oda.Receipt{Sequence: e.sequence, Metadata: e.metadata}, want)
		default:
			if m.entities[ref] == nil {
				t.Fatalf("event %d read what nobody had stored: %+v", i, e)
			}
			same(t, "the document", e.text, m.text(ref))
		}
		same(t, "the metadata", m.entities[ref].metadata, e.metadata)
	}
	same(t, "the document in the end", h.desk.text(ref), m.text(ref))
}
