// Package load sends HTTP requests to a server and measures the answers.
//
// On a machine with few cores the generator competes with the server that it
// measures, so it must take little: it speaks just enough HTTP/1.1 over plain
// connections, a goroutine each, writes a request with one call, reads an
// answer with one call where it arrives in one piece, and allocates nothing in
// between.
//
// There are two kinds of load. Closed keeps a number of connections busy, each
// sending its next request when it has its answer: it finds the most that a
// server can do. Open sends at a constant rate, whatever the answers do, as a
// telescope does, and counts latency from the moment at which a request was
// due. When a server stands still for a moment, a closed load sends nothing
// and so sees one slow answer per connection; an open load sees every request
// that had to wait.
package load

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oda/bench/measure"
)

// Worker is one connection's share of the work. It is used by one goroutine.
type Worker interface {
	// Next appends the bytes of the next whole HTTP/1.1 request to buf.
	Next(buf []byte) []byte
	// Answered is given the answer, and returns an error if that is not the
	// expected one. Such an operation counts as failed, and the first error
	// is kept. It is not called where no whole answer arrived.
	Answered(a *Answer) error
}

// Answer is what came back for one request. Its bytes are valid until Answered
// returns.
type Answer struct {
	Status int
	// Header is all lines of the header as received, the status line first.
	Header []byte
	// Body has no chunk marks. It is empty where the target discards bodies.
	Body []byte
	// Size is the length of the body, kept or not.
	Size int64
	// FirstByte is the time from sending to the first bytes of the answer.
	FirstByte time.Duration
}

// Target is a server and the work to give to it.
type Target struct {
	// Addr is host and port; Also names further servers that share the
	// work: connection i goes to the i-th of them, in turn.
	Addr        string
	Also        []string
	Connections int
	// New makes the worker of connection i.
	New func(i int) Worker
	// Discard counts bodies without keeping them: for answers too large to
	// hold.
	Discard bool
	// Patience is how long an answer may take before its request counts as
	// failed; up to a tenth longer is granted. Zero is ten seconds.
	Patience time.Duration
}

// Closed keeps every connection busy: the next request follows the answer. The
// connections are made before the clock starts. A request that has been sent
// when the time is up is waited for and counted.
//
// An error means that nothing could be measured; single failed requests are in
// the sample.
func Closed(ctx context.Context, t Target, length time.Duration) (measure.Sample, error) {
	return run(ctx, t, func(start time.Time) schedule {
		return &backToBack{end: start.Add(length)}
	})
}

// Open sends at a constant rate (in a second) whatever the answers do; latency
// counts from the moment at which a request was due, so that a stall is seen
// (coordinated omission). A request goes to whichever connection is free, so
// Connections bounds how many can wait for the server at a time.
//
// What is still waiting to be sent two seconds after the time was up counts as
// failed: the server does not keep up with the rate.
func Open(ctx context.Context, t Target, rate float64, length time.Duration) (measure.Sample, error) {
	if rate <= 0 {
		return measure.Sample{}, fmt.Errorf("a rate of %v requests in a second cannot be sent", rate)
	}
	return run(ctx, t, func(start time.Time) schedule {
		return newConstantRate(start, rate, length)
	})
}

// check says what is wrong with a target.
func (t Target) check() error {
	switch {
	case t.Connections < 1:
		return errors.New("a target needs at least one connection")
	case t.New == nil:
		return errors.New("a target needs workers")
	}
	return nil
}

// addr is where connection i goes.
func (t Target) addr(i int) string {
	if n := i % (1 + len(t.Also)); n > 0 {
		return t.Also[n-1]
	}
	return t.Addr
}
