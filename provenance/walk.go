package provenance

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"oda"
)

// Direction says where a walk goes. It does not matter which of two entities refers
// to the other.
type Direction uint8

// The directions.
const (
	Both Direction = iota
	Up             // to what an entity comes from, up to Projects
	Down           // to what came of it, down to ExecutionBlocks and notes
)

// level orders the kinds from the top down.
var level = map[oda.Kind]int{oda.Project: 0, oda.SBDefinition: 1, oda.SBInstance: 2, oda.ExecutionBlock: 3, oda.Note: 4}

// Takes reports whether the direction leads from one kind to another.
func (d Direction) Takes(from, to oda.Kind) bool {
	switch d {
	case Up:
		return level[to] < level[from]
	case Down:
		return level[to] > level[from]
	}
	return true
}

// referring has the kinds whose documents may refer to one of a kind.
var referring = map[oda.Kind][]oda.Kind{
	oda.SBDefinition:   {oda.Project, oda.SBInstance, oda.ExecutionBlock, oda.Note},
	oda.SBInstance:     {oda.ExecutionBlock, oda.Note},
	oda.ExecutionBlock: {oda.SBInstance, oda.Note},
	oda.Project:        {oda.SBDefinition, oda.Note},
	oda.Note:           {oda.Note},
}

// AllNotes lets a walk reach any number of notes.
const AllNotes = math.MaxInt

// Walk says where a walk over the references of current versions goes, and how
// far. A bound of 0 is none.
type Walk struct {
	Direction Direction
	Depth     int           // references from where it begins
	Most      int           // entities
	Notes     int           // notes that it reaches; 0 is none. It does not go on from them, unless it begins there
	Within    time.Duration // after which it ends where it is

	// References returns the references of an entity that are followed. If it is
	// nil, all are.
	References func(of *oda.Found) []oda.Reference

	// Referring returns the entities of a kind that refer to another and are
	// reached from it. If it is nil, all are.
	Referring func(ctx context.Context, to oda.Ref, from oda.Kind) ([]oda.Found, error)

	// Visit is called once for each entity that is stored, in any order.
	Visit func(*oda.Found)
}

// Node is an entity that a walk reaches.
type Node struct {
	oda.Ref
	Exists  bool   // it is stored; else it is only referred to
	Version int64  // the current one; 0 if it is not stored
	Name    string // empty: none
}

// Walk walks from some entities. It returns what it reaches, with these: nearest
// first; at one distance by kind and identifier.
func (t *Tracer) Walk(ctx context.Context, w Walk, from ...*oda.Found) ([]Node, error) {
	run := t.newWalker(w)
	defer run.end()
	if err := run.walk(ctx, from...); err != nil {
		return nil, err
	}
	return run.nodes(), nil
}

const (
	askedAtOnce  = 500  // terms in one question to the index
	askedMost    = 2000 // entities that a question may find at first
	lookedAtOnce = 50   // entities that are looked up together

	keptMost = 32 << 20 // bytes that a bounded walk may remember
	keptFree = 1 << 20  // bytes that a walk may remember without a turn
)

// known is what a walker remembers of an entity.
type known struct {
	version    int64
	name       string
	references []oda.Reference // at least one to each entity, and others while there are few
	blocks     []string
}

// walker walks, a ring of entities at one distance at a time. Each ring takes a few
// questions to the engine, however many entities it has.
type walker struct {
	Walk
	finder    oda.Finder
	known     map[oda.Ref]*known   // what was looked up; nil if it is not stored
	byBlock   map[string][]oda.Ref // the Projects with an obs_block_id, if there are any
	begins    map[oda.Ref]bool
	isReached map[oda.Ref]bool
	reached   []oda.Ref // in this order
	notes     int       // of those that are reached, without those where it begins
	truncated bool

	kept     int // bytes that are remembered
	repeated int // remembered references that repeat the ends of another one
	turns    oda.Turns
	giveBack func() // ends the walker's turn; nil if it has none
}

