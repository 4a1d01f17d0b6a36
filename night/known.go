package night

import (
	"oda"
	"oda/internal/kept"
)

// known keeps what reports have read of blocks, so that a block is read again
// only after it has changed. A report always asks the engine for the state of each
// block, so it does not matter who changed it.
type known = kept.Cache[blockNight, *blockSum]

// Bounds of what is known. Because a sum takes at least entryBytes, they also bound
// the number of sums.
const (
	knownBytes = 32 << 20
	entryBytes = 640 // of a sum without calls
)

// blockNight is what a sum is kept under.
type blockNight struct {
	block    string
	from, to oda.Instant
}
