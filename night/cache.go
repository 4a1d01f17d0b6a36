package night

import (
	"sync"

	"oda"
)

// cache keeps what reports have read of blocks, so that a block is read again
// only after it has changed. A report always asks the engine for the state of each
// block, so it does not matter who changed it.
//
// What was used last is in recent. When that is full, it becomes older, and what
// older had is forgotten unless it is used meanwhile.
type cache struct {
	mu            sync.Mutex
	recent, older map[blockNight]*blockSum
	size          int // of recent, in bytes
}

// Bounds of the cache. Because an entry takes at least entryBytes, they also bound
// the number of entries.
const (
	cacheBytes = 32 << 20
	entryBytes = 640 // of an entry without calls
)

// key is what an entry is kept under.
type blockNight struct {
	block    string
	from, to oda.Instant
}

// get returns what is kept, or nil.
func (c *cache) get(key blockNight) *blockSum {
	c.mu.Lock()
	defer c.mu.Unlock()
	if sum := c.recent[key]; sum != nil {
		return sum
	}
	sum := c.older[key]
	if sum != nil {
		c.keep(key, sum)
	}
	return sum
}

// add keeps a sum.
func (c *cache) add(key blockNight, sum *blockSum) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep(key, sum)
}

func (c *cache) keep(key blockNight, sum *blockSum) {
	const most = cacheBytes / 2
	size := sum.size()
	if before := c.recent[key]; before != nil {
		c.size -= before.size()
		delete(c.recent, key)
	}
	if size > most {
		delete(c.older, key)
		return
	}
	if c.recent == nil || c.size+size > most {
		c.recent, c.older, c.size = make(map[blockNight]*blockSum), c.recent, 0
	}
	c.recent[key] = sum
	c.size += size
}
