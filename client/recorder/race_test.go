//go:build race

package recorder_test

import "time"

// recordBound is looser under the race detector.
const recordBound = 2 * time.Millisecond
