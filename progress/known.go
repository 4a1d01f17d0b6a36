package progress

import (
	"context"
	"maps"
	"slices"
	"sync"

	"oda"
)

// graph is what a Project is made of: its SBDefinitions and their runs, as of a position of
// the log of changes or later. It never changes.
type graph struct {
	*project
	definitions map[string]*oda.Found
	runs        map[string][]run // by SBDefinition
	truncated   bool
	at          oda.Position
}

// known keeps the graphs of the Projects that were asked for last. To find the runs of a
// large Project takes thousands of lookups, and a page asks whenever something has changed.
type known struct {
	mu     sync.Mutex
	graphs []*graph // the one that was asked for last is the last
}

// Bounds of what is kept, and of how much of the log is read to renew it.
const (
	knownProjects = 16
	knownEntities = 20_000
	renewedBy     = 1000 // changes
)

func (k *known) get(ref oda.Ref) *graph {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, g := range k.graphs {
		if g.Ref == ref {
			return g
		}
	}
	return nil
}

// put keeps a graph, instead of those that were asked for least lately.
func (k *known) put(g *graph) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.graphs = slices.DeleteFunc(k.graphs, func(other *graph) bool { return other.Ref == g.Ref })
	k.graphs = append(k.graphs, g)
	size := 0
	for i, one := range slices.Backward(k.graphs) {
		if size += one.size(); size > knownEntities || len(k.graphs)-i > knownProjects {
			k.graphs = slices.Delete(k.graphs, 0, i+1)
			return
		}
	}
}

// size returns how many entities the graph has, at most.
func (g *graph) size() int {
	n := len(g.definitions)
	for _, some := range g.runs {
		n += 2 * len(some)
	}
	return n
}

// graph returns what a Project is made of, with everything that was acknowledged before.
func (r *Reporter) graph(ctx context.Context, ref oda.Ref) (*graph, error) {
	end, err := r.engine.End(ctx)
	if err != nil {
		return nil, err
	}
	g := r.known.get(ref)
	if g != nil && g.at != end {
		g = r.renewed(ctx, g, end)
	}
	if g == nil {
		if g, err = r.read(ctx, ref); err != nil {
			return nil, err
		}
		g.at = end
	}
	r.known.put(g)
	return g, nil
}

// renewed returns a graph with what has changed up to a position, or nil if it must be read
// again: something was stored, which may be a run, or too much has happened.
func (r *Reporter) renewed(ctx context.Context, g *graph, end oda.Position) *graph {
	entities := g.entities()
	changed := make(map[oda.Ref]*oda.Found)
	for after, left := g.at, renewedBy; after < end; {
		changes, next, err := r.engine.Changes(ctx, after, left)
		if left -= len(changes); err != nil || next <= after || left <= 0 {
			return nil
		}
		for i := range changes {
			if changes[i].Stored() {
				return nil
			}
			if entities[changes[i].Ref] {
				changed[changes[i].Ref] = nil
			}
		}
		after = next
	}
	f := &finder{Finder: r.engine, unbounded: true}
	if f.look(ctx, slices.Collect(maps.Keys(changed)), func(one *oda.Found) { changed[one.Ref] = one }) != nil {
		return nil
	}
	return g.with(changed, end)
}

// entities returns all entities of the graph.
func (g *graph) entities() map[oda.Ref]bool {
	all := make(map[oda.Ref]bool)
	for id := range g.definitions {
		all[oda.Ref{Kind: oda.SBDefinition, ID: id}] = true
	}
	for _, some := range g.runs {
		for _, one := range some {
			all[oda.Ref{Kind: oda.SBInstance, ID: one.instanceID}] = true
			all[oda.Ref{Kind: oda.ExecutionBlock, ID: one.blockID}] = true
		}
	}
	return all
}

// with returns the graph with some of its entities as they are now.
func (g *graph) with(changed map[oda.Ref]*oda.Found, at oda.Position) *graph {
	now := func(f *oda.Found) *oda.Found {
		if f != nil && changed[f.Ref] != nil {
			return changed[f.Ref]
		}
		return f
	}
	renewed := &graph{project: g.project, definitions: make(map[string]*oda.Found), runs: make(map[string][]run), truncated: g.truncated, at: at}
	for id, f := range g.definitions {
		renewed.definitions[id] = now(f)
	}
	for id, some := range g.runs {
		some = slices.Clone(some)
		for i := range some {
			some[i].instance, some[i].block = now(some[i].instance), now(some[i].block)
		}
		renewed.runs[id] = some
	}
	return renewed
}
