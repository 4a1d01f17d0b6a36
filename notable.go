package oda

import (
	"cmp"
	"strings"
)

// CallKeys is what a record's call is found by. A call is notable if it has failed or
// lasted long: then indexes have it.
type CallKeys struct {
	Day     Day        // DayOfRecording if the record does not say when the call was made
	Notable *CallEntry // as far as the record says; else nil
}

// LongCall is how long a call lasts that can be found in progress.
const LongCall Elapsed = 1_000_000

// LongestCall is how long ago a call that is found in progress may have been sent.
const LongestCall Elapsed = 24 * 60 * 60 * 1_000_000

// KeysOfCall returns what the call of a record is found by.
func KeysOfCall(record []byte) CallKeys {
	c := CallOf(record)
	k := CallKeys{Day: DayOfRecording}
	if at := c.At(unsaid); at != unsaid {
		k.Day = DayOf(at)
	}
	if took, _ := c.Took(); c.Failed || took >= LongCall {
		k.Notable = notable(c)
	}
	return k
}

// notable returns an entry that shares memory with its copy of the call, so that no other
// call takes memory of its own.
func notable(c Call) *CallEntry {
	e := c.entry()
	return &e
}

// KeysOfCalls returns what the call of each record is found by.
func KeysOfCalls(records [][]byte) []CallKeys {
	keys := make([]CallKeys, len(records))
	for i, text := range records {
		keys[i] = KeysOfCall(text)
	}
	return keys
}

// IsLong reports whether the call can be found in progress.
func (e *CallEntry) IsLong() bool { return e.Took != nil && *e.Took >= LongCall }

// Recorded returns the call as it is once its record has been written.
func (e CallEntry) Recorded(block string, sequence int64, by string, on Instant) CallEntry {
	e.Block, e.Sequence, e.By = block, sequence, by
	if e.At == unsaid {
		e.At = on
	}
	return e
}

// CallPlace is the place of a call in the order of their times.
type CallPlace struct {
	At       Instant
	Block    string
	Sequence int64
}

// Compare orders places by their times, then by block and sequence number.
func (p CallPlace) Compare(other CallPlace) int {
	return cmp.Or(cmp.Compare(p.At, other.At), strings.Compare(p.Block, other.Block), cmp.Compare(p.Sequence, other.Sequence))
}

// Place returns the place of the call.
func (e *CallEntry) Place() CallPlace { return CallPlace{e.At, e.Block, e.Sequence} }

// CallRange asks for calls whose times are from From until just before To, in the order
// of their places. A text that is empty is not asked for.
type CallRange struct {
	From, To  Instant
	Behind    *CallPlace // where to go on; nil: at the beginning
	Backwards bool

	Block, Function, Error, Device string
}
