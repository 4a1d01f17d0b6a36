package recorder_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"oda/client/recorder"
	"oda/internal/test/env"
)

// conditions are the states of the archive in which the cost of a record is
// measured.
var conditions = []string{"up", "slow", "down"}

// slowness is the delay of a slow archive.
const slowness = 200 * time.Millisecond

// under returns a recorder whose archive is in this condition. The archive is a
// separate process.
func under(tb testing.TB, condition string) *recorder.Recorder {
	tb.Helper()
	network := newRelay(tb)
	network.point(env.Oda(tb, "serve").Host())
	rec, _ := opened(tb, clientOf(tb, network.address()), recorder.Options{Dir: benchDir(tb)})
	switch condition {
	case "slow":
		network.slow(slowness)
	case "down":
		network.point("")
	}
	return rec
}

// benchDir returns a folder for the spools of measurements, in
// RECORDER_BENCH_DIR or in the default temporary folder.
func benchDir(tb testing.TB) string {
	tb.Helper()
	if parent := os.Getenv("RECORDER_BENCH_DIR"); parent != "" {
		dir, err := os.MkdirTemp(parent, "recorder-")
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = os.RemoveAll(dir) })
		return dir
	}
	return tb.TempDir()
}

// cost is how long the caller of Record waits.
type cost struct{ p50, p99, max time.Duration }

func (c cost) String() string {
	return fmt.Sprintf("%8v %8v %8v", c.p50.Round(100*time.Nanosecond), c.p99.Round(100*time.Nanosecond), c.max.Round(time.Microsecond))
}

// measure records calls at the pace of a busy script, and returns their cost.
func measure(tb testing.TB, rec *recorder.Recorder, calls int) cost {
	tb.Helper()
	const pace = time.Millisecond
	took := make([]time.Duration, calls)
	for i := range took {
		record := numbered(i)
		begun := time.Now()
		if err := rec.Record(record); err != nil {
			tb.Fatal(err)
		}
		took[i] = time.Since(begun)
		time.Sleep(pace)
	}
	slices.Sort(took)
	return cost{took[calls/2], took[calls*99/100], took[calls-1]}
}

// A caller must not notice that a call is recorded, whatever the archive does.
// The best of several rounds counts, since other load may spoil one.
// docs/recording.md shows the table.
func TestRecordingCostsTheCallerAlmostNothing(t *testing.T) {
	env.ProofOnly(t)
	const rounds, calls = 5, 1000
	table := "archive    p50      p99      max\n"
	for _, condition := range conditions {
		best := measure(t, under(t, condition), calls)
		for round := 1; round < rounds && best.p99 > recordBound; round++ {
			if got := measure(t, under(t, condition), calls); got.p99 < best.p99 {
				best = got
			}
		}
		table += fmt.Sprintf("%-5s %v\n", condition, best)
		if best.p99 > recordBound {
			t.Errorf("archive %s: one percent of the calls take %v or more, want at most %v", condition, best.p99, recordBound)
		}
	}
	t.Logf("cost of Record, %d calls, one each millisecond:\n%s", calls, table)
}

// BenchmarkRecorder measures the cost of Record at full speed, and its
// percentiles.
func BenchmarkRecorder(b *testing.B) {
	for _, condition := range conditions {
		b.Run(condition, func(b *testing.B) {
			rec := under(b, condition)
			took := make([]time.Duration, 0, b.N)
			for b.Loop() {
				begun := time.Now()
				if err := rec.Record(numbered(7)); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(begun))
			}
			slices.Sort(took)
			for name, at := range map[string]int{"p50-µs": len(took) / 2, "p99-µs": len(took) * 99 / 100, "max-µs": len(took) - 1} {
				b.ReportMetric(float64(took[at].Nanoseconds())/1000, name)
			}
		})
	}
}
