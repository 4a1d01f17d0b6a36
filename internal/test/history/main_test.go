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

// lengthVariable says how long the engines are played against. The default is
// for every day; minutes are for "make linear".
const lengthVariable = "ODA_LINEAR"

const defaultLength = 6 * time.Second

func length(tb testing.TB) time.Duration {
	tb.Helper()
	text := os.Getenv(lengthVariable)
	if text == "" {
		return defaultLength
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		tb.Fatalf("%s=%q is no length of time; write it as 30s or 5m", lengthVariable, text)
	}
	return d
}

// playing plays in the background until the time is over, while the test does
// what it likes to the archive. The function gives the outcome.
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

// sound demands that what was played can be explained, is still there when all
// faults are over, and has one of each of the named operations.
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
