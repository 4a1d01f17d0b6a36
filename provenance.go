package oda

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
)

// Provenance is everything that can be reached from an entity over the
// references of current versions, in both directions: what the entity comes from
// and what came of it.
type Provenance struct {
	Nodes     []Node // nearest first; at one distance by kind and identifier
	Edges     []Edge // in the order of the nodes that they come from
	Truncated bool   // something was left out
}

// Node is an entity in a provenance.
type Node struct {
	Ref
	Exists  bool   // it is stored; else it is only referred to
	Version int64  // the current one; 0 if it is not stored
	Name    string // empty: none
}

// Edge is a reference from one node to another. Version is 0 if the reference
// names none.
type Edge struct {
	From, To Ref
	Version  int64
	Field    string
}

// Bounds of a provenance. It is truncated where it would exceed them.
const (
	maxNodes       = 1000
	maxEdges       = 10_000
	provenanceTime = 5 * time.Second
	askedAtOnce    = 500 // terms in one question to the index
	tracedAtOnce   = 50  // entities that are looked up together

	traceKept = 32 << 20 // that the tracer may remember
	traceFree = 1 << 20  // that it may remember without a turn
)

var referring = map[Kind][]Kind{
	SBDefinition:   {Project, SBInstance, ExecutionBlock},
	SBInstance:     {ExecutionBlock},
	ExecutionBlock: {SBInstance},
	Project:        {SBDefinition},
}

// Referring returns the kinds whose documents may refer to one of this kind.
func (k Kind) Referring() []Kind { return referring[k] }

// Provenance follows the references from and to an entity.
func (a *Archive) Provenance(ctx context.Context, ref Ref) (*Provenance, error) {
	if !ValidID(ref.ID) {
		return nil, Missing(ref)
	}
	t := tracer{
		finder: a.engine, known: map[Ref]*traced{}, reached: map[Ref]bool{}, byBlock: map[string][]Ref{},
		turn: a.turn, giveBack: func() {},
	}
	defer func() { t.giveBack() }()
	if err := t.look(ctx, []Ref{ref}); err != nil {
		return nil, err
	}
	if t.known[ref] == nil {
		return nil, Missing(ref)
	}
	bounded, cancel := context.WithTimeout(ctx, provenanceTime)
	defer cancel()
	for ring := t.reach([]Ref{ref}); len(ring) > 0; {
		around, err := t.around(bounded, ring)
		if errors.Is(bounded.Err(), context.DeadlineExceeded) && ctx.Err() == nil {
			t.truncated = true
			break
		}
		if err != nil {
			return nil, err
		}
		ring = t.reach(around)
	}
	return t.provenance(), nil
}

// traced is what the tracer remembers of an entity.
type traced struct {
	version    int64
	name       string
	references []Reference // at least one to each entity, and others while there are few
	blocks     []string
}

// tracer follows references, a ring of nodes at one distance at a time. Each
// ring takes a few questions to the engine, however many nodes it has.
type tracer struct {
	finder    Finder
	known     map[Ref]*traced  // what was looked up; nil if it is not stored
	byBlock   map[string][]Ref // the Projects with an obs_block_id, if there are any
	reached   map[Ref]bool
	nodes     []Ref // in the order in which they were reached
	truncated bool

	kept     int // bytes that are remembered
	again    int // remembered references that repeat the ends of another one
	turn     func(context.Context) (giveBack func(), err error)
	hasTurn  bool
	giveBack func()
}

// remember remembers an entity, as far as there is room. It copies the texts that
// it keeps: those of a summary share memory, and one would hold all of it.
func (t *tracer) remember(f *Found) {
	if t.known[f.Ref] != nil {
		return
	}
	t.truncated = t.truncated || f.Summary.full()
	one := &traced{version: f.Metadata.Version, name: strings.Clone(f.Summary.Name)}
	t.known[f.Ref] = one
	t.kept += 256 + len(one.name)
	seen := make(map[Ref]bool, min(len(f.Summary.References), 16))
	for _, r := range f.Summary.References {
		to := Ref{r.Kind, r.ID}
		if seen[to] {
			if t.again == maxEdges {
				t.truncated = true
				continue
			}
			t.again++
		}
		if !t.room(64 + len(r.ID) + len(r.Field)) {
			break
		}
		seen[to] = true
		r.ID, r.Field = strings.Clone(r.ID), strings.Clone(r.Field)
		one.references = append(one.references, r)
	}
	for _, block := range f.Summary.Blocks {
		if !t.room(64 + len(block)) {
			break
		}
		one.blocks = append(one.blocks, strings.Clone(block))
	}
}

