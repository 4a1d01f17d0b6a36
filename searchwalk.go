package oda

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"time"
)

// Walk asks an engine for entities in an order. It has only filters that the
// index of that order can apply, so that every entity costs the same to read.
// The engine applies them all; the search judges the other filters.
type Walk struct {
	Kind      Kind
	Sort      Sort
	Bounds    Span   // of the instant by which the walk is sorted
	User      string // created_by; only if sorted by creation
	Telescope string // only if sorted by creation and without a user
	Behind    *Place // after which the walk begins
	Limit     int
	Bare      bool // without summaries
	Bodies    bool // with version bodies
}

// Range returns the places between which an engine reads its index; it leaves
// both of them out. An empty identifier sorts before all others, beyondIDs after
// all others.
func (w Walk) Range() (low, top Place) {
	low, top = Place{At: math.MinInt64}, Place{At: math.MaxInt64, ID: beyondIDs}
	if w.Bounds.After != nil {
		low = Place{At: *w.Bounds.After}
	}
	if w.Bounds.Before != nil {
		top = Place{At: *w.Bounds.Before, ID: beyondIDs}
	}
	if w.Behind != nil && w.Sort.Descends() && w.Behind.Compare(top) < 0 {
		top = *w.Behind
	}
	if w.Behind != nil && !w.Sort.Descends() && w.Behind.Compare(low) > 0 {
		low = *w.Behind
	}
	return low, top
}

// beyondIDs sorts after every valid identifier.
const beyondIDs = "~"

