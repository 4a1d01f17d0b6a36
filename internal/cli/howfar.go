package cli

import (
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"time"
)

// howFar says how far an export or an import is: how much of how much, the rate, the
// time left, and what was set aside.
func howFar(doing string, done, total, aside int64, took time.Duration) (line string, share float64) {
	line, share = fmt.Sprintf("%s: %s", doing, grouped(done)), -1
	if done > 0 && total > 0 {
		share = min(float64(done)/float64(total), 1)
		rate := float64(done) / took.Seconds()
		left := time.Duration(float64(max(total-done, 0)) / rate * float64(time.Second)).Round(time.Second)
		line = fmt.Sprintf("%s: %s of %s, %.0f %%, %s per second, %s left", doing, grouped(done), grouped(total), 100*share, grouped(int64(rate)), left)
	}
	if aside > 0 {
		line += fmt.Sprintf(", %s set aside", grouped(aside))
	}
	return line, share
}

// frugal keeps the memory of a command small that goes through a whole archive: its
// garbage is much larger than what it holds.
func frugal() { debug.SetGCPercent(40) }

// quietLog returns a log of warnings only.
func quietLog(out io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
