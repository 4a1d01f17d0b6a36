package history

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"oda/internal/test/env"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m)) }

// lengthVariable sets how long the engines are tested. The default suits every
// test run; "make linear" sets minutes.
const lengthVariable = "ODA_LINEAR"

const defaultLength = 3 * time.Second

func length(tb testing.TB) time.Duration {
	tb.Helper()
	return env.Length(tb, lengthVariable, defaultLength)
}

// playing plays in the background until the time is over, while the test harms
// the archive. outcome waits for the end.
func playing(target Target, o Options, length time.Duration) (over <-chan struct{}, outcome func() (*Report, error)) {
	ctx, cancel := context.WithTimeout(context.Background(), length)
	ended := make(chan struct{})
	var report *Report
	var err error
	go func() {
		defer close(ended)
		defer cancel()
		report, err = Play(ctx, target, o)
	}()
	return ctx.Done(), func() (*Report, error) {
		<-ended
		return report, err
	}
}

// sound checks that the games can be explained, that their entities are
// unchanged when all faults are over, and that each of the named operations
// occurred.
func sound(t *testing.T, outcome func() (*Report, error), names ...string) {
	t.Helper()
	report, err := outcome()
	t.Log(report)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(report.Verify(context.Background()), report.Enough(names...)); err != nil {
		t.Error(err)
	}
}
