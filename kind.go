package oda

import (
	"cmp"
	"fmt"
	"strconv"
)

// Kind is one of the four kinds of entity.
type Kind uint8

// The kinds, in the order in which they are shown to people.
const (
	SBDefinition Kind = iota + 1
	SBInstance
	ExecutionBlock
	Project
)

// Kinds lists every kind.
var Kinds = [...]Kind{SBDefinition, SBInstance, ExecutionBlock, Project}

type kindWord struct{ name, collection, idField, prefix string }

// kindWords holds the words for each kind.
var kindWords = [...]kindWord{
	SBDefinition:   {"SBDefinition", "sbds", "sbd_id", "sbd"},
	SBInstance:     {"SBInstance", "sbis", "sbi_id", "sbi"},
	ExecutionBlock: {"ExecutionBlock", "ebs", "eb_id", "eb"},
	Project:        {"Project", "prjs", "prj_id", "prj"},
}

// String returns the name of the kind as the specification spells it.
func (k Kind) String() string { return k.words().name }

// words returns the words for a kind. A damaged archive may name a kind that does
// not exist; it gets words too, so that messages can name it.
func (k Kind) words() kindWord {
	if k < SBDefinition || k > Project {
		number := strconv.Itoa(int(k))
		return kindWord{"kind " + number, "kind-" + number, "id", "kind"}
	}
	return kindWords[k]
}

// Collection returns the path segment of the kind's collection.
func (k Kind) Collection() string { return k.words().collection }

// IDField returns the member of a document that holds its identifier. It is also
// the name of the path parameter.
func (k Kind) IDField() string { return k.words().idField }

// Prefix returns the first part of a generated identifier. It is also the type
// that the identifier service is asked for.
func (k Kind) Prefix() string { return k.words().prefix }

// KindOf returns the kind with the given collection.
func KindOf(collection string) (Kind, bool) {
	for _, k := range Kinds {
		if k.Collection() == collection {
			return k, true
		}
	}
	return 0, false
}

// MarshalText returns the collection, by which JSON names a kind.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.Collection()), nil }

// UnmarshalText parses a collection.
func (k *Kind) UnmarshalText(text []byte) error {
	kind, ok := KindOf(string(text))
	if !ok {
		return fmt.Errorf("there is no collection %.100q", text)
	}
	*k = kind
	return nil
}

// Ref names one entity. Identifiers are unique per kind only.
type Ref struct {
	Kind Kind   `json:"kind"`
	ID   string `json:"id"`
}

// Compare orders entities by kind and identifier. Engines write the entities of one
// request in that order, so their changes come in it.
func (r Ref) Compare(other Ref) int {
	return cmp.Or(cmp.Compare(r.Kind, other.Kind), cmp.Compare(r.ID, other.ID))
}
