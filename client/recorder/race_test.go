//go:build race

package recorder_test

import "time"

// recordBound is looser where every step is watched for races.
const recordBound = 2 * time.Millisecond
