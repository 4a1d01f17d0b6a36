//go:build race

package sqlite

// largeArchive is smaller, because the race detector is slow.
const largeArchive = 5_000

// underRace says that the race detector is on, so that long tests are skipped.
const underRace = true
