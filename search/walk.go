package search

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"time"

	"oda"
	"oda/internal/words"
	"oda/progress"
)

// Store is what a Searcher needs of an engine.
type Store interface {
	oda.Reader
	oda.Finder
}

// Searcher answers searches. It is safe for concurrent use.
type Searcher struct {
	store Store
	turns oda.Turns     // for searches that walk
	time  time.Duration // after which a search returns the page as it is
}

// New returns a Searcher for what an engine stores. A walk keeps a processor busy, and
// other requests need some too.
func New(store Store) *Searcher {
	return &Searcher{store: store, turns: oda.NewTurns(max(2, runtime.GOMAXPROCS(0)/2)), time: searchTime}
}

// Page is a page of what a search finds. If the summaries of all items would take much
// memory, Items has only the first ones and More returns the others.
type Page struct {
	Items []oda.Found
	Next  string // the cursor of the next page; empty if there is none

	asked *question
	rest  []oda.Found // the other items, without summaries
	part  int         // how many of them More looks up next
}

// Bounds of a search.
const (
	// fewFound is how many entities an index may leave to be sorted in memory. If
	// it leaves more, a walk in the order of the search soon meets some of them.
	fewFound = 2000

	// searchTime is how long a search looks before it returns the page as it is.
	searchTime = time.Second

	// keptBytes is how many bytes the summaries of a page may take in memory.
	keptBytes = 8 << 20

	// Summaries are looked up in parts, so that they take little memory: few at
	// first, because they may be large, and more once they prove to be small.
	lookedAtFirst, lookedAtOnce = 8, 128
	smallPart                   = 64 << 10

	// How many entities, or bodies, which are large, a walk reads at a time.
	// Between two parts it holds nothing in the database.
	walkPart, bodyPart = 1000, 32
)

// turn waits until the search may walk. The caller must call giveBack.
func (q *question) turn(ctx context.Context) (giveBack func(), err error) {
	return q.turns.Take(ctx, oda.Errorf(oda.Overloaded, "Too many searches at once. Try again shortly, "+
		"or narrow yours down by words, a reference, a position, a user or a range of times."))
}

// Search returns a page of entities. It asks the indexes first and judges what
// they leave itself, so the answer is the same on every engine. If they leave
// too many, Search walks through the entities in order, for a limited time. A
// page that is cut short by time has a next page.
func (s *Searcher) Search(ctx context.Context, what Search) (*Page, error) {
	return s.SearchFirst(ctx, what, what.Limit)
}

// SearchFirst is Search for the first items of a page, at most as many as it may
// have. Its next page begins after them.
func (s *Searcher) SearchFirst(ctx context.Context, what Search, most int) (*Page, error) {
	where, err := parseAllWhere(what.Where)
	if err != nil {
		return nil, err
	}
	q := &question{what, s, words.Of(what.Words), oda.FoldStatus(what.Status), where}
	j, err := q.answer(ctx, most)
	if err != nil {
		return &Page{Next: j.next()}, err
	}
	page := &Page{Items: j.items.found, Next: j.next(), asked: q}
	if j.items.bare && q.Fields == Summaries {
		page.Items, page.rest = nil, page.Items
		for bytes := 0; bytes < keptBytes && len(page.rest) > 0; {
			more, err := page.More(ctx)
			if err != nil {
				return nil, err
			}
			bytes += sizeOf(more)
			page.Items = append(page.Items, more...)
		}
	}
	return page, nil
}

// answer judges entities until the page has most of them.
func (q *question) answer(ctx context.Context, most int) (*judge, error) {
	j := q.newJudge(most)
	if done, err := j.glance(ctx); done || err != nil {
		return j, err
	}
	j = q.newJudge(most)
	places, complete, err := q.few(ctx)
	switch {
	case err != nil:
		return j, err
	case complete:
		return j, j.judgeFew(ctx, places)
	}
	return j, j.walk(ctx)
}

func (q *question) newJudge(most int) *judge {
	return &judge{question: q, most: most, late: time.Now().Add(q.time), items: kept{bare: q.Fields != Summaries}}
}

