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
// put in what it found (the ticket). What is past never changes, so it may come
// and go at any time.
type cache struct {
	seed   maphash.Seed
	shards [cacheShards]shard
}

type shard struct {
	mu      sync.Mutex
	entries map[cacheKey]*list.Element // of *cached
	recent  *list.List
	bytes   int
	most    int
	writing int    // changes under way
	changes uint64 // begun so far
}

// cacheKey names a document: the current one of an entity, an older version, or
// what a version was before it ended.
type cacheKey struct {
	oda.Ref
	version int64       // 0: the current one
	on      oda.Instant // of its last modification; 0: as the version ended
}

// cached is a document in the cache.
type cached struct {
	*oda.Entity
	key cacheKey
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
	return &c.shards[(maphash.String(c.seed, name.ID)+uint64(name.Kind)+uint64(name.version)+uint64(name.on))%cacheShards]
}

// get gives the entity, or nil and a ticket for putting it in.
func (c *cache) get(ref oda.Ref) (*oda.Entity, ticket) {
	name := cacheKey{Ref: ref}
	s := c.shard(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.use(name); e != nil {
		return e, ticket{}
	}
	return nil, ticket{s, s.changes, s.writing > 0}
}

// version gives a version of an entity as it ended, the current one too, or nil.
func (c *cache) version(ref oda.Ref, version int64) *oda.Entity {
	if e := c.past(cacheKey{Ref: ref, version: version}); e != nil {
		return e
	}
	if e := c.past(cacheKey{Ref: ref}); e != nil && e.Metadata.Version == version {
		return e
	}
	return nil
}

// past gives a document by its key, or nil.
func (c *cache) past(name cacheKey) *oda.Entity {
	s := c.shard(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.use(name)
}

// use gives a document, nil if it is not there.
func (s *shard) use(name cacheKey) *oda.Entity {
	el, ok := s.entries[name]
	if !ok {
		return nil
	}
	s.recent.MoveToFront(el)
	return el.Value.(*cached).Entity
}

// put keeps a rendered entity that was read after the ticket was given.
func (c *cache) put(e *oda.Entity, t ticket) {
	s := t.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	if !t.void && s.changes == t.changes {
		s.add(cacheKey{Ref: e.Ref}, e)
	}
}

// keep keeps a rendered document that never changes.
func (c *cache) keep(name cacheKey, e *oda.Entity) {
	s := c.shard(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(name, e)
}

func (s *shard) add(name cacheKey, e *oda.Entity) {
	if len(e.Rendered()) > cacheEntry || s.entries[name] != nil {
		return
	}
	s.entries[name] = s.recent.PushFront(&cached{e, name})
	s.bytes += cost(e)
	for s.bytes > s.most {
		s.remove(s.recent.Back())
	}
}

func cost(e *oda.Entity) int { return len(e.Rendered()) + entryCost }

func (s *shard) remove(el *list.Element) {
	c := el.Value.(*cached)
	s.recent.Remove(el)
	delete(s.entries, c.key)
	s.bytes -= cost(c.Entity)
}

// leave takes entities out before a change of them is committed.
func (c *cache) leave(refs []oda.Ref) {
	for _, ref := range refs {
		name := cacheKey{Ref: ref}
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
		s := c.shard(cacheKey{Ref: ref})
		s.mu.Lock()
		s.writing--
		s.mu.Unlock()
	}
}
