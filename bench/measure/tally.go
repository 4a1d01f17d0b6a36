package measure

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latencies are kept within a hundredth, from a microsecond to ten minutes. A
// thousandth would take seven times the memory for each connection, out of the
// cache that the measured server needs, and runs differ by more.
const (
	shortest = time.Microsecond
	longest  = 10 * time.Minute
	digits   = 2
)

// Tally counts what one goroutine does; it is not for several at once. Each
// goroutine has its own, so that counting costs no lock, and Total joins them
// at the end.
type Tally struct {
	latencies *hdrhistogram.Histogram
	max       time.Duration
	bytes     int64
	failed    int64
	first     error
	firstAt   time.Time
}

// NewTally makes an empty tally.
func NewTally() *Tally {
	return &Tally{latencies: hdrhistogram.New(int64(shortest), int64(longest), digits)}
}

// Done counts an operation that succeeded.
func (t *Tally) Done(took time.Duration, bytes int64) {
	t.max = max(t.max, took)
	t.bytes += bytes
	// The value is within the histogram's bounds, so it cannot be refused.
	_ = t.latencies.RecordValue(int64(min(max(took, shortest), longest)))
}

// Fail counts an operation that failed, and keeps the first reason.
func (t *Tally) Fail(err error) {
	t.FailMany(1, err)
}

// FailMany counts several operations that failed for one reason.
func (t *Tally) FailMany(n int64, err error) {
	if n <= 0 {
		return
	}
	t.failed += n
	if t.first == nil {
		t.first, t.firstAt = err, time.Now()
	}
}

// Total joins tallies into the sample of a run that lasted so long. It takes
// the tallies up: they are not to be used afterwards.
func Total(elapsed time.Duration, tallies ...*Tally) Sample {
	sum := NewTally()
	for _, t := range tallies {
		sum.latencies.Merge(t.latencies)
		sum.max = max(sum.max, t.max)
		sum.bytes += t.bytes
		sum.failed += t.failed
		if t.first != nil && (sum.first == nil || t.firstAt.Before(sum.firstAt)) {
			sum.first, sum.firstAt = t.first, t.firstAt
		}
	}
	quantile := func(percent float64) time.Duration {
		// The histogram answers with the upper end of a step; no latency is
		// longer than the longest seen.
		return min(time.Duration(sum.latencies.ValueAtPercentile(percent)), sum.max)
	}
	sample := Sample{
		Operations: sum.latencies.TotalCount(),
		Failed:     sum.failed,
		Elapsed:    elapsed,
		P50:        quantile(50),
		P90:        quantile(90),
		P99:        quantile(99),
		P999:       quantile(99.9),
		Max:        sum.max,
		Bytes:      sum.bytes,
	}
	if sum.first != nil {
		sample.FirstFailure = sum.first.Error()
	}
	return sample
}
