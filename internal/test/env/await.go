package env

import (
	"testing"
	"time"
)

// patience bounds every wait of a test. The machine may be busy.
const patience = 2 * time.Minute

// Await waits until something is so.
func Await(tb testing.TB, what string, so func() bool) {
	tb.Helper()
	for late := time.Now().Add(patience); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(late) {
			tb.Fatalf("not within %v: %s", patience, what)
		}
	}
}
