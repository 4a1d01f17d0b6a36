//go:build race

package app_test

// raceDetector is on, and makes everything that handles many bytes slow.
const raceDetector = true
