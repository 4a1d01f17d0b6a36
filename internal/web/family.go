package web

import (
	"context"
	"slices"

	"oda"
	"oda/provenance"
	"oda/search"
)

// family is the entities around one: what it refers to, what refers to it, and all
// above it up to the Project.
type family struct {
	Nodes     []relative
	Edges     []edge
	Referring []referring // what refers to the entity, by kind
}

// relative is an entity in a family.
type relative struct {
	oda.Ref
	Name   string
	Title  string // the name, or that of the SBDefinition it is of
	Began  string // when a block made its first call, if it did
	Past   int64  // the older version that the node stands for, 0 if it stands for the current one
	Status oda.Standing
	Exists bool
	Self   bool
}

// edge is a reference between two of the nodes.
type edge struct{ from, to oda.Ref }

// referring is what refers to an entity, of one kind.
type referring struct {
	Kind oda.Kind
	Rows []oda.Found
	All  string // address of all of them
	More bool   // there are more than these
}

// Bounds of a family.
const (
	shownReferring = 8
	shownAbove     = 3  // Projects of an SBDefinition that it comes from
	shownChildren  = 40 // entities that a Project names
	shownBegins    = 16 // blocks whose first call is read
)

// relatives gathers a family.
type relatives struct {
	site  *Site
	self  oda.Ref
	nodes map[oda.Ref]*relative
	order []oda.Ref
	found map[oda.Ref]*oda.Found
	edges []edge
	refer []referring // to the entity itself
}

// family finds the entities around one: all that it was made from, and those made
// directly from it. Self is the version that is shown, and its SBDefinition the one that it
// is of; the others are as they are now.
func (s *Site) family(ctx context.Context, self *oda.Found) (family, error) {
	all := relatives{site: s, self: self.Ref, nodes: map[oda.Ref]*relative{}, found: map[oda.Ref]*oda.Found{}}
	for _, walk := range []provenance.Walk{{Direction: provenance.Up}, {Direction: provenance.Down, Depth: 1}} {
		walk.References, walk.Referring, walk.Visit = all.references, all.referring, all.visit
		nodes, err := s.cfg.Provenance.Walk(ctx, walk, self)
		if err != nil {
			return family{}, err
		}
		all.add(nodes)
	}
	all.join()
	if err := all.describe(ctx); err != nil {
		return family{}, err
	}
	if err := all.define(ctx, self); err != nil {
		return family{}, err
	}
	f := family{Referring: all.refer}
	for _, ref := range all.order {
		f.Nodes = append(f.Nodes, *all.nodes[ref])
	}
	f.Edges = all.reduced()
	return f, nil
}

// references returns the references that are followed, as many as are shown. The
// Project of an SBDefinition is found by what refers to the definition.
func (f *relatives) references(of *oda.Found) []oda.Reference {
	var some []oda.Reference
	for _, r := range of.Summary.References {
		isShown := slices.ContainsFunc(some, func(other oda.Reference) bool { return other.Kind == r.Kind && other.ID == r.ID })
		if isShown || r.Kind == oda.Project && (r.Field == "ob_ref" || of.Ref != f.self) {
			continue
		}
		if some = append(some, r); len(some) == shownChildren {
			break
		}
	}
	return some
}

// referring returns the newest entities of one kind that refer to another.
func (f *relatives) referring(ctx context.Context, to oda.Ref, kind oda.Kind) ([]oda.Found, error) {
	q := search.Search{Kind: kind, Reference: to.ID, Limit: shownReferring}
	if to != f.self {
		q.Limit = shownAbove
	}
	page, err := f.site.cfg.Searcher.Search(ctx, q)
	if err != nil {
		return nil, err
	}
	rows := slices.DeleteFunc(page.Items, func(found oda.Found) bool { // it may refer to one of another kind
		return !slices.ContainsFunc(found.Summary.References, func(r oda.Reference) bool { return r.Kind == to.Kind && r.ID == to.ID })
	})
	if to == f.self && len(rows) > 0 {
		f.refer = append(f.refer, referring{Kind: kind, Rows: rows, All: "../" + kind.Collection() + "?ref=" + to.ID, More: page.Next != ""})
	}
	return rows, nil
}