func (t *Tracer) newWalker(w Walk) *walker {
	return &walker{
		Walk: w, finder: t.finder, turns: t.turns,
		known: map[oda.Ref]*known{}, byBlock: map[string][]oda.Ref{}, begins: map[oda.Ref]bool{}, isReached: map[oda.Ref]bool{},
	}
}

// end must be called after the walk.
func (w *walker) end() {
	if w.giveBack != nil {
		w.giveBack()
	}
}

// walk reaches what there is. It leaves out what it had no time to look up.
func (w *walker) walk(ctx context.Context, from ...*oda.Found) error {
	var begin []oda.Ref
	for _, f := range from {
		if err := w.remember(f); err != nil {
			return err
		}
		begin = append(begin, f.Ref)
		w.begins[f.Ref] = true
	}
	bounded, cancel := context.WithCancel(ctx)
	if w.Within > 0 {
		bounded, cancel = context.WithTimeout(ctx, w.Within)
	}
	defer cancel()
	depth := 0
	for ring := w.reach(begin); len(ring) > 0; depth++ {
		next, err := w.next(bounded, ring, depth)
		if errors.Is(bounded.Err(), context.DeadlineExceeded) && ctx.Err() == nil {
			w.truncated = true
			break
		}
		if err != nil {
			return err
		}
		ring = w.reach(next)
	}
	w.reached = slices.DeleteFunc(w.reached, func(ref oda.Ref) bool {
		_, known := w.known[ref]
		w.isReached[ref] = known
		return !known
	})
	return nil
}

// nodes returns what was reached.
func (w *walker) nodes() []Node {
	nodes := make([]Node, len(w.reached))
	for i, ref := range w.reached {
		nodes[i].Ref = ref
		if found := w.known[ref]; found != nil {
			nodes[i] = Node{Ref: ref, Exists: true, Version: found.version, Name: found.name}
		}
	}
	return nodes
}

// reach adds the entities that are new, as far as there is room, and returns them.
func (w *walker) reach(refs []oda.Ref) []oda.Ref {
	slices.SortFunc(refs, oda.Ref.Compare)
	first := len(w.reached)
	for _, ref := range refs {
		if w.isReached[ref] {
			continue
		}
		if len(w.reached) == w.Most && w.Most > 0 {
			w.truncated = true
			break
		}
		if w.isLeaf(ref) {
			if w.notes == w.Notes {
				w.truncated = true
				continue
			}
			w.notes++
		}
		w.isReached[ref] = true
		w.reached = append(w.reached, ref)
	}
	return w.reached[first:]
}

// next looks up a ring, and returns where the walk goes on from there.
func (w *walker) next(ctx context.Context, ring []oda.Ref, depth int) ([]oda.Ref, error) {
	if err := w.look(ctx, ring); err != nil {
		return nil, err
	}
	ring = slices.DeleteFunc(slices.Clone(ring), w.isLeaf)
	if depth == w.Depth && w.Depth > 0 {
		return nil, nil
	}
	if err := w.resolve(ctx, ring); err != nil {
		return nil, err
	}
	var next []oda.Ref
	for _, ref := range ring {
		for _, r := range w.references(ref) {
			next = append(next, w.targets(r)...)
		}
	}
	back, err := w.back(ctx, ring)
	return append(next, back...), err
}

// isLeaf reports whether the walk does not go on from an entity.
func (w *walker) isLeaf(ref oda.Ref) bool { return ref.Kind == oda.Note && !w.begins[ref] }

// references returns the references of an entity that are followed.
func (w *walker) references(ref oda.Ref) []oda.Reference {
	if found := w.known[ref]; found != nil {
		return found.references
	}
	return nil
}

// targets returns the entities that a reference leads to. A reference names a
// Project by its identifier or by one of its blocks. If there is no such Project,
// the reference leads to an entity that is not stored.
func (w *walker) targets(r oda.Reference) []oda.Ref {
	itself := oda.Ref{Kind: r.Kind, ID: r.ID}
	if r.Kind != oda.Project {
		return []oda.Ref{itself}
	}
	projects := w.byBlock[r.ID]
	if w.known[itself] != nil && !slices.Contains(projects, itself) {
		return append([]oda.Ref{itself}, projects...)
	}
	if len(projects) > 0 {
		return projects
	}
	return []oda.Ref{itself}
}

