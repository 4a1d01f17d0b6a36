package env

import (
	"testing"
	"time"

	"oda/internal/test/proof"
)

// InProof reports whether "make proof" runs the tests. They are longer there.
func InProof() bool { return proof.Running() }

// ProofOnly skips a test that takes minutes, or that judges how fast something is,
// unless "make proof" runs it. Busy machines fail such tests without a fault.
func ProofOnly(tb testing.TB) {
	tb.Helper()
	if !InProof() {
		tb.Skip(`only "make proof" runs this test`)
	}
}

// AtMost returns how long a test lets something take that should take at most d. Only
// "make proof" takes d at its word: elsewhere the machine may be busy with anything.
func AtMost(d time.Duration) time.Duration {
	if InProof() {
		return d
	}
	return 10 * d
}
