package engine

import (
	"errors"

	"oda"
)

// What both engines need to load entries of a log.

// DaysOf returns the day of the call of each record that an entry adds.
func DaysOf(e *oda.LogEntry) []oda.Day {
	if !e.Stored() {
		return []oda.Day{oda.CallDay(e.Body.Text).Or(e.On)}
	}
	days := make([]oda.Day, len(e.Came))
	for i := range e.Came {
		days[i] = oda.CallDay(e.Came[i].Text).Or(e.On)
	}
	return days
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