// SearchPage is a page of what a search finds. If the summaries of all items
// would take much memory, Items has only the first ones and More returns the
// others.
type SearchPage struct {
	Items []Found
	Next  string // the cursor of the next page; empty if there is none

	rest []Found // the other items, without summaries
	part int     // how many of them More looks up next
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

// searchTurns returns how many searches may walk through the archive at once. A
// walk keeps a processor busy, and other requests need some too.
func searchTurns() int { return max(2, runtime.GOMAXPROCS(0)/2) }

// turn waits until the search may walk. The caller must call giveBack.
func (a *Archive) turn(ctx context.Context) (giveBack func(), err error) {
	return a.searches.Take(ctx, Errorf(Overloaded, "Too many searches at once. Try again shortly, "+
		"or narrow yours down by words, a reference, a position, a user or a range of times."))
}

// Search returns a page of entities. It asks the indexes first and judges what
// they leave itself, so the answer is the same on every engine. If they leave
// too many, Search walks through the entities in order, for a limited time. A
// page that is cut short by time has a next page.
func (a *Archive) Search(ctx context.Context, q *Search) (*SearchPage, error) {
	return a.SearchFirst(ctx, q, q.Limit)
}

// SearchFirst is Search for the first items of a page, at most as many as it may
// have. Its next page begins after them.
func (a *Archive) SearchFirst(ctx context.Context, q *Search, most int) (*SearchPage, error) {
	j, done, err := a.glance(ctx, q, most)
	if !done && err == nil {
		var places []Place
		var complete bool
		if places, complete, err = a.few(ctx, q); err != nil {
			return nil, err
		}
		j = a.newJudge(q, most)
		if complete {
			err = a.judgeFew(ctx, j, places)
		} else {
			err = a.walk(ctx, j)
		}
	}
	if err != nil {
		return &SearchPage{Next: j.next()}, err
	}
	page := &SearchPage{Items: j.items.found, Next: j.next()}
	if j.items.bare && q.Fields == SummaryFields {
		page.Items, page.rest = nil, page.Items
		for bytes := 0; bytes < keptBytes && len(page.rest) > 0; {
			more, err := a.More(ctx, q, page)
			if err != nil {
				return nil, err
			}
			bytes += sizeOf(more)
			page.Items = append(page.Items, more...)
		}
	}
	return page, nil
}

func (a *Archive) newJudge(q *Search, most int) *judge {
	return &judge{search: q, most: most, late: time.Now().Add(a.searchTime), items: kept{bare: q.Fields != SummaryFields}}
}

// glance looks for words in the first entities in order, twice as many as the page
// has, and is done if that fills the page or if there are no more. An index would
// first gather all entities that have a word, which takes long if most have it.
func (a *Archive) glance(ctx context.Context, q *Search, most int) (j *judge, done bool, err error) {
	j = a.newJudge(q, most)
	if len(q.Words) == 0 || q.Reference != "" || q.Cone != nil || len(q.Where) > 0 || 2*(q.Limit+1) > walkPart {
		return j, false, nil
	}
	w := q.along(q.Sort)
	w.Behind, w.Limit = q.Start, 2*(q.Limit+1)
	n, err := a.judgeWalk(ctx, j, w)
	if errors.Is(err, errEnded) {
		return j, true, nil
	}
	return j, n < w.Limit || err != nil, err
}

// More returns the next items of a page, none at its end.
func (a *Archive) More(ctx context.Context, q *Search, page *SearchPage) ([]Found, error) {
	var items []Found
	for len(items) == 0 && len(page.rest) > 0 {
		part := page.rest[:min(max(page.part, lookedAtFirst), len(page.rest))]
		page.rest = page.rest[len(part):]
		refs := make([]Ref, len(part))
		for i := range part {
			refs[i] = part[i].Ref
		}
		looked, err := a.engine.Look(ctx, refs)
		if err != nil {
			return nil, err
		}
		for i, f := range part {
			if looked[i] != nil && looked[i].Damage != nil {
				return nil, looked[i].Damage
			}
			if looked[i] != nil && looked[i].Metadata == f.Metadata {
				items = append(items, *looked[i])
				continue
			}
			// It has changed since, so it is judged again.
			e, err := a.Document(ctx, q, &f)
			if err != nil {
				return nil, err
			}
			if e != nil {
				items = append(items, f)
			}
		}
		page.part = nextPart(len(part), sizeOf(items))
	}
	return items, nil
}

func sizeOf(found []Found) (bytes int) {
	for i := range found {
		bytes += found[i].Summary.size()
	}
	return bytes
}

// kept holds entities, with their summaries while these take little memory.
type kept struct {
	found []Found
	bytes int
	bare  bool // without summaries
}

func (k *kept) add(f *Found) {
	if !k.bare {
		if k.bytes += f.Summary.size(); k.bytes > keptBytes {
			k.bare = true
			for i := range k.found {
				k.found[i].Summary = Summary{}
			}
		}
	}
	one := *f
	if k.bare {
		one.Summary = Summary{}
	}
	k.found = append(k.found, one)
}

// few asks those indexes that a walk in the order of the search would not use. It
// returns the places, in that order, of the entities that they leave. It is complete
// if one of them leaves few.
func (a *Archive) few(ctx context.Context, q *Search) (places []Place, complete bool, err error) {
	if clauses := q.clauses(); clauses != nil {
		question := Question{Kind: q.Kind, Clauses: clauses, Sort: q.Sort, Most: fewFound}
		if places, complete, err = a.engine.Candidates(ctx, question); complete || err != nil {
			return places, complete, err
		}
	}
	for _, w := range q.detours() {
		w.Limit = fewFound + 1
		if places, err = a.engine.Places(ctx, w, q.Sort); len(places) <= fewFound || err != nil {
			return places, err == nil, err
		}
	}
	return nil, false, nil
}

// along returns a walk in an order, with the filters that its index can apply.
func (q *Search) along(order Sort) Walk {
	w := Walk{Kind: q.Kind, Sort: order}
	switch {
	case order.byModification():
		w.Bounds = q.Modified
	case order.byCreation():
		w.Bounds = q.Created
		if q.Match == UserEquals {
			w.User = q.User
		} else {
			w.Telescope = q.Telescope
		}
	}
	return w
}

// detours returns walks along those indexes that a walk in the order of the
// search would not use.
func (q *Search) detours() []Walk {
	var list []Walk
	for _, w := range []Walk{q.along(OldestFirst), q.along(LastModifiedLast)} {
		isNarrow := !w.Bounds.open() || w.User != "" || w.Telescope != ""
		isDirect := w.Sort.byCreation() && q.Sort.byCreation() || w.Sort.byModification() && q.Sort.byModification()
		if isNarrow && !isDirect {
			list = append(list, w)
		}
	}
	return list
}

// judgeFew judges the entities that an index has left, in the order of the search,
// until the page is full. It looks up their summaries as it goes, since a page needs
// only the first few of a thousand entities.
func (a *Archive) judgeFew(ctx context.Context, j *judge, places []Place) error {
	q := j.search
	if q.Start != nil {
		places = slices.DeleteFunc(places, func(p Place) bool { return q.Sort.compare(p, *q.Start) <= 0 })
	}
	slices.SortFunc(places, q.Sort.compare)
	if len(q.Where) > 0 {
		giveBack, err := a.turn(ctx)
		if err != nil {
			return err
		}
		defer giveBack()
	}
	size := lookedAtFirst
	for len(places) > 0 {
		part := places[:min(size, max(2*(q.Limit+1-len(j.items.found)), lookedAtFirst), len(places))]
		places = places[len(part):]
		found, err := a.look(ctx, q.Kind, part)
		if err != nil {
			return err
		}
		bytes := 0
		for i, f := range found {
			if f == nil {
				continue
			}
			bytes += f.Summary.size()
			err := j.see(part[i], f, func() (bool, error) {
				e, err := a.Document(WithRoom(ctx, nil), q, f) // so many at once as there are turns
				if e == nil || err != nil {
					return false, err
				}
				text, err := e.WithoutRecords()
				return err == nil && q.holdsOf(text), err
			})
			if errors.Is(err, errEnded) {
				return nil
			}
			if err != nil {
				return err
			}
		}
		size = nextPart(len(part), bytes)
	}
	return nil
}

// look looks up the entities at some places.
func (a *Archive) look(ctx context.Context, kind Kind, places []Place) ([]*Found, error) {
	refs := make([]Ref, len(places))
	for i, p := range places {
		refs[i] = Ref{kind, p.ID}
	}
	return a.engine.Look(ctx, refs)
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
func (a *Archive) walk(ctx context.Context, j *judge) error {
	q := j.search
	w := q.along(q.Sort)
	w.Behind, w.Bodies = q.Start, len(q.Where) > 0
	most := walkPart
	if w.Bodies {
		most = bodyPart
	}
	w.Limit = min(q.Limit+1, most)
	for turns := false; ; {
		n, err := a.judgeWalk(ctx, j, w)
		if err != nil || n < w.Limit {
			if errors.Is(err, errEnded) {
				err = nil
			}
			return err
		}
		if !turns {
			giveBack, err := a.turn(ctx)
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
func (a *Archive) judgeWalk(ctx context.Context, j *judge, w Walk) (n int, err error) {
	q := j.search
	err = a.engine.Walk(ctx, w, func(f *Found, body Body) error {
		n++
		return j.see(q.Sort.place(f.ID, f.Metadata), f, func() (bool, error) {
			text, err := body.withoutRecords(f.Metadata)
			return err == nil && q.holdsOf(text), err
		})
	})
	return n, err
}

// Document returns the document of an entity that a search has found. If the
// entity has changed since, Document judges it again, and returns nil if it no
// longer matches.
func (a *Archive) Document(ctx context.Context, q *Search, f *Found) (*Entity, error) {
	e, err := a.engine.Get(ctx, f.Ref)
	if err != nil || e.Metadata == f.Metadata {
		return e, err
	}
	looked, err := a.engine.Look(ctx, []Ref{f.Ref})
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
	return e, nil
}
