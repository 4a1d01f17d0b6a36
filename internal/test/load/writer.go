package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"oda"
	"oda/client"
)

// Bounds of a writer.
const (
	keyedPause   = 50 * time.Millisecond // before a write with a key is sent again
	haste        = 5 * time.Millisecond
	hastyIn      = 60  // one in this many attempts is given up early
	blockRecords = 300 // about so many writes later, a group begins a new block
)

// group is writers that share entities, and contend for them.
type group struct {
	name   string
	writes atomic.Int64
	recent atomic.Pointer[string] // the block that was recorded into last
}

// block returns the ExecutionBlock that the group records into now.
func (g *group) block() oda.Ref {
	return oda.Ref{Kind: oda.ExecutionBlock, ID: fmt.Sprintf("eb-%s-%d", g.name, g.writes.Add(1)/blockRecords)}
}

// writer makes one write after the other. Those that are answered before the
// next is sent, and those of other writers, are what order is judged by.
type writer struct {
	load   *Load
	client *client.Client
	group  *group
	name   string
	n      int
	known  map[oda.Ref]*known
	faults []error // answers that an archive must not give

	beginning context.Context // while it begins writes, it repeats those with a key
}

// known is the last state of an entity that a writer has seen, the zero value
// if it does not exist.
type known struct {
	Mark     string
	Metadata json.RawMessage
	Records  []json.RawMessage `json:"request_responses"`
}

func newWriter(l *Load, through http.RoundTripper, name string, g *group) (*writer, error) {
	c, err := client.New("http://archive", client.WithUser(name), client.WithRetries(0), client.WithHTTPClient(&http.Client{Transport: through}))
	return &writer{load: l, client: c, group: g, name: name, known: map[oda.Ref]*known{}}, err
}

// run begins writes until beginning ends. The last is finished, unless ctx ends.
func (w *writer) run(ctx, beginning context.Context) {
	w.beginning = beginning
	for beginning.Err() == nil && ctx.Err() == nil {
		w.act(ctx)
		time.Sleep(rand.N(w.load.options.Pace))
	}
}

// act makes one write of any kind.
func (w *writer) act(ctx context.Context) {
	own := func(kind oda.Kind) oda.Ref {
		return oda.Ref{Kind: kind, ID: fmt.Sprintf("%s-%s-%d", kind.Prefix(), w.name, w.n/blockRecords)}
	}
	shared := oda.Ref{Kind: oda.SBDefinition, ID: "sbd-" + w.group.name}
	w.n++
	mark := fmt.Sprintf("%s.%d", w.name, w.n)
	switch dice := rand.N(100); {
	case dice < 5:
		w.look(ctx, shared)
	case dice < 35:
		w.record(ctx, mark, rand.N(2) == 0)
	case dice < 48:
		w.recordBatch(ctx, mark, 2+rand.N(5))
	case dice < 60:
		w.keep(ctx, mark)
	case dice < 70:
		w.store(ctx, mark, own(oda.Project))
	case dice < 80:
		w.store(ctx, mark, shared)
	case dice < 87:
		w.store(ctx, mark, own(oda.ExecutionBlock))
	case dice < 92:
		w.say(ctx, mark, shared)
	case dice < 97:
		w.several(ctx, mark, own(oda.Project), own(oda.SBInstance), own(oda.ExecutionBlock), shared)
	default:
		w.create(ctx, mark)
	}
}

