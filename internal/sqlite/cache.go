package sqlite

import (
	"container/list"
	"hash/maphash"
	"sync"

	"oda"
	"oda/internal/engine"
)

// Bounds of the documents kept in memory.
const (
	cacheBytes  = 64 << 20
	cacheEntry  = 256 << 10 // the largest document that is kept
	cacheShards = 16
	entryCost   = 512 // roughly what an entry takes besides its document
)

// cache keeps the rendered documents that were used last. It never returns an old
// state once anyone has read a newer one. To that end the writer removes an entity
// before it commits a change of it, and admits it again afterwards. A reader that
// read the entity before the change may not add what it has read: its ticket is
// void. Past states never change, so they can be added at any time.
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
	writing int    // changes in progress
	changes uint64 // changes begun so far

	hits, misses int64 // of current versions
}

// cacheKey names a document: the current version of an entity, an older version as
// it ended, or an earlier state of a version.
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

// ticket lets a reader add what it has read, if nothing has changed since.
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

// get returns the entity, or nil and a ticket for adding it.
func (c *cache) get(ref oda.Ref) (*oda.Entity, ticket) {
	name := cacheKey{Ref: ref}
	s := c.shard(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.use(name); e != nil {
		s.hits++
		return e, ticket{}
	}
	s.misses++
	return nil, ticket{s, s.changes, s.writing > 0}
}

// stats tells how often the current version of an entity was there, and how much is
// kept.
func (c *cache) stats() engine.Cache {
	found := engine.Cache{Name: "documents"}
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		found.Hits += s.hits
		found.Misses += s.misses
		found.Bytes += int64(s.bytes)
		s.mu.Unlock()
	}
	return found
}

// version returns a version of an entity as it ended, or the current version, or
// nil.
func (c *cache) version(ref oda.Ref, version int64) *oda.Entity {
	if e := c.past(cacheKey{Ref: ref, version: version}); e != nil {
		return e
	}
	if e := c.past(cacheKey{Ref: ref}); e != nil && e.Metadata.Version == version {
		return e
	}
	return nil
}

// past returns the document with a key, or nil.
func (c *cache) past(name cacheKey) *oda.Entity {
	s := c.shard(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.use(name)
}

// use returns a document and marks it as used, or returns nil.
func (s *shard) use(name cacheKey) *oda.Entity {
	el, ok := s.entries[name]
	if !ok {
		return nil
	}
	s.recent.MoveToFront(el)
	return el.Value.(*cached).Entity
}

// put adds a rendered entity that was read after the ticket was issued.
func (c *cache) put(e *oda.Entity, t ticket) {
	s := t.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	if !t.void && s.changes == t.changes {
		s.add(cacheKey{Ref: e.Ref}, e)
	}
}

// keep adds a rendered document that never changes.
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

// leave removes entities before a change of them is committed.
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

// readmit admits the entities again, whether or not the commit succeeded.
func (c *cache) readmit(refs []oda.Ref) {
	for _, ref := range refs {
		s := c.shard(cacheKey{Ref: ref})
		s.mu.Lock()
		s.writing--
		s.mu.Unlock()
	}
}