// resolve looks up the Projects that the references of a ring lead to.
func (w *walker) resolve(ctx context.Context, ring []oda.Ref) error {
	var refs []oda.Ref
	var blocks []string
	for _, from := range ring {
		for _, r := range w.references(from) {
			if _, asked := w.byBlock[r.ID]; asked || r.Kind != oda.Project {
				continue
			}
			w.byBlock[r.ID] = nil
			refs = append(refs, oda.Ref{Kind: r.Kind, ID: r.ID})
			blocks = append(blocks, oda.BlockTerm(r.ID))
		}
	}
	if err := w.look(ctx, refs); err != nil {
		return err
	}
	err := w.ask(ctx, oda.Project, blocks, func(f *oda.Found) bool {
		isOne := false
		for _, block := range f.Summary.Blocks {
			projects, asked := w.byBlock[block]
			if isOne = isOne || asked; asked && !slices.Contains(projects, f.Ref) {
				w.byBlock[block] = append(projects, f.Ref)
			}
		}
		return isOne
	})
	for _, projects := range w.byBlock { // engines find them in any order
		slices.SortFunc(projects, oda.Ref.Compare)
	}
	return err
}

// back returns what refers to a ring.
func (w *walker) back(ctx context.Context, ring []oda.Ref) ([]oda.Ref, error) {
	if w.Referring != nil {
		return w.backTo(ctx, ring)
	}
	names := make(map[oda.Ref]bool, len(ring)) // by which a reference can name one of the ring
	for _, ref := range ring {
		names[ref] = true
		if found := w.known[ref]; found != nil {
			for _, block := range found.blocks {
				names[oda.Ref{Kind: oda.Project, ID: block}] = true
			}
		}
	}
	terms := make(map[oda.Kind][]string)
	for name := range names {
		for _, from := range w.kindsTo(name.Kind) {
			terms[from] = append(terms[from], oda.ReferenceTerm(from, name.ID))
		}
	}
	var back []oda.Ref
	for _, from := range oda.Kinds {
		slices.Sort(terms[from])
		err := w.ask(ctx, from, slices.Compact(terms[from]), func(f *oda.Found) bool {
			refers := slices.ContainsFunc(f.Summary.References, func(r oda.Reference) bool { return names[oda.Ref{Kind: r.Kind, ID: r.ID}] })
			if refers {
				back = append(back, f.Ref)
			}
			return refers
		})
		if err != nil {
			return nil, err
		}
	}
	return back, nil
}

// backTo returns what Referring has for a ring.
func (w *walker) backTo(ctx context.Context, ring []oda.Ref) ([]oda.Ref, error) {
	var back []oda.Ref
	for _, to := range ring {
		for _, from := range w.kindsTo(to.Kind) {
			found, err := w.Referring(ctx, to, from)
			if err != nil {
				return nil, err
			}
			for i := range found {
				back = append(back, found[i].Ref)
				if err := w.remember(&found[i]); err != nil {
					return nil, err
				}
			}
		}
	}
	return back, nil
}

// kindsTo returns the kinds to which the walk goes back from what they refer to.
func (w *walker) kindsTo(kind oda.Kind) []oda.Kind {
	var kinds []oda.Kind
	for _, from := range referring[kind] {
		if w.Direction.Takes(kind, from) && (from != oda.Note || w.Notes > 0) {
			kinds = append(kinds, from)
		}
	}
	return kinds
}

// look looks up the entities that are not yet known.
func (w *walker) look(ctx context.Context, refs []oda.Ref) error {
	var unknown []oda.Ref
	for _, ref := range refs {
		if _, known := w.known[ref]; !known {
			unknown = append(unknown, ref)
		}
	}
	for part := range slices.Chunk(unknown, lookedAtOnce) {
		if err := w.lookAt(ctx, part, func(*oda.Found) bool { return true }); err != nil {
			return err
		}
	}
	return nil
}

