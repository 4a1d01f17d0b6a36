package oda

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"
)

// Provenance is everything that can be reached from an entity over references,
// in both directions, through current versions: where it comes from and what came
// of it.
type Provenance struct {
	Nodes     []Node // nearest first; at one distance by kind and identifier
	Edges     []Edge // in the order of the nodes that they come from
	Truncated bool   // there is more
}

// Node is an entity in a provenance.
type Node struct {
	Ref
	Exists  bool   // it is stored; else it is only referred to
	Version int64  // the current one; 0 if it is not stored
	Name    string // empty: none
}

// Edge is a reference from one node to another. The version is that which the
// reference names, 0 if it names none.
type Edge struct {
	From, To Ref
	Version  int64
	Field    string
}

// Bounds of a provenance. What is beyond them is left out, and it is truncated.
const (
	maxNodes       = 1000
	maxEdges       = 10_000
	provenanceTime = 5 * time.Second
	askedAtOnce    = 500 // terms in one question to the index
	tracedAtOnce   = 50  // entities that are looked at together

	traceBytes = 512 << 20 // of packed summaries that one question reads
	traceKept  = 32 << 20  // of what is remembered of them
	traceFree  = 1 << 20   // of that, what is remembered without a turn
)

// referring are the kinds whose documents may refer to a kind.
var referring = map[Kind][]Kind{
	SBDefinition:   {SBInstance, ExecutionBlock, Project},
	SBInstance:     {ExecutionBlock},
	ExecutionBlock: {SBInstance},
	Project:        {SBDefinition},
}

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

// traced is what is remembered of an entity.
type traced struct {
	version    int64
	name       string
	references []Reference // to each entity once, and more while there are few
	blocks     []string
}

// tracer follows references, a ring of nodes at one distance at a time. Each
// ring takes a few questions to the engine, however many nodes it has.
type tracer struct {
	finder    Finder
	known     map[Ref]*traced  // what was looked at; nil if it is not stored
	byBlock   map[string][]Ref // the Projects that have an obs_block_id, or none
	reached   map[Ref]bool
	nodes     []Ref // in the order in which they were reached
	truncated bool

	kept     int // bytes that are remembered
	again    int // references that are remembered to what has one from there already
	turn     func(context.Context) (giveBack func(), err error)
	hasTurn  bool
	giveBack func()
}

// remember remembers an entity, as far as there is room. The texts of a summary
// are parts of one, so what is to stay is copied.
func (t *tracer) remember(f *Found) {
	if t.known[f.Ref] != nil {
		return
	}
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

// room takes room for what is remembered, if there is any left.
func (t *tracer) room(bytes int) bool {
	if t.kept+bytes > traceKept {
		t.truncated = true
		return false
	}
	t.kept += bytes
	return true
}

// wait waits for a turn, once much is remembered.
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

// reach makes nodes of those that are none yet, as many as there is room for, and
// gives them.
func (t *tracer) reach(refs []Ref) []Ref {
	slices.SortFunc(refs, func(a, b Ref) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID)) })
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

// around gives everything that a ring refers to or is referred to by.
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

// references are those of an entity, none if it is not stored.
func (t *tracer) references(ref Ref) []Reference {
	if found := t.known[ref]; found != nil {
		return found.references
	}
	return nil
}

// targets are the entities that a reference leads to. A Project is named by its
// identifier or by a block that it has; where none is, the reference leads to
// what is not stored.
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

// resolve finds out which Projects the references of a ring lead to.
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
			blocks = append(blocks, term(Project, blockTerm, plain(r.ID)))
		}
	}
	if err := t.look(ctx, refs); err != nil {
		return err
	}
	return t.ask(ctx, Project, blocks, func(f *Found) bool {
		isOne := false
		for _, block := range f.Summary.Blocks {
			projects, asked := t.byBlock[block]
			if isOne = isOne || asked; asked && !slices.Contains(projects, f.Ref) {
				t.byBlock[block] = append(projects, f.Ref)
			}
		}
		return isOne
	})
}

// back gives what refers to a ring.
func (t *tracer) back(ctx context.Context, ring []Ref) ([]Ref, error) {
	names := make(map[Ref]bool, len(ring)) // what references to the ring may say
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
		for _, from := range referring[name.Kind] {
			terms[from] = append(terms[from], term(from, referenceTerm, plain(name.ID)))
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

// look looks at those entities that are not known yet.
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
			if all[i] != nil {
				t.remember(all[i])
			}
		}
		if err := t.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// ask calls take for the entities of a kind that have one of the terms, or seem
// to, and remembers those that it takes.
func (t *tracer) ask(ctx context.Context, kind Kind, terms []string, take func(*Found) bool) error {
	for part := range slices.Chunk(terms, askedAtOnce) {
		q := Question{Kind: kind, Clauses: []Clause{{Any: part}}, Most: 2 * maxNodes, Bytes: traceBytes}
		complete, err := t.finder.Candidates(ctx, q, func(f *Found) bool {
			isTaken := take(f)
			if isTaken {
				t.remember(f)
			}
			return isTaken
		})
		if err == nil {
			err = t.wait(ctx)
		}
		if err != nil {
			return err
		}
		t.truncated = t.truncated || !complete
	}
	return nil
}

// provenance puts together what was found. A node that there was no time to look
// at is left out.
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

// edges gives the references between the nodes. Where there are too many, one
// from a node to another goes before more of them, so that the nodes hang
// together.
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
