package follow

import (
	"context"
	"net/url"
	"os"
	"testing"
	"time"

	"oda/internal/test/env"
	"oda/internal/test/must"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m)) }

// lengthVariable sets how long faults are inflicted in each test. The default
// suits every test run; "make feed" sets minutes.
const lengthVariable = "ODA_FEED"

const defaultLength = 2 * time.Second

// endTime bounds the end of a proof, beside the length of its faults.
const endTime = 5 * time.Minute

func length(tb testing.TB) time.Duration {
	tb.Helper()
	return env.Length(tb, lengthVariable, defaultLength)
}

// rounds calls each of the faults once, in turn, and again until the time is
// over. Between two of them everything goes on.
func rounds(t *testing.T, p *proof, faults ...func()) {
	t.Helper()
	begun := time.Now()
	for n := 0; n < len(faults) || time.Since(begun) < length(t); n++ {
		mustGoOn(t, p)
		faults[n%len(faults)]()
	}
	mustGoOn(t, p)
}

func mustGoOn(t *testing.T, p *proof) {
	t.Helper()
	must.Do(t, p.goesOn(t.Context()))
}

// start begins a proof, which ends at the latest with the test.
func start(t *testing.T, writeAt, followAt []string) *proof {
	t.Helper()
	p := must.Get(begin(writeAt, followAt))(t)
	t.Cleanup(func() { _ = p.close() })
	return p
}

// nothingMissed ends the proof at a server, and checks that enough happened.
func nothingMissed(t *testing.T, p *proof, host string, actions ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), endTime)
	defer cancel()
	report, err := p.end(ctx, host)
	t.Log(report)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.enough(actions...); err != nil {
		t.Error(err)
	}
}

func hosts(processes ...*env.Process) []string {
	var all []string
	for _, p := range processes {
		all = append(all, p.Host())
	}
	return all
}

// hostOf returns the server in a URL, as host:port.
func hostOf(t *testing.T, dsn string) string {
	t.Helper()
	u := must.Get(url.Parse(dsn))(t)
	return u.Host
}
