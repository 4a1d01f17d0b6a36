// Package provenance follows references between entities, in both directions: to
// what an entity comes from, and to what came of it. There is one walk; what a
// caller wants of it are its direction, depth and bounds.
package provenance

import (
	"context"
	"time"

	"oda"
)

// Graph is everything that can be reached from an entity over the references of
// current versions.
type Graph struct {
	Nodes     []Node // nearest first; at one distance by kind and identifier
	Edges     []Edge // in the order of the nodes that they come from
	Truncated bool   // something was left out
}

// Edge is a reference from one node to another. Version is 0 if the reference
// names none.
type Edge struct {
	From, To oda.Ref
	Version  int64
	Field    string
}

// Bounds of a graph. It is truncated where it would exceed them.
const (
	maxNodes  = 1000
	maxNotes  = 100
	maxEdges  = 10_000
	graphTime = 5 * time.Second
)

// largeAtOnce is how many walks may remember much at once.
const largeAtOnce = 4

// Tracer follows references. It is safe for concurrent use.
type Tracer struct {
	finder oda.Finder
	turns  oda.Turns // for walks that remember much
}

// New returns a Tracer for the entities that the finder finds.
func New(finder oda.Finder) *Tracer {
	return &Tracer{finder: finder, turns: oda.NewTurns(largeAtOnce)}
}

// Graph follows the references from and to an entity.
func (t *Tracer) Graph(ctx context.Context, ref oda.Ref) (*Graph, error) {
	from, err := t.find(ctx, ref)
	if err != nil {
		return nil, err
	}
	w := t.newWalker(Walk{Most: maxNodes, Notes: maxNotes, Within: graphTime})
	defer w.end()
	if err := w.walk(ctx, from); err != nil {
		return nil, err
	}
	g := &Graph{Nodes: w.nodes(), Edges: w.edges()}
	g.Truncated = w.truncated
	return g, nil
}

// Below returns everything that came of an entity, with the entity itself.
func (t *Tracer) Below(ctx context.Context, ref oda.Ref) ([]Node, error) {
	from, err := t.find(ctx, ref)
	if err != nil {
		return nil, err
	}
	return t.Walk(ctx, Walk{Direction: Down, Notes: AllNotes}, from)
}

// find looks up an entity.
func (t *Tracer) find(ctx context.Context, ref oda.Ref) (*oda.Found, error) {
	if !oda.ValidID(ref.ID) {
		return nil, oda.Missing(ref)
	}
	found, err := t.finder.Look(ctx, []oda.Ref{ref})
	if err != nil {
		return nil, err
	}
	if found[0] == nil {
		return nil, oda.Missing(ref)
	}
	return found[0], nil
}

// edges returns the references between the nodes. If there are too many, it
// prefers the first one between two nodes to their others, so that the nodes stay
// connected.
func (w *walker) edges() []Edge {
	type pair struct{ from, to oda.Ref }
	all := func(yield func(e Edge, isFirst bool)) {
		seen := make(map[pair]bool)
		for _, ref := range w.reached {
			for _, r := range w.references(ref) {
				for _, to := range w.targets(r) {
					if w.isReached[to] {
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
			w.truncated = true
			return
		}
		*left--
		edges = append(edges, e)
	})
	return edges
}