// glance looks for words in the first entities in order, twice as many as the page
// has, and is done if that fills the page or if there are no more. An index would
// first gather all entities that have a word, which takes long if most have it.
func (j *judge) glance(ctx context.Context) (done bool, err error) {
	if len(j.words) == 0 || j.Reference != "" || j.Cone != nil || len(j.where) > 0 || j.Unobserved || 2*(j.Limit+1) > walkPart {
		return false, nil
	}
	w := j.along(j.Sort)
	w.Behind, w.Limit = j.Start, 2*(j.Limit+1)
	n, err := j.judgeWalk(ctx, w)
	if errors.Is(err, errEnded) {
		return true, nil
	}
	return n < w.Limit, err
}

// More returns the next items of a page, none at its end.
func (p *Page) More(ctx context.Context) ([]oda.Found, error) {
	var items []oda.Found
	for len(items) == 0 && len(p.rest) > 0 {
		part := p.rest[:min(max(p.part, lookedAtFirst), len(p.rest))]
		p.rest = p.rest[len(part):]
		refs := make([]oda.Ref, len(part))
		for i := range part {
			refs[i] = part[i].Ref
		}
		looked, err := p.asked.store.Look(ctx, refs)
		if err != nil {
			return nil, err
		}
		for i, f := range part {
			if looked[i] != nil && looked[i].Damage != nil {
				return nil, looked[i].Damage
			}
			if looked[i] != nil && looked[i].Metadata == f.Metadata {
				if looked[i].Standing == f.Standing || p.asked.matches(looked[i]) {
					items = append(items, *looked[i])
				}
				continue
			}
			// It has changed since, so it is judged again.
			e, err := p.Document(ctx, &f)
			if err != nil {
				return nil, err
			}
			if e != nil {
				items = append(items, f)
			}
		}
		p.part = nextPart(len(part), sizeOf(items))
	}
	return items, nil
}

// Document returns the document of an item. If the entity has changed since it was
// found, Document judges it again, and returns nil if it no longer matches.
func (p *Page) Document(ctx context.Context, f *oda.Found) (*oda.Entity, error) {
	return p.asked.document(ctx, f)
}

func sizeOf(found []oda.Found) (bytes int) {
	for i := range found {
		bytes += found[i].Summary.Size()
	}
	return bytes
}

// kept holds entities, with their summaries while these take little memory.
type kept struct {
	found []oda.Found
	bytes int
	bare  bool // without summaries
}

func (k *kept) add(f *oda.Found) {
	if !k.bare {
		if k.bytes += f.Summary.Size(); k.bytes > keptBytes {
			k.bare = true
			for i := range k.found {
				k.found[i].Summary = oda.Summary{}
			}
		}
	}
	one := *f
	if k.bare {
		one.Summary = oda.Summary{}
	}
	k.found = append(k.found, one)
}

// few asks those indexes that a walk in the order of the search would not use. It
// returns the places, in that order, of the entities that they leave. It is complete
// if one of them leaves few.
func (q *question) few(ctx context.Context) (places []oda.Place, complete bool, err error) {
	if clauses := q.clauses(); clauses != nil {
		question := oda.Question{Kind: q.Kind, Clauses: clauses, Sort: q.Sort, Most: fewFound}
		if places, complete, err = q.store.Candidates(ctx, question); complete || err != nil {
			return places, complete, err
		}
	}
	if days := oda.DayTerms(q.From, q.To); days != nil {
		if places, complete, err = q.during(ctx, days); complete || err != nil {
			return places, complete, err
		}
	}
	for _, w := range q.detours() {
		w.Limit = fewFound + 1
		if places, err = q.store.Places(ctx, w, q.Sort); len(places) <= fewFound || err != nil {
			return places, err == nil, err
		}
	}
	return nil, false, nil
}

