package env

import (
	"testing"

	"oda/internal/test/load"
	"oda/internal/test/must"
)

// Load is writers at work on an archive, which a test harms meanwhile. Its methods
// end the test if they fail.
type Load struct {
	*load.Load
	tb testing.TB
}

// NewLoad starts writers at servers, given as host:port. They end with the test.
func NewLoad(tb testing.TB, o load.Options, hosts ...string) *Load {
	tb.Helper()
	l := must.Get(load.Start(o, hosts...))(tb)
	tb.Cleanup(l.Stop)
	return &Load{l, tb}
}

// More waits until more is acknowledged.
func (l *Load) More() {
	l.tb.Helper()
	must.Do(l.tb, l.GoesOn(l.tb.Context()))
}

// Whole ends the load, and demands that the server at host:port has what it should.
// Each of these actions must have occurred.
func (l *Load) Whole(host string, actions ...string) {
	l.tb.Helper()
	l.Pause()
	stored, err := l.Read(l.tb.Context(), host)
	if err == nil {
		err = l.Check(stored)
	}
	if err != nil {
		l.tb.Error(err)
	}
	if err := l.Enough(actions...); err != nil {
		l.tb.Error(err)
	}
	l.tb.Log(l)
}
