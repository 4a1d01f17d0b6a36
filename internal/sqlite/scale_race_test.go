//go:build race

package sqlite

// largeArchive is smaller where every step is watched for races.
const largeArchive = 5_000
