//go:build race

package client_test

import "time"

// recordBound is looser where every step is watched for races.
const recordBound = 2 * time.Millisecond
