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
// put in what it found (the ticket). A version that is no longer current never
// changes, so it may come and go at any time.
type cache struct {
	seed   maphash.Seed
	shards [cacheShards]shard
}

type shard struct {
	mu      sync.Mutex
	entries map[cacheKey]*list.Element // of *oda.Entity
	recent  *list.List
	bytes   int
	most    int
	writing int    // changes under way
	changes uint64 // begun so far
}

// cacheKey names a document: the current one of an entity, or an older version.
type cacheKey struct {
	oda.Ref
	version int64 // 0: the current one
}

func cacheKeyOf(e *oda.Entity) cacheKey {
	if e.Superseded {
		return cacheKey{e.Ref, e.Metadata.Version}
	}
	return cacheKey{e.Ref, 0}
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
		c.shards[i] = shard{entries: make(map[cacheKey]*list.Element), recent: list.New(), most: bytes / cacheShards}
	}
	return c
}

func (c *cache) shard(name cacheKey) *shard {
	return &c.shards[(maphash.String(c.seed, name.ID)+uint64(name.Kind)+uint64(name.version))%cacheShards]
}

// get gives the entity, or nil and a ticket for putting it in.
func (c *cache) get(ref oda.Ref) (*oda.Entity, ticket) {
	name := cacheKey{ref, 0}
	s := c.shard(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.use(name); e != nil {
		return e, ticket{}
	}
	return nil, ticket{s, s.changes, s.writing > 0}
}

// version gives a version of an entity, the current one too, or nil.
func (c *cache) version(ref oda.Ref, version int64) *oda.Entity {
	for _, name := range [...]cacheKey{{ref, version}, {ref, 0}} {
		s := c.shard(name)
		s.mu.Lock()
		e := s.use(name)
		s.mu.Unlock()
		if e != nil && e.Metadata.Version == version {
			return e
		}
	}
	return nil
}

// use gives a document, nil if it is not there.
func (s *shard) use(name cacheKey) *oda.Entity {
	el, ok := s.entries[name]
	if !ok {
		return nil
	}
	s.recent.MoveToFront(el)
	return el.Value.(*oda.Entity)
}

// put keeps a rendered entity that was read after the ticket was given.
func (c *cache) put(e *oda.Entity, t ticket) {
	s := t.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	if !t.void && s.changes == t.changes {
		s.add(e)
	}
}

// keep keeps a rendered version that is no longer current.
func (c *cache) keep(e *oda.Entity) {
	s := c.shard(cacheKeyOf(e))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(e)
}

func (s *shard) add(e *oda.Entity) {
	name := cacheKeyOf(e)
	if len(e.Rendered()) > cacheEntry || s.entries[name] != nil {
		return
	}
	s.entries[name] = s.recent.PushFront(e)
	s.bytes += cost(e)
	for s.bytes > s.most {
		s.remove(s.recent.Back())
	}
}

func cost(e *oda.Entity) int { return len(e.Rendered()) + entryCost }

func (s *shard) remove(el *list.Element) {
	e := el.Value.(*oda.Entity)
	s.recent.Remove(el)
	delete(s.entries, cacheKeyOf(e))
	s.bytes -= cost(e)
}

// leave takes entities out before a change of them is committed.
func (c *cache) leave(refs []oda.Ref) {
	for _, ref := range refs {
		name := cacheKey{ref, 0}
		s := c.shard(name)
		s.mu.Lock()
		s.changes++
		s.writing++
		if el, ok := s.entries[name]; ok {
			s.remove(el)
		}
		s.mu.Unlock()
	}
}

// settle ends what leave began, whether the commit went well or not.
func (c *cache) settle(refs []oda.Ref) {
	for _, ref := range refs {
		s := c.shard(cacheKey{ref, 0})
		s.mu.Lock()
		s.writing--
		s.mu.Unlock()
	}
}