// room reserves bytes for what is remembered. It reports whether there were so
// many left.
func (t *tracer) room(bytes int) bool {
	if t.kept+bytes > traceKept {
		t.truncated = true
		return false
	}
	t.kept += bytes
	return true
}

// wait waits for a turn once the tracer remembers much.
func (t *tracer) wait(ctx context.Context) error {
	if t.hasTurn || t.kept <= traceFree {
		return nil
	}
	giveBack, err := t.turn(ctx)
	if err == nil {
		t.hasTurn, t.giveBack = true, giveBack
	}
	return err
}

// reach adds the entities that are not yet nodes, as far as there is room. It
// returns the new nodes.
func (t *tracer) reach(refs []Ref) []Ref {
	slices.SortFunc(refs, Ref.Compare)
	first := len(t.nodes)
	for _, ref := range refs {
		if t.reached[ref] {
			continue
		}
		if len(t.nodes) == maxNodes {
			t.truncated = true
			break
		}
		t.reached[ref] = true
		t.nodes = append(t.nodes, ref)
	}
	return t.nodes[first:]
}

// around returns what a ring refers to, and what refers to it.
func (t *tracer) around(ctx context.Context, ring []Ref) ([]Ref, error) {
	if err := t.look(ctx, ring); err != nil {
		return nil, err
	}
	if err := t.resolve(ctx, ring); err != nil {
		return nil, err
	}
	var around []Ref
	for _, ref := range ring {
		for _, r := range t.references(ref) {
			around = append(around, t.targets(r)...)
		}
	}
	back, err := t.back(ctx, ring)
	return append(around, back...), err
}

// references returns the references of an entity, none if it is not stored.
func (t *tracer) references(ref Ref) []Reference {
	if found := t.known[ref]; found != nil {
		return found.references
	}
	return nil
}

// targets returns the entities that a reference leads to. A reference names a
// Project by its identifier or by one of its blocks. If there is no such Project,
// the reference leads to an entity that is not stored.
func (t *tracer) targets(r Reference) []Ref {
	itself := Ref{r.Kind, r.ID}
	if r.Kind != Project {
		return []Ref{itself}
	}
	projects := t.byBlock[r.ID]
	if t.known[itself] != nil && !slices.Contains(projects, itself) {
		return append([]Ref{itself}, projects...)
	}
	if len(projects) > 0 {
		return projects
	}
	return []Ref{itself}
}

// resolve looks up the Projects that the references of a ring lead to.
func (t *tracer) resolve(ctx context.Context, ring []Ref) error {
	var refs []Ref
	var blocks []string
	for _, from := range ring {
		for _, r := range t.references(from) {
			if _, asked := t.byBlock[r.ID]; asked || r.Kind != Project {
				continue
			}
			t.byBlock[r.ID] = nil
			refs = append(refs, Ref{r.Kind, r.ID})
			blocks = append(blocks, BlockTerm(r.ID))
		}
	}
	if err := t.look(ctx, refs); err != nil {
		return err
	}
	err := t.ask(ctx, Project, blocks, func(f *Found) bool {
		isOne := false
		for _, block := range f.Summary.Blocks {
			projects, asked := t.byBlock[block]
			if isOne = isOne || asked; asked && !slices.Contains(projects, f.Ref) {
				t.byBlock[block] = append(projects, f.Ref)
			}
		}
		return isOne
	})
	for _, projects := range t.byBlock { // engines find them in any order
		slices.SortFunc(projects, Ref.Compare)
	}
	return err
}

