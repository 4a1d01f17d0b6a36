//go:build !race

package recorder_test

import "time"

// recordBound is how long a call of Record may take, at the 99th percentile.
const recordBound = 200 * time.Microsecond
