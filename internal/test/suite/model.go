package suite

import (
	"slices"
	"strings"

	"oda"
)

// model is the simplest possible archive: a map, and the rules of the
// specification. It shares no rule with the tested code.
type model struct {
	entities  map[oda.Ref]*entity
	creations map[creationKey]created
	requests  int
	log       []logged
}

// logged is what the log of changes must tell of: a version, a record or a status.
type logged struct {
	change  oda.Change // of one record at most, without a position
	request int        // by which it came about; its changes are in any order
}

type entity struct {
	sent     string // the document, as it was sent
	draft    draft
	metadata oda.Metadata
	list     []numbered
	hasList  bool
	last     int64 // sequence
	keys     map[string]recorded
	past     []moment // every state that there was
	said     saidOf
}

// moment is a state of an entity, as a GET answers it.
type moment struct {
	text string
	info oda.VersionInfo
}

type numbered struct {
	sequence int64
	text     string
}

type recorded struct {
	record string
	answer oda.Receipt
}

type creationKey struct {
	kind oda.Kind
	key  string
}

type created struct {
	ref        oda.Ref
	sent, text string
}

// write is a document that a caller stores.
type write struct {
	ref        oda.Ref
	draft      draft
	claim      oda.Metadata // metadata that the caller read
	user       string
	at         oda.Instant
	keep       bool
	ifMatch    string // an entity tag, or empty
	createOnly bool
}

func newModel() *model {
	return &model{entities: map[oda.Ref]*entity{}, creations: map[creationKey]created{}}
}

// text returns the document of an entity as a reader gets it.
func (m *model) text(ref oda.Ref) string {
	e := m.entities[ref]
	var list []string
	if e.hasList {
		list = []string{}
	}
	for _, r := range e.list {
		list = append(list, r.text)
	}
	return Spliced(ref.Kind, []byte(e.sent), ref.ID, e.metadata, list)
}

// put stores all or none. It returns the answers, or the code of the refusal
// and the pointers of its faults.
func (m *model) put(writes []write) (answers []string, code oda.Code, faults []string) {
	for _, w := range writes {
		stored := m.entities[w.ref]
		switch {
		case w.ifMatch != "" && (stored == nil || stored.metadata.Tag() != w.ifMatch):
			return nil, oda.Precondition, nil
		case w.createOnly && stored != nil:
			return nil, oda.Precondition, nil
		case stored != nil:
			faults = append(faults, differences(w, stored.metadata)...)
		}
	}
	if faults != nil {
		return nil, oda.MetadataMismatch, faults
	}
	m.requests++
	for _, w := range writes {
		m.store(w)
		answers = append(answers, m.text(w.ref))
	}
	return answers, "", nil
}

// differences returns the managed fields in which a claim differs from what is
// stored.
func differences(w write, stored oda.Metadata) (faults []string) {
	for f := range lastModifiedOn + 1 {
		if w.keep && (f == lastModifiedBy || f == lastModifiedOn) {
			continue
		}
		if !w.draft.has(f) || spelled(w.claim, f, 0) != spelled(stored, f, 0) {
			faults = append(faults, "/metadata/"+fields[f])
		}
	}
	return faults
}

func (m *model) store(w write) {
	e := m.entities[w.ref]
	if e == nil {
		e = &entity{keys: map[string]recorded{}, said: saidOf{bodies: map[string]string{}, answers: map[string]oda.Status{}}}
		e.metadata = oda.Metadata{CreatedBy: w.user, CreatedOn: w.at, LastModifiedOn: w.at - 1}
		m.entities[w.ref] = e
	}
	e.draft, e.sent = w.draft, w.draft.sent(w.ref.ID, w.claim)
	e.metadata.Version++
	e.touch(w.user, w.at)
	if !w.keep {
		e.hasList = w.draft.listed()
		e.list, e.last = replaced(e.list, w.draft.records, e.last)
	}
	m.remember(w.ref, 0)
}

