//go:build race

package sqlite

// largeArchive is smaller where every step is watched for races.
const largeArchive = 5_000

// underRace says that every step is watched for races, and long tests are left out.
const underRace = true
