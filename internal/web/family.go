package web

import (
	"cmp"
	"context"
	"slices"

	"oda"
)

// family is the entities around one: what it refers to, what refers to it, and
// the way up to the Project.
type family struct {
	name   string // of the SBDefinition that it is of
	Nodes  []relative
	Edges  []edge
	Behind []behind // what refers to the entity, by kind
}

// relative is an entity in a family.
type relative struct {
	oda.Ref
	Name   string
	Title  string // the name, or that of the SBDefinition it is of
	Began  string // when a block made its first call, if it did
	Exists bool
	Self   bool
}

// edge is a reference between two of the nodes.
type edge struct{ from, to oda.Ref }

// behind is what refers to an entity, of one kind.
type behind struct {
	Kind oda.Kind
	Rows []oda.Found
	All  string // address of all of them
	More bool   // there are more than these
}

// Bounds of a family.
const (
	shownBehind   = 8
	shownChildren = 40 // entities that a Project names
	shownBegins   = 16 // blocks of which the first call is read
)

// relatives gathers a family.
type relatives struct {
	site  *Site
	self  oda.Ref
	nodes map[oda.Ref]*relative
	order []oda.Ref
	edges []edge
}

// family finds the entities around one. The summary is that of the version that
// is shown; the others are as they are now.
func (s *Site) family(ctx context.Context, ref oda.Ref, summary *oda.Summary) (family, error) {
	all := relatives{site: s, self: ref, nodes: map[oda.Ref]*relative{}}
	all.add(relative{Ref: ref, Name: summary.Name, Exists: true, Self: true})
	self := &oda.Found{Ref: ref, Summary: *summary}
	found, err := all.follow(ctx, self)
	if err != nil {
		return family{}, err
	}
	var f family
	for _, kind := range ref.Kind.Referring() {
		b, err := all.behind(ctx, kind)
		if err != nil {
			return family{}, err
		}
		if len(b.Rows) > 0 {
			f.Behind = append(f.Behind, b)
		}
		for i := range b.Rows {
			found = append(found, &b.Rows[i])
		}
	}
	if err := all.up(ctx, found); err != nil {
		return family{}, err
	}
	all.join(found)
	if err := all.describe(ctx, append([]*oda.Found{self}, found...)); err != nil {
		return family{}, err
	}
	for _, ref := range all.order {
		node := all.nodes[ref]
		f.Nodes = append(f.Nodes, *node)
		if ref.Kind == oda.SBDefinition && f.name == "" && all.self.Kind != oda.Project {
			f.name = node.Name
		}
	}
	f.Nodes[0].Title = cmp.Or(f.Nodes[0].Title, f.name) // as the page has it
	f.Edges = all.reduced()
	return f, nil
}

// describe gives those that were found their titles, and says when blocks began: uses of
// one SBDefinition cannot be told apart by its name.
func (f *relatives) describe(ctx context.Context, found []*oda.Found) error {
	titles, err := f.site.titles(ctx, found)
	if err != nil {
		return err
	}
	for _, node := range f.nodes {
		node.Title = node.Name
	}
	begins := 0
	for i, one := range found {
		node := f.nodes[one.Ref]
		node.Title = titles[i]
		if node.Kind == oda.ExecutionBlock && node.Began == "" && begins < shownBegins {
			begins++
			node.Began = f.site.began(ctx, node.ID)
		}
	}
	for _, one := range found { // a block may name its SBDefinition only through an SBInstance
		for _, r := range one.Summary.References {
			if through := f.nodes[oda.Ref{Kind: r.Kind, ID: r.ID}]; through != nil && r.Kind == oda.SBInstance && one.Kind == oda.ExecutionBlock {
				node := f.nodes[one.Ref]
				node.Title = cmp.Or(node.Title, through.Title)
			}
		}
	}
	return nil
}

// began writes when a block made its first call. It is empty if there is none, or if it
// cannot be read, which the page of the block explains.
func (s *Site) began(ctx context.Context, block string) string {
	page, err := s.recordPage(ctx, block, 0, 1)
	if err != nil || len(page.Records) == 0 {
		return ""
	}
	first := page.Records[0]
	call := oda.CallOf(first.Text)
	return call.At(first.RecordedOn).Time().Format("2006-01-02 15:04")
}

