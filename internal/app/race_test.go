//go:build race

package app_test

// raceDetector is on; handling many bytes is slow.
const raceDetector = true
