package oidc

import (
	"crypto/sha256"
	"sync"
	"time"

	"oda/internal/auth"
)

// cacheMost bounds the tokens that are remembered.
const cacheMost = 8192

// cache remembers callers by the digests of their tokens until the tokens end: to
// verify a signature takes a hundred times as long.
type cache struct {
	mu      sync.RWMutex
	callers map[[sha256.Size]byte]*auth.Caller
}

func (c *cache) get(digest [sha256.Size]byte, now time.Time) *auth.Caller {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if caller := c.callers[digest]; caller != nil && now.Before(caller.Ends) {
		return caller
	}
	return nil
}

// put remembers a caller if the token would still be judged as it was.
func (c *cache) put(digest [sha256.Size]byte, caller *auth.Caller, still func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !still() {
		return
	}
	if c.callers == nil {
		c.callers = make(map[[sha256.Size]byte]*auth.Caller)
	}
	if len(c.callers) >= cacheMost {
		c.makeRoom()
	}
	c.callers[digest] = caller
}

// makeRoom forgets the token that ends first among a few: those that have ended are
// likely to be found soon.
func (c *cache) makeRoom() {
	const few = 16
	var first [sha256.Size]byte
	var ends time.Time
	seen := 0
	for digest, caller := range c.callers { // in random order
		if seen == 0 || caller.Ends.Before(ends) {
			first, ends = digest, caller.Ends
		}
		if seen++; seen == few {
			break
		}
	}
	delete(c.callers, first)
}

func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.callers)
}
