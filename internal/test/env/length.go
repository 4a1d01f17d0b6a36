package env

import (
	"os"
	"testing"
	"time"
)

// Length returns how long a test runs: as long as the environment variable says, or
// else the given time, which suits every test run.
func Length(tb testing.TB, variable string, otherwise time.Duration) time.Duration {
	tb.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		tb.Fatalf("%s=%q is not a duration; write it as 30s or 5m", variable, text)
	}
	return d
}
