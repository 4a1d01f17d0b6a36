package naming

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"oda"
	"oda/summary"
)

// Bounds of reading older versions. Only of current ones is the name stored beside the
// document.
const (
	readersAtOnce = 2
	readAtOnce    = 2 << 20 // bytes of documents for one question; the next one goes on
	readLeast     = 8 << 10 // that each document counts
	keptNames     = 10_000
)

// In returns the names that entities have in versions. Where a version cannot be read,
// because it is damaged or was never stored, the name is the current one. It is empty
// where the entity is not stored; and where so many older versions have to be read that it
// is left to the next question, which finds what was read before.
func (n *Namer) In(ctx context.Context, versions []Version) ([]Name, error) {
	refs := make([]oda.Ref, len(versions))
	for i, v := range versions {
		refs[i] = v.Ref
	}
	current, err := n.look(ctx, refs)
	if err != nil {
		return nil, err
	}
	names := make([]Name, len(versions))
	older := make(map[Version][]int)
	for i, v := range versions {
		now := current[v.Ref]
		if now == nil {
			continue
		}
		if names[i] = nameOf(&now.Summary, now.Metadata.Version); !v.isOlder(now.Metadata) {
			continue
		}
		switch {
		case v.Number > 0:
			v.At = 0
		case v.At < now.Metadata.CreatedOn: // the archive knows of none before the first
			v = Version{Ref: v.Ref, Number: 1}
		}
		if name, ok := n.known.get(v); ok {
			names[i] = name
			continue
		}
		older[v] = append(older[v], i)
	}
	return names, n.read(ctx, older, names)
}

// isOlder reports whether the version is not the current one.
func (v Version) isOlder(current oda.Metadata) bool {
	if v.Number > 0 {
		return v.Number < current.Version
	}
	return v.At < current.LastModifiedOn && current.Version > 1
}

// read reads older versions, and puts their names in the places that they have.
func (n *Namer) read(ctx context.Context, places map[Version][]int, names []Name) error {
	if len(places) == 0 {
		return nil
	}
	giveBack, err := n.turns.Take(ctx, oda.Errorf(oda.Overloaded, "Too many older versions are read at once. Try again shortly."))
	if err != nil {
		return err
	}
	defer giveBack()
	ctx = oda.WithRoom(ctx, nil) // there is one document in memory for each turn
	var last older
	room := readAtOnce
	for _, v := range sorted(places) {
		if !last.covers(v) {
			if room <= 0 {
				for _, at := range places[v] {
					names[at] = Name{}
				}
				continue
			}
			if last, err = n.older(ctx, v); err != nil {
				return err
			}
			room -= max(last.size, readLeast)
		}
		if last.name.Version == 0 {
			continue
		}
		n.known.keep(v, last.name)
		for _, at := range places[v] {
			names[at] = last.name
		}
	}
	return nil
}

// sorted orders versions so that each is read once, if several times lie in it.
func sorted(places map[Version][]int) []Version {
	all := make([]Version, 0, len(places))
	for v := range places {
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b Version) int {
		return cmp.Or(a.Ref.Compare(b.Ref), cmp.Compare(a.Number, b.Number), cmp.Compare(b.At, a.At))
	})
	return all
}

// older is an older version that was read, without a name if it could not be.
type older struct {
	oda.Ref
	name  Name
	since oda.Instant
	until oda.Instant // a time at which it was current
	size  int
}

// covers reports whether it is the version that was current at a time.
func (o *older) covers(v Version) bool {
	return o.Ref == v.Ref && v.Number == 0 && o.since <= v.At && v.At <= o.until
}

// older reads an older version.
func (n *Namer) older(ctx context.Context, v Version) (older, error) {
	var e *oda.Entity
	var err error
	if v.Number > 0 {
		e, err = n.engine.Version(ctx, v.Ref, v.Number)
	} else {
		e, err = n.engine.AsOf(ctx, v.Ref, v.At)
	}
	switch oda.CodeOf(err) {
	case "":
	case oda.NotFound, oda.DamagedText:
		return older{}, nil
	default:
		return older{}, err
	}
	s, err := summary.OfEntity(e)
	if err != nil {
		return older{}, err
	}
	return older{v.Ref, nameOf(s, e.Metadata.Version), e.Metadata.LastModifiedOn, v.At, len(e.Body.Text) + len(e.Rendered())}, nil
}

// cache keeps the names in older versions, which never change.
type cache struct {
	mu sync.Mutex
	of map[Version]Name
}

func (c *cache) get(v Version) (Name, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name, ok := c.of[v]
	return name, ok
}

// keep keeps a name, in the place of any other if there are too many.
func (c *cache) keep(v Version, name Name) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = make(map[Version]Name)
	}
	for other := range c.of {
		if len(c.of) < keptNames {
			break
		}
		delete(c.of, other)
	}
	v.ID = strings.Clone(v.ID)
	c.of[v] = name
}
