// Package naming says what things were called. A block has no name of its own: it has that
// of the SBDefinition that it ran. Definitions are renamed, and the past must keep its name,
// so the name is the one that the definition had in the version that ran.
package naming

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"oda"
)

// Version is a version of an entity.
type Version struct {
	oda.Ref
	Number int64       // 0: the one that was current at a time
	At     oda.Instant // the time
}

// Name is the name that an entity has in a version.
type Name struct {
	Text    string // empty: none, or it is not known
	Targets string // what is looked at, in words; empty: nothing, or it is not known
	Version int64  // whose name it is, 0 if it is not known
}

// Engine is what names are read from.
type Engine interface {
	oda.Reader
	oda.Finder
}

// Namer finds names. It is safe for concurrent use.
type Namer struct {
	engine Engine
	turns  oda.Turns // for reading older versions
	known  cache
}

// New returns a Namer for the entities in an engine.
func New(engine Engine) *Namer {
	return &Namer{engine: engine, turns: oda.NewTurns(readersAtOnce)}
}

// Of returns the names of entities: their own, or that of the SBDefinition in the version
// that they are of. An entity may be nil, and then has none.
func (n *Namer) Of(ctx context.Context, entities []*oda.Found) ([]string, error) {
	names, err := n.Called(ctx, entities)
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = name.Text
	}
	return texts, nil
}

// Called returns what Of returns, and the targets that the SBDefinitions have in the same
// versions. What has a name of its own has its own targets.
func (n *Namer) Called(ctx context.Context, entities []*oda.Found) ([]Name, error) {
	unnamed := slices.Clone(entities)
	for i, e := range entities {
		if e != nil && e.Summary.Name != "" {
			unnamed[i] = nil
		}
	}
	versions, err := n.Ran(ctx, unnamed)
	if err != nil {
		return nil, err
	}
	names, err := n.In(ctx, versions)
	if err != nil {
		return nil, err
	}
	for i, e := range entities {
		if e != nil && e.Summary.Name != "" {
			names[i] = nameOf(&e.Summary, e.Metadata.Version)
		}
	}
	return names, nil
}

// namedTargets is how many targets a name has; of the others, it has only the number.
const namedTargets = 3

func nameOf(s *oda.Summary, version int64) Name {
	var names []string
	for _, target := range s.Targets {
		if name := target.Name; name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	targets := strings.Join(names[:min(len(names), namedTargets)], ", ")
	if more := len(names) - namedTargets; more > 0 {
		targets += fmt.Sprintf(" and %d more", more)
	}
	return Name{s.Name, targets, version}
}

// Ran returns the versions of SBDefinitions that blocks and instances are of. It is the zero
// Version for what is of none. If a document does not say which version, it is the one
// that was current when the block or instance was created. A block may leave it to its
// SBInstance to say so.
func (n *Namer) Ran(ctx context.Context, entities []*oda.Found) ([]Version, error) {
	versions := make([]Version, len(entities))
	instances := make([]oda.Ref, len(entities))
	for i, e := range entities {
		if e == nil {
			continue
		}
		versions[i] = definitionOf(e)
		if r := reference(e, oda.SBInstance); r != nil && e.Kind == oda.ExecutionBlock && versions[i].Number == 0 {
			instances[i] = oda.Ref{Kind: r.Kind, ID: r.ID}
		}
	}
	found, err := n.look(ctx, instances)
	if err != nil {
		return nil, err
	}
	for i, instance := range instances {
		if found[instance] == nil {
			continue
		}
		through := definitionOf(found[instance])
		if through.At = entities[i].Metadata.CreatedOn; versions[i].ID == "" || versions[i].Ref == through.Ref {
			versions[i] = through
		}
	}
	return versions, nil
}

// Definition returns the reference to the SBDefinition that an entity is of, nil if it is
// of none. A Project has SBDefinitions, but is of none.
func Definition(of *oda.Found) *oda.Reference {
	if of.Kind == oda.Project {
		return nil
	}
	return reference(of, oda.SBDefinition)
}

func definitionOf(e *oda.Found) Version {
	r := Definition(e)
	if r == nil {
		return Version{}
	}
	return Version{Ref: oda.Ref{Kind: r.Kind, ID: r.ID}, Number: r.Version, At: e.Metadata.CreatedOn}
}

// reference returns the first reference to an entity of a kind, nil if there is none.
func reference(of *oda.Found, to oda.Kind) *oda.Reference {
	at := slices.IndexFunc(of.Summary.References, func(r oda.Reference) bool { return r.Kind == to })
	if at < 0 {
		return nil
	}
	return &of.Summary.References[at]
}

// look looks up entities, each once. It leaves out those without an identifier.
func (n *Namer) look(ctx context.Context, refs []oda.Ref) (map[oda.Ref]*oda.Found, error) {
	found := make(map[oda.Ref]*oda.Found)
	var each []oda.Ref
	for _, ref := range refs {
		if _, asked := found[ref]; !asked && ref.ID != "" {
			found[ref] = nil
			each = append(each, ref)
		}
	}
	if len(each) == 0 {
		return found, nil
	}
	all, err := n.engine.Look(ctx, each)
	if err != nil {
		return nil, err
	}
	for i, one := range all {
		found[each[i]] = one
	}
	return found, nil
}