// join connects those that were found with each other.
func (f *relatives) join(found []*oda.Found) {
	for _, one := range found {
		for _, r := range one.Summary.References {
			if to := (oda.Ref{Kind: r.Kind, ID: r.ID}); f.nodes[to] != nil {
				f.connect(one.Ref, to)
			}
		}
	}
}

// reduced are the edges without those that say no more than two others: from an
// SBDefinition to a block, where there is an SBInstance between them.
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

func (f *relatives) add(n relative) {
	if old := f.nodes[n.Ref]; old != nil {
		old.Exists = old.Exists || n.Exists
		if old.Name == "" {
			old.Name = n.Name
		}
		return
	}
	f.nodes[n.Ref] = &n
	f.order = append(f.order, n.Ref)
}

func (f *relatives) connect(from, to oda.Ref) {
	if e := (edge{from, to}); !slices.Contains(f.edges, e) && !slices.Contains(f.edges, edge{to, from}) {
		f.edges = append(f.edges, e)
	}
}

// follow adds what an entity refers to, and returns what of it is stored.
func (f *relatives) follow(ctx context.Context, from *oda.Found) ([]*oda.Found, error) {
	var refs []oda.Ref
	for _, r := range from.Summary.References {
		ref := oda.Ref{Kind: r.Kind, ID: r.ID}
		if r.Field == "ob_ref" || slices.Contains(refs, ref) || len(refs) == shownChildren {
			continue // a Project is found by what refers to the definition
		}
		refs = append(refs, ref)
	}
	found, err := f.site.cfg.Archive.Look(ctx, refs)
	if err != nil {
		return nil, err
	}
	var stored []*oda.Found
	for i, ref := range refs {
		n := relative{Ref: ref}
		if found[i] != nil {
			n.Name, n.Exists = found[i].Summary.Name, true
			stored = append(stored, found[i])
		}
		f.add(n)
		f.connect(from.Ref, ref)
	}
	return stored, nil
}

// behind adds what refers to the entity itself, the newest of it.
func (f *relatives) behind(ctx context.Context, kind oda.Kind) (behind, error) {
	b := behind{Kind: kind, All: "../" + kind.Collection() + "?ref=" + f.self.ID}
	q := oda.Search{Kind: kind, Reference: f.self.ID, Limit: shownBehind}
	page, err := f.site.cfg.Archive.Search(ctx, &q)
	if err != nil {
		return b, err
	}
	b.More = page.Next != ""
	for _, found := range page.Items {
		if !slices.ContainsFunc(found.Summary.References, func(r oda.Reference) bool { return r.Kind == f.self.Kind && r.ID == f.self.ID }) {
			continue // the identifier is that of another kind
		}
		b.Rows = append(b.Rows, found)
		f.add(relative{Ref: found.Ref, Name: found.Summary.Name, Exists: true})
		f.connect(found.Ref, f.self)
	}
	return b, nil
}

// up adds the SBDefinitions of an SBInstance that was found, and the Projects
// of SBDefinitions.
func (f *relatives) up(ctx context.Context, found []*oda.Found) error {
	if f.self.Kind == oda.Project {
		return nil
	}
	for _, one := range found {
		if one.Kind == oda.SBInstance && f.self.Kind == oda.ExecutionBlock {
			if _, err := f.follow(ctx, one); err != nil {
				return err
			}
		}
	}
	for _, ref := range slices.Clone(f.order) {
		if ref.Kind != oda.SBDefinition || ref == f.self {
			continue
		}
		q := oda.Search{Kind: oda.Project, Reference: ref.ID, Limit: 3}
		page, err := f.site.cfg.Archive.Search(ctx, &q)
		if err != nil {
			return err
		}
		for _, project := range page.Items {
			f.add(relative{Ref: project.Ref, Name: project.Summary.Name, Exists: true})
			f.connect(project.Ref, ref)
		}
	}
	return nil
}
