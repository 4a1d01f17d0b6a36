//go:build !race

package recorder_test

import "time"

// recordBound is what a call of Record may cost, at the 99th percentile.
const recordBound = 200 * time.Microsecond
