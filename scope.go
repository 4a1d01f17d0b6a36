package oda

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// Scope says which entities are exported, each with its whole history. The zero value
// is everything.
type Scope struct {
	Kind    Kind     // only of this kind; 0: of all
	Since   *Instant // only what was stored or recorded into since
	Project string   // only this Project and what hangs on it
}

// ParseScope parses the parameters of an export.
func ParseScope(params map[string][]string) (Scope, error) {
	p := Params{Values: params}
	var s Scope
	if name, given := p.One("kind"); given {
		var known bool
		if s.Kind, known = KindOf(name); !known {
			p.Fault("kind", "must be one of sbds, sbis, ebs and prjs")
		}
	}
	s.Since = p.Instant("since", true)
	if id, given := p.One("prj_id"); given {
		if s.Project = id; !ValidID(id) {
			p.Fault("prj_id", "is not a valid identifier")
		}
	}
	if err := p.Err("Invalid query"); err != nil {
		return Scope{}, err
	}
	return s, nil
}

// Mover returns what reads and writes the log with everything in it.
func (a *Archive) Mover() Mover { return a.engine }

// Scope returns the position up to which an export reads, and which entities it
// takes.
func (a *Archive) Scope(ctx context.Context, s Scope) (until Position, wanted func(Ref) bool, err error) {
	if until, err = a.engine.End(ctx); err != nil {
		return 0, nil, err
	}
	filters := []func(Ref) bool{}
	if s.Kind != 0 {
		filters = append(filters, func(ref Ref) bool { return ref.Kind == s.Kind })
	}
	if s.Since != nil {
		changed, err := a.changedSince(ctx, *s.Since, s.Kind)
		if err != nil {
			return 0, nil, err
		}
		filters = append(filters, changed.has)
	}
	if s.Project != "" {
		hanging, err := a.hangingOn(ctx, s.Project)
		if err != nil {
			return 0, nil, err
		}
		filters = append(filters, func(ref Ref) bool { return hanging[ref] })
	}
	return until, func(ref Ref) bool {
		for _, wants := range filters {
			if !wants(ref) {
				return false
			}
		}
		return true
	}, nil
}

// refSet is a set of many entities: their hashes, sorted. By a rare chance it has one
// more.
type refSet []uint64

// Hash returns a number for an entity. Two entities have the same only by a rare
// chance.
func (r Ref) Hash() uint64 {
	sum := sha256.Sum256(append([]byte{byte(r.Kind)}, r.ID...))
	return binary.BigEndian.Uint64(sum[:])
}

func (s refSet) has(ref Ref) bool {
	_, found := slices.BinarySearch(s, ref.Hash())
	return found
}

// changedSince returns the entities that were modified at an instant or later.
func (a *Archive) changedSince(ctx context.Context, since Instant, only Kind) (refSet, error) {
	var changed refSet
	for _, kind := range Kinds {
		if only != 0 && kind != only {
			continue
		}
		q := Query{Kind: kind, Order: ByModification, After: &since, Limit: MaxLimit}
		for {
			next, err := a.List(ctx, q, func(id string) error {
				changed = append(changed, Ref{kind, id}.Hash())
				return nil
			})
			if err != nil {
				return nil, err
			}
			if next == nil {
				break
			}
			q.Start = next
		}
	}
	slices.Sort(changed)
	return slices.Compact(changed), nil
}

// hangingOn returns a Project and everything that hangs on it: its SBDefinitions, what
// they were prepared as, and what was done with them.
func (a *Archive) hangingOn(ctx context.Context, project string) (map[Ref]bool, error) {
	top := Ref{Project, project}
	found, err := a.Look(ctx, []Ref{top})
	if err != nil {
		return nil, err
	}
	if found[0] == nil {
		return nil, Missing(top)
	}
	hanging := map[Ref]bool{top: true}
	ring := []*Found{found[0]}
	for len(ring) > 0 {
		var next []*Found
		add := func(f *Found) {
			if f != nil && !hanging[f.Ref] {
				hanging[f.Ref] = true
				next = append(next, f)
			}
		}
		for _, one := range ring {
			if one.Damage != nil {
				return nil, one.Damage // nobody knows what hangs on it
			}
			if err := a.below(ctx, one, add); err != nil {
				return nil, err
			}
		}
		ring = next
	}
	return hanging, nil
}

// below calls add for what hangs directly on an entity.
func (a *Archive) below(ctx context.Context, one *Found, add func(*Found)) error {
	var down []Ref
	for _, r := range one.Summary.References {
		if one.Kind == Project && r.Kind == SBDefinition || one.Kind == SBInstance && r.Kind == ExecutionBlock {
			down = append(down, Ref{r.Kind, r.ID})
		}
	}
	slices.SortFunc(down, func(a, b Ref) int { return cmp.Compare(a.ID, b.ID) })
	for some := range slices.Chunk(slices.Compact(down), tracedAtOnce) {
		found, err := a.Look(ctx, some)
		if err != nil {
			return err
		}
		for _, f := range found {
			add(f)
		}
	}
	names := append([]string{one.ID}, one.Summary.Blocks...)
	for _, kind := range one.Kind.Referring() {
		if kind == Project || one.Kind == ExecutionBlock {
			continue // what it hangs on itself
		}
		for _, name := range names {
			if err := a.referringTo(ctx, kind, Ref{one.Kind, name}, add); err != nil {
				return err
			}
		}
	}
	return nil
}

// referringTo calls add for the entities of a kind that refer to another.
func (a *Archive) referringTo(ctx context.Context, kind Kind, to Ref, add func(*Found)) error {
	q := &Search{Kind: kind, Reference: to.ID, Sort: ByIdentifier, Limit: MaxSearchLimit}
	for {
		page, err := a.Search(ctx, q)
		if err != nil {
			return err
		}
		items := page.Items
		for {
			for i := range items {
				f := items[i]
				if slices.ContainsFunc(f.Summary.References, func(r Reference) bool { return r.Kind == to.Kind && r.ID == to.ID }) {
					add(&f)
				}
			}
			if items, err = a.More(ctx, q, page); err != nil {
				return err
			}
			if len(items) == 0 {
				break
			}
		}
		if page.Next == "" {
			return nil
		}
		next, _ := readSearchCursor(page.Next)
		q = &next
	}
}