// ask calls take for the entities of a kind that may have one of the terms, and
// remembers those for which take returns true.
func (w *walker) ask(ctx context.Context, kind oda.Kind, terms []string, take func(*oda.Found) bool) error {
	for part := range slices.Chunk(terms, askedAtOnce) {
		places, err := w.candidates(ctx, oda.Question{Kind: kind, Clauses: []oda.Clause{{Any: part}}, Sort: oda.ByIdentifier})
		if err != nil {
			return err
		}
		for some := range slices.Chunk(places, lookedAtOnce) {
			refs := make([]oda.Ref, len(some))
			for i, place := range some {
				refs[i] = oda.Ref{Kind: kind, ID: place.ID}
			}
			if err := w.lookAt(ctx, refs, take); err != nil {
				return err
			}
		}
	}
	return nil
}

// candidates asks the index. If there is no bound on the walk, it asks for more
// until it has everything.
func (w *walker) candidates(ctx context.Context, q oda.Question) ([]oda.Place, error) {
	for q.Most = askedMost; ; q.Most *= 10 {
		places, complete, err := w.finder.Candidates(ctx, q)
		if err != nil || complete || w.Most > 0 {
			w.truncated = w.truncated || !complete
			return places, err
		}
	}
}

// lookAt looks up some entities, and remembers those for which take returns true.
func (w *walker) lookAt(ctx context.Context, refs []oda.Ref, take func(*oda.Found) bool) error {
	found, err := w.finder.Look(ctx, refs)
	if err != nil {
		return err
	}
	for i, f := range found {
		switch {
		case f == nil:
			w.known[refs[i]] = nil
		case f.Damage != nil:
			return f.Damage
		case take(f):
			if err := w.remember(f); err != nil {
				return err
			}
		}
	}
	return w.wait(ctx)
}

// wait waits for a turn once the walker remembers much.
func (w *walker) wait(ctx context.Context) (err error) {
	if w.giveBack == nil && w.kept > keptFree {
		w.giveBack, err = w.turns.Take(ctx, oda.Errorf(oda.Overloaded, "Too many requests for much provenance at once. Try again shortly."))
	}
	return err
}

// remember remembers an entity, as far as there is room. It copies the texts that
// it keeps: those of a summary share memory, and one would hold all of it.
func (w *walker) remember(f *oda.Found) error {
	if f.Damage != nil {
		return f.Damage
	}
	if w.known[f.Ref] != nil {
		return nil
	}
	if w.Visit != nil {
		w.Visit(f)
	}
	w.truncated = w.truncated || f.Summary.Full()
	one := &known{version: f.Metadata.Version, name: strings.Clone(f.Summary.Name)}
	w.known[f.Ref] = one
	w.kept += 256 + len(one.name)
	references := f.Summary.References
	if w.References != nil {
		references = w.References(f)
	}
	seen := make(map[oda.Ref]bool, min(len(references), 16))
	for _, r := range references {
		if !w.Direction.Takes(f.Kind, r.Kind) {
			continue
		}
		to := oda.Ref{Kind: r.Kind, ID: r.ID}
		if seen[to] {
			if w.repeated == maxEdges {
				w.truncated = true
				continue
			}
			w.repeated++
		}
		if !w.room(64 + len(r.ID) + len(r.Field)) {
			break
		}
		seen[to] = true
		r.ID, r.Field = strings.Clone(r.ID), strings.Clone(r.Field)
		one.references = append(one.references, r)
	}
	for _, block := range f.Summary.Blocks {
		if !w.room(64 + len(block)) {
			break
		}
		one.blocks = append(one.blocks, strings.Clone(block))
	}
	return nil
}

// room reserves bytes for what is remembered. It reports whether there were so
// many left.
func (w *walker) room(bytes int) bool {
	if w.Most > 0 && w.kept+bytes > keptMost {
		w.truncated = true
		return false
	}
	w.kept += bytes
	return true
}
