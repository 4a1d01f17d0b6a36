package moving

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"slices"

	"oda"
	"oda/provenance"
)

// Source is an archive that can be exported.
type Source interface {
	oda.Log
	oda.Finder
	Entries(ctx context.Context, until oda.Position, wanted func(oda.Ref) bool, emit func(*oda.LogEntry) error) error
	SaidSince(ctx context.Context, since oda.Instant, emit func(oda.Ref) error) error
}

// Exports writes exports of an archive.
type Exports struct{ From Source }

// Choose decides what an export has, and returns what writes it.
func (e Exports) Choose(ctx context.Context, scope oda.Scope) (write func(context.Context, io.Writer) error, err error) {
	until, wanted, err := Choose(ctx, e.From, scope)
	return func(ctx context.Context, to io.Writer) error {
		_, err := Export(ctx, e.From, until, wanted, to, func(int64) {})
		return err
	}, err
}

// Choose returns the position up to which an export reads, and which entities it
// takes.
func Choose(ctx context.Context, from Source, scope oda.Scope) (until oda.Position, wanted func(oda.Ref) bool, err error) {
	if until, err = from.End(ctx); err != nil {
		return 0, nil, err
	}
	var filters []func(oda.Ref) bool
	if scope.Kind != 0 {
		filters = append(filters, func(ref oda.Ref) bool { return ref.Kind == scope.Kind })
	}
	if scope.Since != nil {
		changed, err := changedSince(ctx, from, *scope.Since, scope.Kind)
		if err != nil {
			return 0, nil, err
		}
		filters = append(filters, changed.has)
	}
	if scope.Project != "" {
		below, err := provenance.New(from).Below(ctx, oda.Ref{Kind: oda.Project, ID: scope.Project})
		if err != nil {
			return 0, nil, err
		}
		filters = append(filters, setOf(below).has)
	}
	return until, func(ref oda.Ref) bool {
		for _, wants := range filters {
			if !wants(ref) {
				return false
			}
		}
		return true
	}, nil
}

// refSet is a set of many entities: their hashes, sorted. If two hashes are equal by a rare
// chance, it has one entity too many.
type refSet []uint64

func setOf(nodes []provenance.Node) refSet {
	set := make(refSet, len(nodes))
	for i, n := range nodes {
		set[i] = hashOf(n.Ref)
	}
	slices.Sort(set)
	return set
}

func (s refSet) has(ref oda.Ref) bool {
	_, found := slices.BinarySearch(s, hashOf(ref))
	return found
}

// hashOf returns a number for an entity. Two entities have the same only by a rare
// chance.
func hashOf(ref oda.Ref) uint64 {
	sum := sha256.Sum256(append([]byte{byte(ref.Kind)}, ref.ID...))
	return binary.BigEndian.Uint64(sum[:])
}

// changedSince returns the entities that were modified, or given a status, at an instant or
// later. It reads the modified ones in pages, which are short.
func changedSince(ctx context.Context, from Source, since oda.Instant, only oda.Kind) (refSet, error) {
	var changed refSet
	for _, kind := range oda.Kinds {
		if only != 0 && kind != only {
			continue
		}
		q := oda.Query{Kind: kind, Order: oda.ByModification, After: &since, Limit: oda.MaxLimit}
		for n := q.Limit; n == q.Limit; {
			n = 0
			err := from.List(ctx, q, func(id string, at oda.Instant) error {
				changed = append(changed, hashOf(oda.Ref{Kind: kind, ID: id}))
				q.Start = &oda.Place{At: at, ID: id}
				n++
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	err := from.SaidSince(ctx, since, func(ref oda.Ref) error {
		changed = append(changed, hashOf(ref))
		return nil
	})
	slices.Sort(changed)
	return slices.Compact(changed), err
}
