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

// enoughIn bounds how long a test waits until all has occurred that it wants to see.
const enoughIn = 2 * time.Minute

// playing plays in the background while the test harms the archive: for the given time,
// and on a slow machine on until each of the named operations has occurred. The test must
// stop its harm when over is closed. outcome then checks that the games can be explained,
// and that their entities stay as they are.
func playing(t *testing.T, target Target, o Options, names ...string) (over <-chan struct{}, outcome func()) {
	t.Helper()
	begun, length := time.Now(), length(t)
	ended := make(chan struct{})
	report := &Report{Counts: make(map[string]int)}
	var err error
	go func() {
		defer close(ended)
		for enough := false; !enough && err == nil; {
			ctx, cancel := context.WithTimeout(context.Background(), length)
			var more *Report
			more, err = Play(ctx, target, o)
			cancel()
			report.merge(more)
			enough = report.Enough(names...) == nil || time.Since(begun) > enoughIn
		}
	}()
	return ended, func() {
		t.Helper()
		<-ended
		t.Log(report)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(report.Verify(context.Background()), report.Enough(names...)); err != nil {
			t.Error(err)
		}
	}
}