// attempt sends a request once, and sometimes does not wait for the answer.
func attempt[T any](ctx context.Context, w *writer, send func(context.Context) (T, error)) (T, error) {
	limit := w.load.options.Attempt
	if !w.load.options.Patient && rand.N(hastyIn) == 0 {
		limit = rand.N(haste)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return send(ctx)
}

// untilClear sends a request with a key until the answer is clear, or the writer
// stops. A refusal is unclear if an earlier attempt may still take effect.
func untilClear[T any](ctx context.Context, w *writer, send func(context.Context) (T, error)) (T, error) {
	for lost := error(nil); ; lost = client.ErrNoAnswer {
		answer, err := attempt(ctx, w, send)
		if err == nil {
			return answer, nil
		}
		if !unclear(err) || w.beginning.Err() != nil || ctx.Err() != nil {
			return answer, errors.Join(err, lost)
		}
		time.Sleep(rand.N(keyedPause))
	}
}

// unclear reports whether an error does not say if the write was stored.
func unclear(err error) bool {
	return errors.Is(err, client.ErrNoAnswer) || client.Status(err) == http.StatusServiceUnavailable
}

// note notes the answer to a write, and reports whether it was acknowledged.
func (w *writer) note(sent *Write, action string, err error, wrote func() map[Unit]Fact) bool {
	switch {
	case err == nil:
		w.load.acknowledge(sent, action, wrote())
		return true
	case unclear(err) && !w.load.options.Patient:
		w.load.lose()
	case client.Status(err) == http.StatusNotFound, client.Status(err) == http.StatusPreconditionFailed, oda.CodeOf(err) == oda.MetadataMismatch:
		w.load.refuse(sent)
	default:
		w.faults = append(w.faults, fmt.Errorf("%s %s: %w", action, sent.Mark, err))
	}
	return false
}

// record returns a record with a mark.
func (o *Options) record(mark string) []byte {
	if o.Text == "" {
		return fmt.Appendf(nil, `{"request":%q}`, mark)
	}
	return fmt.Appendf(nil, `{"request":%q,"response":{"result":%q}}`, mark, o.Text)
}

// record records into the block of the group, which it stores if it is new.
func (w *writer) record(ctx context.Context, mark string, keyed bool) {
	block := w.group.block()
	method := w.client.Record
	if rand.N(2) == 0 {
		method = w.client.RecordPatch
	}
	sent := w.load.send(mark, w.name, 1)
	send := func(key string) func(context.Context) (oda.Receipt, error) {
		return func(ctx context.Context) (oda.Receipt, error) {
			return method(ctx, block.ID, w.load.options.record(mark), key)
		}
	}
	var receipt oda.Receipt
	var err error
	if keyed {
		receipt, err = untilClear(ctx, w, send(mark))
	} else {
		receipt, err = attempt(ctx, w, send(""))
	}
	w.note(sent, "record", err, func() map[Unit]Fact {
		w.group.recent.Store(&block.ID)
		return map[Unit]Fact{RecordOf(block, receipt.Sequence): {Block: receipt.Metadata.Version, On: receipt.Metadata.LastModifiedOn}}
	})
	if oda.CodeOf(err) == oda.NotFound {
		w.store(ctx, mark+".new", block)
	}
}

// say says a status of the block of the group or of an entity that it shares, sometimes
// late.
func (w *writer) say(ctx context.Context, mark string, ref oda.Ref) {
	if rand.N(2) == 0 {
		ref = w.group.block()
	}
	say := client.NewStatus{Status: mark, Class: oda.ClassRunning, Key: mark}
	if rand.N(3) == 0 {
		say.At = time.Now().Add(-rand.N(time.Second))
	}
	sent := w.load.send(mark, w.name, 1)
	said, err := untilClear(ctx, w, func(ctx context.Context) (oda.Status, error) { return w.client.Say(ctx, ref, say) })
	w.note(sent, "status", err, func() map[Unit]Fact {
		return map[Unit]Fact{StatusOf(ref, said.Sequence): {Block: said.Version, On: said.On}}
	})
}

// recordBatch records several at once.
func (w *writer) recordBatch(ctx context.Context, mark string, n int) {
	block := w.group.block()
	records := make([]oda.NewRecord, n)
	for i := range records {
		each := fmt.Sprintf("%s/%d", mark, i)
		records[i] = oda.NewRecord{Key: each, Text: w.load.options.record(each)}
	}
	sent := w.load.send(mark, w.name, n)
	sequences, err := untilClear(ctx, w, func(ctx context.Context) ([]int64, error) { return w.client.RecordBatch(ctx, block.ID, records) })
	w.note(sent, "record batch", err, func() map[Unit]Fact {
		wrote := make(map[Unit]Fact)
		for _, sequence := range sequences {
			wrote[RecordOf(block, sequence)] = Fact{}
		}
		return wrote
	})
}

// learn reads what the writer has not seen of an entity, and reports whether it
// knows it now.
func (w *writer) learn(ctx context.Context, ref oda.Ref) bool {
	if w.known[ref] != nil {
		return true
	}
	document, err := attempt(ctx, w, func(ctx context.Context) (*client.Document, error) { return w.client.Get(ctx, ref.Kind, ref.ID) })
	switch {
	case err == nil:
		if !w.remember(ref, document.Body) {
			return false
		}
		w.load.see(VersionOf(ref, document.Metadata.Version), w.known[ref].Mark)
		return true
	case oda.CodeOf(err) == oda.NotFound:
		w.known[ref] = &known{}
		return true
	case !unclear(err) || w.load.options.Patient:
		w.faults = append(w.faults, fmt.Errorf("read %s: %w", ref.ID, err))
	}
	return false
}

// look reads an entity, whatever the writer has seen of it.
func (w *writer) look(ctx context.Context, ref oda.Ref) {
	delete(w.known, ref)
	w.learn(ctx, ref)
}

func (w *writer) remember(ref oda.Ref, body []byte) bool {
	var k known
	err := json.Unmarshal(body, &k)
	if err != nil {
		w.faults = append(w.faults, fmt.Errorf("read %s: %w", ref.ID, err))
		return false
	}
	w.known[ref] = &k
	return true
}

// next makes the next version of an entity that the writer knows: of a block,
// with its records and a new one.
func (w *writer) next(mark string, ref oda.Ref) map[string]any {
	k := w.known[ref]
	document := map[string]any{"mark": mark, ref.Kind.IDField(): ref.ID}
	if w.load.options.Text != "" {
		document["text"] = w.load.options.Text
	}
	if len(k.Metadata) > 0 {
		document["metadata"] = k.Metadata
	}
	if ref.Kind == oda.ExecutionBlock {
		document["request_responses"] = append(k.Records, w.load.options.record(mark+listed))
	}
	return document
}

// store stores the next version of an entity, with all of its records.
func (w *writer) store(ctx context.Context, mark string, ref oda.Ref) {
	if w.learn(ctx, ref) {
		w.put(ctx, "store", ref, mark, w.next(mark, ref))
	}
}

// keep stores the next version of the group's block without its records, which
// it keeps.
func (w *writer) keep(ctx context.Context, mark string) {
	block := w.group.block()
	if !w.learn(ctx, block) {
		return
	}
	document := w.next(mark, block)
	delete(document, "request_responses")
	w.put(ctx, "keep", block, mark, document, client.KeepRecords())
}

func (w *writer) put(ctx context.Context, action string, ref oda.Ref, mark string, document map[string]any, options ...client.StoreOption) {
	body, err := json.Marshal(document)
	if err != nil {
		w.faults = append(w.faults, err)
		return
	}
	sent := w.load.send(mark, w.name, 1)
	delete(w.known, ref)
	answer, err := attempt(ctx, w, func(ctx context.Context) (*client.Document, error) {
		return w.client.Store(ctx, ref.Kind, ref.ID, body, options...)
	})
	stored := w.note(sent, action, err, func() map[Unit]Fact {
		return map[Unit]Fact{VersionOf(ref, answer.Metadata.Version): {On: answer.Metadata.LastModifiedOn}}
	})
	if stored {
		w.remember(ref, answer.Body)
	}
}

// several stores the next versions of entities, all or none.
func (w *writer) several(ctx context.Context, mark string, refs ...oda.Ref) {
	request := make(map[string][]any)
	for _, ref := range refs {
		if !w.learn(ctx, ref) {
			return
		}
		request[ref.Kind.Collection()] = append(request[ref.Kind.Collection()], w.next(mark, ref))
	}
	body, err := json.Marshal(request)
	if err != nil {
		w.faults = append(w.faults, err)
		return
	}
	sent := w.load.send(mark, w.name, len(refs))
	for _, ref := range refs {
		delete(w.known, ref)
	}
	answer, err := attempt(ctx, w, func(ctx context.Context) ([]byte, error) { return w.client.StoreSeveral(ctx, body) })
	w.note(sent, "several", err, func() map[Unit]Fact {
		// Each collection has one document.
		var collections map[string][]json.RawMessage
		if err := json.Unmarshal(answer, &collections); err != nil {
			w.faults = append(w.faults, err)
		}
		wrote := make(map[Unit]Fact)
		for _, ref := range refs {
			var document struct {
				Metadata struct {
					Version int64
					On      string `json:"last_modified_on"`
				}
			}
			if list := collections[ref.Kind.Collection()]; len(list) != 1 || json.Unmarshal(list[0], &document) != nil || !w.remember(ref, list[0]) {
				w.faults = append(w.faults, fmt.Errorf("several: the answer lacks %s: %s", ref.ID, answer))
				continue
			}
			on, err := oda.ParseTime(document.Metadata.On)
			if err != nil {
				w.faults = append(w.faults, err)
			}
			wrote[VersionOf(ref, document.Metadata.Version)] = Fact{On: oda.InstantOf(on)}
		}
		return wrote
	})
}

// create stores a new entity under an identifier that the archive chooses.
func (w *writer) create(ctx context.Context, mark string) {
	kind := oda.Kinds[rand.N(len(oda.Kinds))]
	body := fmt.Appendf(nil, `{"mark":%q,"text":"a note has one"}`, mark)
	sent := w.load.send(mark, w.name, 1)
	document, err := untilClear(ctx, w, func(ctx context.Context) (*client.Document, error) {
		if kind == oda.ExecutionBlock {
			return w.client.CreateBlock(ctx, body, mark)
		}
		return w.client.Create(ctx, kind, body, mark)
	})
	w.note(sent, "create", err, func() map[Unit]Fact {
		return map[Unit]Fact{VersionOf(oda.Ref{Kind: kind, ID: document.ID}, 1): {On: document.Metadata.LastModifiedOn}}
	})
}
