//go:build !race

package sqlite

// largeArchive is the number of entities of a large archive.
const largeArchive = 50_000

// underRace says that the race detector is on.
const underRace = false
