package oda

import "strconv"

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

// kindWords has the words for a kind, at the index of its number.
var kindWords = [...]kindWord{
	SBDefinition:   {"SBDefinition", "sbds", "sbd_id", "sbd"},
	SBInstance:     {"SBInstance", "sbis", "sbi_id", "sbi"},
	ExecutionBlock: {"ExecutionBlock", "ebs", "eb_id", "eb"},
	Project:        {"Project", "prjs", "prj_id", "prj"},
}

// String is the name of the kind as the specification spells it.
func (k Kind) String() string { return k.words().name }

// words gives the words for a kind. A damaged archive may name one that there is
// not, which has words as well, so that it can be told of.
func (k Kind) words() kindWord {
	if k < SBDefinition || k > Project {
		number := strconv.Itoa(int(k))
		return kindWord{"kind " + number, "kind-" + number, "id", "kind"}
	}
	return kindWords[k]
}

// Collection is the path segment of the kind's collection.
func (k Kind) Collection() string { return k.words().collection }

// IDField is the member of a document that holds its identifier. It is also
// the name of the path parameter.
func (k Kind) IDField() string { return k.words().idField }

// Prefix is the first part of a generated identifier, and the type that the
// identifier service is asked for.
func (k Kind) Prefix() string { return k.words().prefix }

// KindOf gives the kind whose collection has the given name.
func KindOf(collection string) (Kind, bool) {
	for _, k := range Kinds {
		if k.Collection() == collection {
			return k, true
		}
	}
	return 0, false
}

// Ref names one entity. Identifiers are unique per kind only.
type Ref struct {
	Kind Kind
	ID   string
}