func (f *relatives) visit(found *oda.Found) { f.found[found.Ref] = found }

func (f *relatives) add(nodes []provenance.Node) {
	for _, n := range nodes {
		if f.nodes[n.Ref] == nil {
			f.nodes[n.Ref] = &relative{Ref: n.Ref, Name: n.Name, Title: n.Name, Exists: n.Exists, Self: n.Ref == f.self}
			f.order = append(f.order, n.Ref)
		}
	}
}

// join connects the nodes with each other.
func (f *relatives) join() {
	for _, from := range f.order {
		if f.found[from] == nil {
			continue
		}
		for _, r := range f.found[from].Summary.References {
			to := oda.Ref{Kind: r.Kind, ID: r.ID}
			if f.nodes[to] != nil && !slices.Contains(f.edges, edge{from, to}) && !slices.Contains(f.edges, edge{to, from}) {
				f.edges = append(f.edges, edge{from, to})
			}
		}
	}
}

// describe gives the nodes their titles, and says when blocks began: runs of one
// SBDefinition have the same name.
func (f *relatives) describe(ctx context.Context) error {
	var found []*oda.Found
	for _, ref := range f.order {
		if one := f.found[ref]; one != nil {
			found = append(found, one)
		}
	}
	titles, err := f.site.cfg.Names.Of(ctx, found)
	if err != nil {
		return err
	}
	begins := 0
	for i, one := range found {
		node := f.nodes[one.Ref]
		node.Title, node.Status = titles[i], one.Standing
		if node.Kind == oda.ExecutionBlock && begins < shownBegins {
			begins++
			node.Began = f.site.began(ctx, node.ID)
		}
	}
	return nil
}

// define has the SBDefinition that the entity is of stand for the version that it is of.
func (f *relatives) define(ctx context.Context, self *oda.Found) error {
	ran, err := f.site.cfg.Names.Ran(ctx, []*oda.Found{self})
	if err != nil {
		return err
	}
	node := f.nodes[ran[0].Ref]
	if node == nil || !node.Exists {
		return nil
	}
	was, err := f.site.cfg.Names.In(ctx, ran)
	if err != nil {
		return err
	}
	node.Name, node.Title = was[0].Text, was[0].Text
	if current := f.found[node.Ref]; was[0].Version < current.Metadata.Version {
		node.Past = was[0].Version
	}
	return nil
}

// began writes when a block made its first call. It is empty if the block made none, or if
// that cannot be read, which the page of the block explains.
func (s *Site) began(ctx context.Context, block string) string {
	page, err := s.recordPage(ctx, block, 0, 1)
	if err != nil || len(page.Records) == 0 {
		return ""
	}
	first := page.Records[0]
	call := oda.CallOf(first.Text)
	return call.At(first.RecordedOn).Time().Format("2006-01-02 15:04")
}

// reduced are the edges without those from an SBDefinition to a block that also lead
// through an SBInstance.
func (f *relatives) reduced() []edge {
	has := func(a, b oda.Ref) bool {
		return slices.Contains(f.edges, edge{a, b}) || slices.Contains(f.edges, edge{b, a})
	}
	return slices.DeleteFunc(slices.Clone(f.edges), func(e edge) bool {
		kinds := [...]oda.Kind{e.from.Kind, e.to.Kind}
		if !slices.Contains(kinds[:], oda.SBDefinition) || !slices.Contains(kinds[:], oda.ExecutionBlock) {
			return false
		}
		return slices.ContainsFunc(f.order, func(between oda.Ref) bool {
			return between.Kind == oda.SBInstance && has(between, e.from) && has(between, e.to)
		})
	})
}
