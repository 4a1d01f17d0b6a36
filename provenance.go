package oda

import (
	"cmp"
	"context"
	"errors"
	"slices"
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

// Bounds of a provenance.
const (
	maxNodes       = 1000
	provenanceTime = 5 * time.Second
	askedAtOnce    = 500 // terms in one question to the index
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
	t := tracer{finder: a.engine, known: map[Ref]*Found{}, reached: map[Ref]bool{}, byBlock: map[string][]Ref{}}
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

// tracer follows references, a ring of nodes at one distance at a time. Each
// ring takes a few questions to the engine, however many nodes it has.
type tracer struct {
	finder    Finder
	known     map[Ref]*Found   // what was looked at; nil if it is not stored
	byBlock   map[string][]Ref // the Projects that have an obs_block_id, or none
	reached   map[Ref]bool
	nodes     []Ref // in the order in which they were reached
	truncated bool
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
		return found.Summary.References
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
	return t.ask(ctx, Project, blocks, func(f *Found) {
		for _, block := range f.Summary.Blocks {
			if projects, asked := t.byBlock[block]; asked && !slices.Contains(projects, f.Ref) {
				t.byBlock[block] = append(projects, f.Ref)
			}
		}
	})
}

// back gives what refers to a ring.
func (t *tracer) back(ctx context.Context, ring []Ref) ([]Ref, error) {
	names := make(map[Ref]bool, len(ring)) // what references to the ring may say
	for _, ref := range ring {
		names[ref] = true
		if found := t.known[ref]; found != nil {
			for _, block := range found.Summary.Blocks {
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
		err := t.ask(ctx, from, slices.Compact(terms[from]), func(f *Found) {
			if slices.ContainsFunc(f.Summary.References, func(r Reference) bool { return names[Ref{r.Kind, r.ID}] }) {
				back = append(back, f.Ref)
			}
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
	if len(unknown) == 0 {
		return nil
	}
	all, err := t.finder.Look(ctx, unknown)
	if err != nil {
		return err
	}
	for i, ref := range unknown {
		t.known[ref] = all[i]
	}
	return nil
}

// ask calls each for the entities of a kind that have one of the terms, or seem
// to.
func (t *tracer) ask(ctx context.Context, kind Kind, terms []string, each func(*Found)) error {
	for part := range slices.Chunk(terms, askedAtOnce) {
		found, complete, err := t.finder.Candidates(ctx, kind, []Clause{{Any: part}}, 2*maxNodes)
		if err != nil {
			return err
		}
		t.truncated = t.truncated || !complete
		for i := range found {
			t.known[found[i].Ref] = &found[i]
			each(&found[i])
		}
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
	p := &Provenance{Nodes: make([]Node, len(t.nodes)), Truncated: t.truncated}
	for i, ref := range t.nodes {
		p.Nodes[i].Ref = ref
		if found := t.known[ref]; found != nil {
			p.Nodes[i] = Node{Ref: ref, Exists: true, Version: found.Metadata.Version, Name: found.Summary.Name}
		}
		for _, r := range t.references(ref) {
			for _, to := range t.targets(r) {
				if t.reached[to] {
					p.Edges = append(p.Edges, Edge{From: ref, To: to, Version: r.Version, Field: r.Field})
				}
			}
		}
	}
	return p
}
