package oda

import (
	"math"
	"slices"
)

// Sort is the order of what a search finds. Entities of the same instant are
// ordered by their identifiers, in the same direction.
type Sort uint8

// The orders.
const (
	NewestFirst Sort = iota // by creation
	OldestFirst
	LastModifiedFirst
	LastModifiedLast
	ByIdentifier
	ByIdentifierReversed
)

var sortNames = [...]string{
	NewestFirst: "-created", OldestFirst: "created", LastModifiedFirst: "-modified", LastModifiedLast: "modified",
	ByIdentifier: "id", ByIdentifierReversed: "-id",
}

// SortNames returns the names of the orders on the wire.
func SortNames() []string { return slices.Clone(sortNames[:]) }

// String returns the name of the order on the wire.
func (s Sort) String() string { return sortNames[s] }

// Descends reports whether the latest instant, or the last identifier, comes
// first.
func (s Sort) Descends() bool {
	return s == NewestFirst || s == LastModifiedFirst || s == ByIdentifierReversed
}

// ByCreation reports whether the order is that of creation.
func (s Sort) ByCreation() bool { return s == NewestFirst || s == OldestFirst }

// ByModification reports whether the order is that of modification.
func (s Sort) ByModification() bool { return s == LastModifiedFirst || s == LastModifiedLast }

// Place returns the place of an entity in the order.
func (s Sort) Place(f *Found) Place {
	switch {
	case s.ByCreation():
		return Place{f.Metadata.CreatedOn, f.ID}
	case s.ByModification():
		return Place{f.Metadata.LastModifiedOn, f.ID}
	}
	return Place{ID: f.ID}
}

// Compare orders two places.
func (s Sort) Compare(a, b Place) int {
	if s.Descends() {
		a, b = b, a
	}
	return a.Compare(b)
}

// Walk asks an engine for entities in an order. It has only filters that the
// index of that order can apply, so that every entity costs the same to read.
// The engine applies them all; whoever asks judges the rest.
type Walk struct {
	Kind      Kind
	Sort      Sort
	Bounds    Span   // of the instant by which the walk is sorted
	User      string // created_by; only if sorted by creation
	Status    string // as FoldStatus returns it; only if sorted by creation and without a user
	Class     Class  // only if sorted by creation, and without a user or a status
	Telescope string // only if sorted by creation, and without any of these
	Behind    *Place // after which the walk begins
	Limit     int
	Bare      bool // without summaries
	Bodies    bool // with version bodies
}

// Range returns the places between which an engine reads its index; it leaves
// both of them out. An empty identifier sorts before all others, beyondIDs after
// all others.
func (w Walk) Range() (low, top Place) {
	low, top = Place{At: math.MinInt64}, Place{At: math.MaxInt64, ID: beyondIDs}
	if w.Bounds.After != nil {
		low = Place{At: *w.Bounds.After}
	}
	if w.Bounds.Before != nil {
		top = Place{At: *w.Bounds.Before, ID: beyondIDs}
	}
	if w.Behind != nil && w.Sort.Descends() && w.Behind.Compare(top) < 0 {
		top = *w.Behind
	}
	if w.Behind != nil && !w.Sort.Descends() && w.Behind.Compare(low) > 0 {
		low = *w.Behind
	}
	return low, top
}

// beyondIDs sorts after every valid identifier.
const beyondIDs = "~"

// Question asks the index for entities of a kind that satisfy all clauses.
type Question struct {
	Kind    Kind
	Clauses []Clause
	Sort    Sort // whose places are wanted
	Most    int  // of the places
}

// Empty reports whether no entity can satisfy the question.
func (q Question) Empty() bool {
	return slices.ContainsFunc(q.Clauses, func(c Clause) bool { return len(c.Any) == 0 })
}
