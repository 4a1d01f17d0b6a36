package sqlite

import (
	"container/list"
	"hash/maphash"
	"sync"

	"oda"
)

// Bounds of the documents kept in memory.
const (
	cacheBytes  = 64 << 20
	cacheEntry  = 256 << 10 // a larger document is never kept
	cacheShards = 16
	entryCost   = 512 // what an entry takes besides its document, about
)

// cache keeps rendered documents in memory, the ones last used. It is true at
// every moment: once anybody has read a new state, nobody reads the old one
// from here. For that the writer takes an entity out before it commits a change
// of it and lets it back in afterwards, and a reader that looked before may not
// put in what it found (the ticket).
type cache struct {
	seed   maphash.Seed
	shards [cacheShards]shard
}

type shard struct {
	mu      sync.Mutex
	entries map[oda.Ref]*list.Element // of *oda.Entity
	recent  *list.List
	bytes   int
	most    int
	writing int    // changes under way
	changes uint64 // begun so far
}

// ticket lets a reader put in what it read, if nothing has changed since.
type ticket struct {
	shard   *shard
	changes uint64
	void    bool
}

func newCache(bytes int) *cache {
	c := &cache{seed: maphash.MakeSeed()}
	for i := range c.shards {
		c.shards[i] = shard{entries: make(map[oda.Ref]*list.Element), recent: list.New(), most: bytes / cacheShards}
	}
	return c
}

func (c *cache) shard(ref oda.Ref) *shard {
	return &c.shards[(maphash.String(c.seed, ref.ID)+uint64(ref.Kind))%cacheShards]
}

// get gives the entity, or nil and a ticket for putting it in.
func (c *cache) get(ref oda.Ref) (*oda.Entity, ticket) {
	s := c.shard(ref)
	s.mu.Lock()
	defer s.mu.Unlock()
	if el, ok := s.entries[ref]; ok {
		s.recent.MoveToFront(el)
		return el.Value.(*oda.Entity), ticket{}
	}
	return nil, ticket{s, s.changes, s.writing > 0}
}

// put keeps a rendered entity that was read after the ticket was given.
func (c *cache) put(e *oda.Entity, t ticket) {
	if len(e.Rendered()) > cacheEntry {
		return
	}
	s := t.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.void || s.changes != t.changes || s.entries[e.Ref] != nil {
		return
	}
	s.entries[e.Ref] = s.recent.PushFront(e)
	s.bytes += cost(e)
	for s.bytes > s.most {
		s.remove(s.recent.Back())
	}
}

func cost(e *oda.Entity) int { return len(e.Rendered()) + entryCost }

func (s *shard) remove(el *list.Element) {
	e := el.Value.(*oda.Entity)
	s.recent.Remove(el)
	delete(s.entries, e.Ref)
	s.bytes -= cost(e)
}

// leave takes entities out before a change of them is committed.
func (c *cache) leave(refs []oda.Ref) {
	for _, ref := range refs {
		s := c.shard(ref)
		s.mu.Lock()
		s.changes++
		s.writing++
		if el, ok := s.entries[ref]; ok {
			s.remove(el)
		}
		s.mu.Unlock()
	}
}

// settle ends what leave began, whether the commit went well or not.
func (c *cache) settle(refs []oda.Ref) {
	for _, ref := range refs {
		s := c.shard(ref)
		s.mu.Lock()
		s.writing--
		s.mu.Unlock()
	}
}
