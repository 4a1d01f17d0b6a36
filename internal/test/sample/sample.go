// Package sample has an archive for tests in which there is something of everything, with
// what the archive answered while it was filled. Whatever happens to the archive after
// that, its answers must stay the same.
package sample

// Engines lists the engines, as tests name them.
var Engines = []string{"sqlite", "postgres"}

// Archive is what an archive answered.
type Archive struct {
	// States are the states of all entities in the order of the writes: the
	// answer to a GET after each.
	States []State

	// Answers are the answers to other reading requests to the finished
	// archive.
	Answers []Answer

	// Keyed are requests with idempotency keys, and their answers. Sent again
	// they get the same answers.
	Keyed []Answer
}

// State is an entity as returned by GET.
type State struct {
	Path string // below /api/v1, such as /sbds/sbd-1
	Text string
	Tag  string // ETag
}

// Answer is a request and its answer, with status 200.
type Answer struct{ Method, Path, User, Key, Body, Text string }

// Current returns the last state of each entity, in the order in which the
// entities were first stored.
func (a *Archive) Current() []State {
	places := make(map[string]int)
	var current []State
	for _, s := range a.States {
		i, known := places[s.Path]
		if !known {
			i = len(current)
			places[s.Path] = i
			current = append(current, State{})
		}
		current[i] = s
	}
	return current
}