// during returns the places of notes that may be about a part of the range: those that say
// so, and those that were created then.
func (q *question) during(ctx context.Context, days []string) (places []oda.Place, complete bool, err error) {
	places, complete, err = q.store.Candidates(ctx, oda.Question{Kind: q.Kind, Clauses: []oda.Clause{{Any: days}}, Sort: q.Sort, Most: fewFound})
	if err != nil || !complete {
		return nil, false, err
	}
	created, err := q.store.Places(ctx, oda.Walk{Kind: q.Kind, Sort: oda.OldestFirst, Bounds: oda.Span{After: q.From, Before: q.To}, Limit: fewFound + 1}, q.Sort)
	if err != nil || len(created) > fewFound {
		return nil, false, err
	}
	found := make(map[string]bool, len(places))
	for _, p := range places {
		found[p.ID] = true
	}
	return append(places, slices.DeleteFunc(created, func(p oda.Place) bool { return found[p.ID] })...), true, nil
}

// along returns a walk in an order, with the filters that its index can apply.
func (q *question) along(order oda.Sort) oda.Walk {
	w := oda.Walk{Kind: q.Kind, Sort: order}
	switch {
	case order.ByModification():
		w.Bounds = q.Modified
	case order.ByCreation():
		w.Bounds = q.Created
		switch {
		case q.User != "" && q.Match == oda.UserEquals:
			w.User = q.User
		case q.status != "":
			w.Status = q.status
		case q.Class != oda.NoClass:
			w.Class = q.Class
		default:
			w.Telescope = q.Telescope
		}
	}
	return w
}

// detours returns walks along those indexes that a walk in the order of the
// search would not use.
func (q *question) detours() []oda.Walk {
	var list []oda.Walk
	byCreation, byModification := q.along(oda.OldestFirst), q.along(oda.LastModifiedLast)
	isNarrow := byCreation.Bounds != (oda.Span{}) || byCreation.User != "" || byCreation.Status != "" || byCreation.Class != oda.NoClass || byCreation.Telescope != ""
	if isNarrow && !q.Sort.ByCreation() {
		list = append(list, byCreation)
	}
	if byCreation.User != "" && q.status != "" {
		list = append(list, oda.Walk{Kind: q.Kind, Sort: oda.OldestFirst, Bounds: q.Created, Status: q.status})
	}
	if byCreation.Class == oda.NoClass && q.Class != oda.NoClass {
		list = append(list, oda.Walk{Kind: q.Kind, Sort: oda.OldestFirst, Bounds: q.Created, Class: q.Class})
	}
	if byModification.Bounds != (oda.Span{}) && !q.Sort.ByModification() {
		list = append(list, byModification)
	}
	return list
}

// judgeFew judges the entities that an index has left, in the order of the search,
// until the page is full. It looks up their summaries as it goes, since a page needs
// only the first few of a thousand entities.
func (j *judge) judgeFew(ctx context.Context, places []oda.Place) error {
	if j.Start != nil {
		places = slices.DeleteFunc(places, func(p oda.Place) bool { return j.Sort.Compare(p, *j.Start) <= 0 })
	}
	slices.SortFunc(places, j.Sort.Compare)
	if len(j.where) > 0 || j.Unobserved {
		giveBack, err := j.turn(ctx)
		if err != nil {
			return err
		}
		defer giveBack()
	}
	size := lookedAtFirst
	for len(places) > 0 {
		part := places[:min(size, max(2*(j.Limit+1-len(j.items.found)), lookedAtFirst), len(places))]
		places = places[len(part):]
		found, err := j.look(ctx, part)
		if err != nil {
			return err
		}
		if err := j.judgeFound(ctx, part, found); err != nil {
			if errors.Is(err, errEnded) {
				return nil
			}
			return err
		}
		bytes := 0
		for _, f := range found {
			if f != nil {
				bytes += f.Summary.Size()
			}
		}
		size = nextPart(len(part), bytes)
	}
	return nil
}

