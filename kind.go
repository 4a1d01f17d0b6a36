package oda

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

// kindWords has the words for a kind, at the index of its number.
var kindWords = [...]struct{ name, collection, idField, prefix string }{
	SBDefinition:   {"SBDefinition", "sbds", "sbd_id", "sbd"},
	SBInstance:     {"SBInstance", "sbis", "sbi_id", "sbi"},
	ExecutionBlock: {"ExecutionBlock", "ebs", "eb_id", "eb"},
	Project:        {"Project", "prjs", "prj_id", "prj"},
}

// String is the name of the kind as the specification spells it.
func (k Kind) String() string { return kindWords[k].name }

// Collection is the path segment of the kind's collection.
func (k Kind) Collection() string { return kindWords[k].collection }

// IDField is the member of a document that holds its identifier. It is also
// the name of the path parameter.
func (k Kind) IDField() string { return kindWords[k].idField }

// Prefix is the first part of a generated identifier, and the type that the
// identifier service is asked for.
func (k Kind) Prefix() string { return kindWords[k].prefix }

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
