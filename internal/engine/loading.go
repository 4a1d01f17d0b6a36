package engine

import (
	"errors"

	"oda"
)

// What both engines need to load entries of a log.

// KeysOf returns what the call of each record that an entry adds is found by.
func KeysOf(e *oda.LogEntry) []oda.CallKeys {
	if !e.Stored() {
		return []oda.CallKeys{oda.KeysOfCall(e.Body.Text)}
	}
	keys := make([]oda.CallKeys, len(e.Came))
	for i := range e.Came {
		keys[i] = oda.KeysOfCall(e.Came[i].Text)
	}
	return keys
}

// ListBodies returns records that came with a version as they are written.
func ListBodies(came []oda.Body) []Listed {
	fresh := make([]Listed, len(came))
	for i := range came {
		fresh[i] = Listed{came[i].Text, came[i].Digest}
	}
	return fresh
}

// Reasons for which an entry cannot be loaded.
var (
	ErrKeyTaken = errors.New("the key with which it was created has created another entity here")
	ErrKeyTwice = errors.New("its key was used earlier for the same entity")
)