// judgeFound judges entities that were found at some places, in order. One that is nil is
// no longer there.
func (j *judge) judgeFound(ctx context.Context, places []oda.Place, found []*oda.Found) error {
	observed, err := j.observed(ctx, found)
	if err != nil {
		return err
	}
	for i, f := range found {
		if f == nil {
			continue
		}
		err := j.see(places[i], f, func() (bool, error) {
			if observed[f.ID] || len(j.where) == 0 {
				return !observed[f.ID], nil
			}
			e, err := j.document(oda.WithRoom(ctx, nil), f) // so many at once as there are turns
			if e == nil || err != nil {
				return false, err
			}
			text, err := e.WithoutRecords()
			return err == nil && j.holdsOf(text), err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// observed returns those that were observed, if the search asks for that. It does not ask
// about those that do not match otherwise.
func (q *question) observed(ctx context.Context, found []*oda.Found) (map[string]bool, error) {
	var ids []string
	for _, f := range found {
		if q.Unobserved && f != nil && f.Damage == nil && q.matches(f) {
			ids = append(ids, f.ID)
		}
	}
	if ids == nil {
		return nil, nil
	}
	return progress.Observed(ctx, q.store, ids)
}

// look looks up the entities at some places.
func (q *question) look(ctx context.Context, places []oda.Place) ([]*oda.Found, error) {
	refs := make([]oda.Ref, len(places))
	for i, p := range places {
		refs[i] = oda.Ref{Kind: q.Kind, ID: p.ID}
	}
	return q.store.Look(ctx, refs)
}

// nextPart returns how many summaries to look up after a part of n, which took so
// many bytes.
func nextPart(n, bytes int) int {
	if bytes < smallPart {
		return min(4*n, lookedAtOnce)
	}
	return lookedAtFirst
}

// walk judges entities in the order of the search. The first part of the walk is
// often enough, so it waits for a turn only before the second.
func (j *judge) walk(ctx context.Context) error {
	w := j.along(j.Sort)
	w.Behind, w.Bodies = j.Start, len(j.where) > 0
	most, judge := walkPart, j.judgeWalk
	switch {
	case j.Unobserved:
		most, judge, w.Bodies = bodyPart, j.judgeAfter, false
	case w.Bodies:
		most = bodyPart
	}
	w.Limit = min(j.Limit+1, most)
	for turns := false; ; {
		n, err := judge(ctx, w)
		if err != nil || n < w.Limit {
			if errors.Is(err, errEnded) {
				err = nil
			}
			return err
		}
		if !turns {
			giveBack, err := j.turn(ctx)
			if err != nil {
				return err
			}
			defer giveBack()
			turns = true
		}
		w.Behind, w.Limit = j.last, most
	}
}

// judgeWalk judges the entities of a walk, and returns how many there were.
func (j *judge) judgeWalk(ctx context.Context, w oda.Walk) (n int, err error) {
	err = j.store.Walk(ctx, w, func(f *oda.Found, body oda.Body) error {
		n++
		return j.see(j.Sort.Place(f), f, func() (bool, error) {
			text, err := body.WithoutRecords(f.Metadata)
			return err == nil && j.holdsOf(text), err
		})
	})
	return n, err
}

// judgeAfter is judgeWalk for what can be judged only after the walk: it takes further
// questions to the store.
func (j *judge) judgeAfter(ctx context.Context, w oda.Walk) (int, error) {
	var places []oda.Place
	var found []*oda.Found
	err := j.store.Walk(ctx, w, func(f *oda.Found, _ oda.Body) error {
		one := *f
		places, found = append(places, j.Sort.Place(f)), append(found, &one)
		return nil
	})
	if err != nil {
		return 0, err
	}
	return len(found), j.judgeFound(ctx, places, found)
}

// document returns the document of an entity that was found. If the entity has
// changed since, document judges it again, and returns nil if it no longer matches.
func (q *question) document(ctx context.Context, f *oda.Found) (*oda.Entity, error) {
	e, err := q.store.Get(ctx, f.Ref)
	if err != nil || e.Metadata == f.Metadata {
		return e, err
	}
	looked, err := q.store.Look(ctx, []oda.Ref{f.Ref})
	if err != nil || looked[0] == nil {
		return nil, err
	}
	if looked[0].Damage != nil {
		return nil, looked[0].Damage
	}
	*f = *looked[0]
	f.Metadata = e.Metadata
	text, err := e.WithoutRecords()
	if err != nil || !q.matches(f) || !q.holdsOf(text) {
		return nil, err
	}
	if observed, err := q.observed(ctx, looked); err != nil || observed[f.ID] {
		return nil, err
	}
	return e, nil
}
