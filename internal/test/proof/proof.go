// Package proof says how long tests are: "make proof" runs them at their full length.
package proof

import "os"

// Running reports whether "make proof" runs the tests.
func Running() bool { return os.Getenv("ODA_PROOF") != "" }

// Rounds returns how often a test repeats something: full times in "make proof", else
// few times.
func Rounds(few, full int) int {
	if Running() {
		return full
	}
	return few
}