// remember keeps a state that there is now. It came about by a record with that
// sequence, or by a version.
func (m *model) remember(ref oda.Ref, sequence int64) {
	e := m.entities[ref]
	m.log = append(m.log, logged{oda.Change{
		Ref: ref, Version: e.metadata.Version, FirstSequence: sequence, LastSequence: sequence,
		By: e.metadata.LastModifiedBy, On: e.metadata.LastModifiedOn,
	}, m.requests})
	now := moment{m.text(ref), oda.VersionInfo{Metadata: e.metadata, Listed: e.hasList, Records: int64(len(e.list))}}
	// The text that is kept is the answer without what the server owns.
	kept := len(now.text)
	for f := range lastModifiedOn + 1 {
		kept -= len(spelled(e.metadata, f, 0))
	}
	if e.hasList {
		kept -= len("[]") + max(0, len(e.list)-1)
		for _, r := range e.list {
			kept -= len(r.text)
		}
		if !e.draft.listed() {
			kept -= len(`,"request_responses":`)
		}
	}
	now.info.Bytes = int64(kept)
	e.past = append(e.past, now)
}

// asOf gives the latest state that is not after an instant, nil where there is
// none.
func (e *entity) asOf(at oda.Instant) *moment {
	var found *moment
	for i := range e.past {
		if e.past[i].info.Metadata.LastModifiedOn <= at {
			found = &e.past[i]
		}
	}
	return found
}

// version gives how a version ended, or is; nil if there is no such version.
func (e *entity) version(version int64) *moment {
	var found *moment
	for i := range e.past {
		if e.past[i].info.Metadata.Version == version {
			found = &e.past[i]
		}
	}
	return found
}

// replaced returns the list of records of a new version. A record that is also
// in the version before keeps its number; each number is used for one record.
func replaced(before []numbered, texts []string, last int64) ([]numbered, int64) {
	before = slices.Clone(before)
	slices.SortFunc(before, func(a, b numbered) int { return int(a.sequence - b.sequence) })
	var list []numbered
	for _, text := range texts {
		i := slices.IndexFunc(before, func(r numbered) bool { return r.text == text })
		if i >= 0 {
			list = append(list, before[i])
			before = slices.Delete(before, i, i+1)
			continue
		}
		last++
		list = append(list, numbered{last, text})
	}
	return list, last
}

func (e *entity) touch(user string, at oda.Instant) {
	e.metadata.LastModifiedBy = user
	e.metadata.LastModifiedOn = max(at, e.metadata.LastModifiedOn+1)
}

// create stores a new entity and returns the entity and the answer; taken
// reports that the identifier is in use.
func (m *model) create(w write, key string) (ref oda.Ref, answer string, taken bool, code oda.Code) {
	sent := w.draft.sent(w.ref.ID, w.claim)
	at := creationKey{w.ref.Kind, key}
	if before, ok := m.creations[at]; ok && key != "" {
		if before.sent != sent {
			return oda.Ref{}, "", false, oda.KeyReused
		}
		return before.ref, before.text, false, ""
	}
	if m.entities[w.ref] != nil {
		return oda.Ref{}, "", true, ""
	}
	m.requests++
	m.store(w)
	answer = m.text(w.ref)
	if key != "" {
		m.creations[at] = created{w.ref, sent, answer}
	}
	return w.ref, answer, false, ""
}

// record adds a record to a block.
func (m *model) record(block, text, key, user string, at oda.Instant) (oda.Receipt, oda.Code) {
	e := m.entities[eb(block)]
	if e == nil {
		return oda.Receipt{}, oda.NotFound
	}
	if before, ok := e.keys[key]; ok && key != "" {
		if before.record != text {
			return oda.Receipt{}, oda.KeyReused
		}
		return before.answer, ""
	}
	e.touch(user, at)
	e.last++
	e.list, e.hasList = append(e.list, numbered{e.last, text}), true
	m.requests++
	m.remember(eb(block), e.last)
	answer := oda.Receipt{Sequence: e.last, Metadata: e.metadata}
	e.keys[key] = recorded{text, answer}
	return answer, ""
}

// list returns what a query lists.
func (m *model) list(q oda.Query) []string {
	places := []oda.Place{}
	for ref, e := range m.entities {
		at := e.metadata.CreatedOn
		if q.Order == oda.ByModification {
			at = e.metadata.LastModifiedOn
		}
		user := e.metadata.CreatedBy
		switch {
		case ref.Kind != q.Kind,
			q.After != nil && at < *q.After,
			q.Before != nil && at > *q.Before,
			q.User != "" && q.Match == oda.UserEquals && user != q.User,
			q.Match == oda.UserStartsWith && !strings.HasPrefix(user, q.User),
			q.Match == oda.UserContains && !strings.Contains(user, q.User),
			q.Start != nil && (at < q.Start.At || at == q.Start.At && ref.ID <= q.Start.ID):
			continue
		}
		places = append(places, oda.Place{At: at, ID: ref.ID})
	}
	return ids(sorted(places))
}
