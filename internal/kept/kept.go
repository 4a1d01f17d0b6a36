// Package kept keeps what took long to work out, within a bound on its size.
package kept

import "sync"

// Cache keeps values. It is safe for concurrent use; the zero Cache keeps nothing.
//
// What was used last is in recent. When that is full, it becomes older, and what older
// had is forgotten unless it is used meanwhile.
type Cache[K comparable, V any] struct {
	mu            sync.Mutex
	most          int
	recent, older map[K]entry[V]
	size          int // of recent
}

type entry[V any] struct {
	value V
	size  int
}

// New returns a cache whose values have at most a total size.
func New[K comparable, V any](most int) *Cache[K, V] { return &Cache[K, V]{most: most / 2} }

// Get returns what is kept under a key, and whether there is something.
func (c *Cache[K, V]) Get(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, there := c.recent[key]
	if there {
		return e.value, true
	}
	if e, there = c.older[key]; there {
		c.keep(key, e)
	}
	return e.value, there
}

// Add keeps a value of a size, unless it is larger than half of what the cache may keep.
func (c *Cache[K, V]) Add(key K, value V, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep(key, entry[V]{value, size})
}

func (c *Cache[K, V]) keep(key K, e entry[V]) {
	if before, there := c.recent[key]; there {
		c.size -= before.size
		delete(c.recent, key)
	}
	delete(c.older, key)
	if e.size > c.most {
		return
	}
	if c.recent == nil || c.size+e.size > c.most {
		c.recent, c.older, c.size = make(map[K]entry[V]), c.recent, 0
	}
	c.recent[key] = e
	c.size += e.size
}