// back returns what refers to a ring.
func (t *tracer) back(ctx context.Context, ring []Ref) ([]Ref, error) {
	names := make(map[Ref]bool, len(ring)) // by which a reference can name one of the ring
	for _, ref := range ring {
		names[ref] = true
		if found := t.known[ref]; found != nil {
			for _, block := range found.blocks {
				names[Ref{Project, block}] = true
			}
		}
	}
	terms := make(map[Kind][]string)
	for name := range names {
		for _, from := range name.Kind.Referring() {
			terms[from] = append(terms[from], ReferenceTerm(from, name.ID))
		}
	}
	var back []Ref
	for _, from := range Kinds {
		slices.Sort(terms[from])
		err := t.ask(ctx, from, slices.Compact(terms[from]), func(f *Found) bool {
			refers := slices.ContainsFunc(f.Summary.References, func(r Reference) bool { return names[Ref{r.Kind, r.ID}] })
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

// look looks up the entities that are not yet known.
func (t *tracer) look(ctx context.Context, refs []Ref) error {
	var unknown []Ref
	for _, ref := range refs {
		if _, known := t.known[ref]; !known {
			unknown = append(unknown, ref)
		}
	}
	for part := range slices.Chunk(unknown, tracedAtOnce) {
		all, err := t.finder.Look(ctx, part)
		if err != nil {
			return err
		}
		for i, ref := range part {
			t.known[ref] = nil
			if all[i] == nil {
				continue
			}
			if all[i].Damage != nil {
				return all[i].Damage
			}
			t.remember(all[i])
		}
		if err := t.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// ask calls take for the entities of a kind that may have one of the terms, and
// remembers those for which take returns true.
func (t *tracer) ask(ctx context.Context, kind Kind, terms []string, take func(*Found) bool) error {
	for part := range slices.Chunk(terms, askedAtOnce) {
		q := Question{Kind: kind, Clauses: []Clause{{Any: part}}, Sort: ByIdentifier, Most: 2 * maxNodes}
		places, complete, err := t.finder.Candidates(ctx, q)
		if err != nil {
			return err
		}
		t.truncated = t.truncated || !complete
		for some := range slices.Chunk(places, tracedAtOnce) {
			refs := make([]Ref, len(some))
			for i, place := range some {
				refs[i] = Ref{kind, place.ID}
			}
			found, err := t.finder.Look(ctx, refs)
			if err != nil {
				return err
			}
			for _, f := range found {
				if f != nil && f.Damage != nil {
					return f.Damage
				}
				if f != nil && take(f) {
					t.remember(f)
				}
			}
			if err := t.wait(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// provenance returns what was found. It leaves out the nodes that there was no
// time to look up.
func (t *tracer) provenance() *Provenance {
	t.nodes = slices.DeleteFunc(t.nodes, func(ref Ref) bool {
		_, known := t.known[ref]
		t.reached[ref] = known
		return !known
	})
	p := &Provenance{Nodes: make([]Node, len(t.nodes))}
	for i, ref := range t.nodes {
		p.Nodes[i].Ref = ref
		if found := t.known[ref]; found != nil {
			p.Nodes[i] = Node{Ref: ref, Exists: true, Version: found.version, Name: found.name}
		}
	}
	p.Edges = t.edges()
	p.Truncated = t.truncated
	return p
}

// edges returns the references between the nodes. If there are too many, it
// prefers the first one between two nodes to their others, so that the nodes stay
// connected.
func (t *tracer) edges() []Edge {
	type pair struct{ from, to Ref }
	all := func(yield func(e Edge, isFirst bool)) {
		seen := make(map[pair]bool)
		for _, ref := range t.nodes {
			for _, r := range t.references(ref) {
				for _, to := range t.targets(r) {
					if t.reached[to] {
						yield(Edge{From: ref, To: to, Version: r.Version, Field: r.Field}, !seen[pair{ref, to}])
						seen[pair{ref, to}] = true
					}
				}
			}
		}
	}
	firsts := 0
	all(func(_ Edge, isFirst bool) {
		if isFirst {
			firsts++
		}
	})
	firsts = min(firsts, maxEdges)
	others := maxEdges - firsts
	var edges []Edge
	all(func(e Edge, isFirst bool) {
		left := &others
		if isFirst {
			left = &firsts
		}
		if *left == 0 {
			t.truncated = true
			return
		}
		*left--
		edges = append(edges, e)
	})
	return edges
}
