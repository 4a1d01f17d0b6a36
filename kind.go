package oda

import (
	"cmp"
	"fmt"
	"strconv"
)

// Kind is one of the kinds of entity.
type Kind uint8

// The kinds, in the order in which they are shown to people.
const (
	SBDefinition Kind = iota + 1
	SBInstance
	ExecutionBlock
	Project
	Note
)

// Kinds lists every kind.
var Kinds = [...]Kind{SBDefinition, SBInstance, ExecutionBlock, Project, Note}

// kindRules is what differs from one kind to another, as far as one word can say it.
type kindRules struct {
	name, short, collection, idField, prefix string

	// What recorders may do. Editors may do everything.
	begin        bool  // store a new one
	change, tell Whose // store a next version, and say a status

	// anywhere says that roles bound to telescopes may also write documents that have
	// no telescope.
	anywhere bool
}

// rules has the rules of each kind.
var rules = [...]kindRules{
	SBDefinition:   {name: "SBDefinition", short: "SBD", collection: "sbds", idField: "sbd_id", prefix: "sbd"},
	SBInstance:     {name: "SBInstance", short: "SBI", collection: "sbis", idField: "sbi_id", prefix: "sbi", tell: Everybodys},
	ExecutionBlock: {name: "ExecutionBlock", short: "EB", collection: "ebs", idField: "eb_id", prefix: "eb", begin: true, tell: Everybodys},
	Project:        {name: "Project", short: "PRJ", collection: "prjs", idField: "prj_id", prefix: "prj", anywhere: true},
	Note: {
		name: "Note", short: "Note", collection: "notes", idField: "note_id", prefix: "note",
		begin: true, change: TheirOwn, tell: TheirOwn, anywhere: true,
	},
}

// Whose says whose entities of a kind somebody may write to.
type Whose uint8

// Whose entities they can be.
const (
	Nobodys Whose = iota
	TheirOwn
	Everybodys
)

// known reports whether there is such a kind. A damaged archive may name others.
func (k Kind) known() bool { return k >= SBDefinition && int(k) < len(rules) }

// String returns the name of the kind as the specification spells it.
func (k Kind) String() string { return k.rules().name }

// rules returns the rules of a kind. One that does not exist gets words too, so that
// messages can name it.
func (k Kind) rules() *kindRules {
	if !k.known() {
		number := strconv.Itoa(int(k))
		return &kindRules{name: "kind " + number, short: "kind " + number, collection: "kind-" + number, idField: "id", prefix: "kind"}
	}
	return &rules[k]
}

// Short returns the word for the kind in the names of operations.
func (k Kind) Short() string { return k.rules().short }

// Collection returns the path segment of the kind's collection.
func (k Kind) Collection() string { return k.rules().collection }

// IDField returns the member of a document that holds its identifier. It is also
// the name of the path parameter.
func (k Kind) IDField() string { return k.rules().idField }

// Prefix returns the first part of a generated identifier. It is also the type
// that the identifier service is asked for.
func (k Kind) Prefix() string { return k.rules().prefix }

// RecordersBegin reports whether recorders may store a new entity of the kind.
func (k Kind) RecordersBegin() bool { return k.rules().begin }

// RecordersChange returns of whose entities recorders may store the next version.
func (k Kind) RecordersChange() Whose { return k.rules().change }

// RecordersTell returns of whose entities recorders may say a status.
func (k Kind) RecordersTell() Whose { return k.rules().tell }

// Collections returns the collections of all kinds, for messages: "sbds, sbis and ebs".
func Collections() string {
	text := Kinds[0].Collection()
	for _, k := range Kinds[1 : len(Kinds)-1] {
		text += ", " + k.Collection()
	}
	return text + " and " + Kinds[len(Kinds)-1].Collection()
}

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
