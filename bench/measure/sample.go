// Package measure turns runs into numbers that can be trusted on a noisy
// machine.
//
// What is compared are arms: the archive, a bare server, another product. One
// run of one arm gives a Sample. Arms are measured in turn, A B C A B C, so
// that what else the machine does meets all of them alike, and are compared
// round by round: neighbours in time share their weather. What is reported is
// the median with the smallest and the largest value beside it, never a single
// run and never a mean over runs.
//
// The package knows nothing of HTTP: package load produces samples from a
// server, Func from any function.
package measure

import "time"

// Sample is one measurement of one arm.
type Sample struct {
	// Operations counts what succeeded. What failed is not in it, and not in
	// the latencies: a quick refusal must not pass for a quick answer.
	Operations int64 `json:"operations"`
	Failed     int64 `json:"failed"`
	// FirstFailure says what went wrong first, where something did.
	FirstFailure string        `json:"first_failure,omitempty"`
	Elapsed      time.Duration `json:"elapsed_ns"`
	P50          time.Duration `json:"p50_ns"`
	P90          time.Duration `json:"p90_ns"`
	P99          time.Duration `json:"p99_ns"`
	P999         time.Duration `json:"p999_ns"`
	Max          time.Duration `json:"max_ns"`
	// Bytes is what came back as bodies.
	Bytes int64 `json:"bytes"`
}

// Rate is the number of successful operations in a second.
func (s Sample) Rate() float64 {
	if s.Elapsed <= 0 {
		return 0
	}
	return float64(s.Operations) / s.Elapsed.Seconds()
}

// P50 picks the median latency; for Series.Quantile and QuantileRatio.
func P50(s Sample) time.Duration { return s.P50 }

// P99 picks the latency that 1 in 100 operations exceeds.
func P99(s Sample) time.Duration { return s.P99 }

// P999 picks the latency that 1 in 1,000 operations exceeds.
func P999(s Sample) time.Duration { return s.P999 }
