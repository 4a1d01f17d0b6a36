package admission

import (
	"oda"
	"oda/internal/measure"
)

// Requests is what the interface has done, and how busy it is.
type Requests struct {
	Operations []Operation
	Problems   map[oda.Code]int64
	Classes    []Stats
	Recorders  Recorders

	Bodies, BodiesMost int64 // bytes that requests take in memory, and may take
	Answers            AnswerStats
}

// Operation counts the requests of an operation that had one outcome.
type Operation struct {
	Operation, Outcome string
	Requests           int64
	Took               *measure.Counts // in nanoseconds; nil if there was none that can be measured
}

// Recorders is what recorders have said lately.
type Recorders struct {
	Blocks  int     // for which they record
	Records int64   // that wait for the archive
	Seconds float64 // age of the oldest of them
}
