package sqlite

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"oda"
	"oda/internal/test/must"
	"oda/internal/test/proof"
	"oda/internal/test/suite"
)

// rendered returns an entity as the cache keeps it.
func rendered(t *testing.T, id string, length int) *oda.Entity {
	t.Helper()
	e := &oda.Entity{Ref: block(id), Body: oda.Body{Text: []byte(strings.Repeat("x", length))}}
	must.Do(t, e.Render(1<<20))
	return e
}

func TestAReaderFromBeforeAChangeMayNotFillTheCache(t *testing.T) {
	refs := []oda.Ref{block("b")}
	for name, look := range map[string]func(c *cache) ticket{
		"looked before the change": func(c *cache) ticket {
			_, early := c.get(refs[0])
			c.leave(refs)
			c.readmit(refs)
			return early
		},
		"looked before the change, fills during it": func(c *cache) ticket {
			_, early := c.get(refs[0])
			c.leave(refs)
			return early
		},
		"looked during the change": func(c *cache) ticket {
			c.leave(refs)
			_, during := c.get(refs[0])
			c.readmit(refs)
			return during
		},
		"looked between two changes that overlap": func(c *cache) ticket {
			c.leave(refs)
			c.leave(refs)
			c.readmit(refs)
			_, during := c.get(refs[0])
			c.readmit(refs)
			return during
		},
	} {
		c := newCache(1 << 20)
		c.put(rendered(t, "b", 10), look(c))
		if e, _ := c.get(refs[0]); e != nil {
			t.Errorf("%s: the old state is in the cache", name)
		}
	}
	c := newCache(1 << 20)
	c.leave(refs)
	c.readmit(refs)
	_, after := c.get(refs[0])
	c.put(rendered(t, "b", 10), after)
	if e, _ := c.get(refs[0]); e == nil {
		t.Error("a reader that read after the change could not fill the cache")
	}
	c.leave(refs)
	if e, _ := c.get(refs[0]); e != nil {
		t.Error("the old state is in the cache while it changes")
	}
}

func TestASlowReaderDoesNotBringAnOldStateBack(t *testing.T) {
	ctx := context.Background()
	s := fresh(t)
	first := mustPut(t, s, put(t, "b", `{}`, 1))
	_, early := s.cache.get(block("b"))
	r := must.Get(s.read(ctx, block("b")))(t)
	old := must.Get(s.entity(ctx, r))(t)
	must.Do(t, old.Render(1<<20))
	second := mustPut(t, s, put(t, "b", nextText(first), 2))
	s.cache.put(old, early)
	got := must.Get(s.Get(ctx, block("b")))(t)
	if got.Metadata != second.Metadata {
		t.Errorf("got %+v, want %+v", got.Metadata, second.Metadata)
	}
}

func TestTheCacheIsBounded(t *testing.T) {
	const most = 64 << 10
	c := newCache(most)
	fill := func(id string, length int) {
		_, place := c.get(block(id))
		c.put(rendered(t, id, length), place)
	}
	total := func() (bytes int) {
		for i := range c.shards {
			s := &c.shards[i]
			counted := 0
			for el := s.recent.Front(); el != nil; el = el.Next() {
				counted += cost(el.Value.(*cached).Entity)
			}
			if counted != s.bytes || len(s.entries) != s.recent.Len() {
				t.Fatalf("a shard has %d bytes in %d of %d entries, but counts %d", counted, s.recent.Len(), len(s.entries), s.bytes)
			}
			bytes += counted
		}
		return bytes
	}
	for i := range 500 {
		fill(fmt.Sprintf("b%d", i), i%3000)
		if got := total(); got > most {
			t.Fatalf("the cache holds %d bytes, but may hold %d", got, most)
		}
	}
	if total() < most/4 {
		t.Errorf("the cache holds only %d bytes", total())
	}
	fill("huge", cacheEntry+1)
	if e, _ := c.get(block("huge")); e != nil {
		t.Error("a document that is too large was kept")
	}
}

func TestTheCacheKeepsWhatWasUsedLast(t *testing.T) {
	c := newCache(cacheShards * 4 * (1000 + entryCost))
	fill := func(id string) {
		_, place := c.get(block(id))
		c.put(rendered(t, id, 1000), place)
	}
	fill("hot")
	for i := range 1000 {
		fill(fmt.Sprintf("cold%d", i))
		if e, _ := c.get(block("hot")); e == nil {
			t.Fatalf("a document in use was dropped after %d others", i)
		}
	}
	if e, _ := c.get(block("cold0")); e != nil {
		t.Error("an unused document was kept")
	}
}

func TestAReadIsNeverOlderThanAnAcknowledgedWrite(t *testing.T) {
	ctx := context.Background()
	s := fresh(t)
	const blocks, readers = 4, 4
	writes := proof.Rounds(40, 150)
	var told [blocks]atomic.Int64 // the last acknowledged state
	var writing atomic.Int32
	var group sync.WaitGroup
	writing.Store(blocks)
	for b := range blocks {
		id := fmt.Sprintf("b%d", b)
		e := mustPut(t, s, put(t, id, `{}`, 1))
		told[b].Store(int64(e.Metadata.LastModifiedOn))
		group.Go(func() {
			defer writing.Add(-1)
			for i := range writes {
				if i%2 == 0 {
					r, err := record(s, id, `{"request":"r"}`)
					if err != nil {
						t.Error(err)
						return
					}
					e.Metadata = r.Metadata
				} else {
					e = mustKeep(t, s, id, e)
				}
				told[b].Store(int64(e.Metadata.LastModifiedOn))
			}
		})
	}
	for r := range readers {
		group.Go(func() {
			for i := r; writing.Load() > 0; i++ {
				b := i % blocks
				least := told[b].Load()
				e, err := s.Get(ctx, block(fmt.Sprintf("b%d", b)))
				if err != nil {
					t.Error(err)
					return
				}
				if got := int64(e.Metadata.LastModifiedOn); got < least {
					t.Errorf("read the state of %d after that of %d was acknowledged", got, least)
					return
				}
			}
		})
	}
	group.Wait()
	for b := range blocks {
		e := must.Get(s.Get(ctx, block(fmt.Sprintf("b%d", b))))(t)
		if int64(e.Metadata.LastModifiedOn) != told[b].Load() {
			t.Errorf("in the end: %+v", e.Metadata)
		}
	}
}

// mustKeep stores the next version of a block and keeps its records.
func mustKeep(t *testing.T, s *Store, id string, e *oda.Entity) *oda.Entity {
	p := suite.Put(suite.Document(t, oda.ExecutionBlock, nextText(e)), id, "anna", 1)
	p.KeepRecords, p.Compare = true, oda.KeptFields
	entities, err := s.Put(context.Background(), []oda.Put{p})
	if err != nil {
		t.Error(err)
		return e
	}
	return entities[0]
}

// An entity may change after its head is read and before the cache is.
func TestANewerStateIsNotTakenFromTheCache(t *testing.T) {
	s := fresh(t)
	then := mustPut(t, s, put(t, "b", `{"n":1}`, 1_000_000))
	newer := rendered(t, "b", 10)
	newer.Metadata = then.Metadata
	newer.Metadata.LastModifiedOn += 5
	s.cache.keep(cacheKey{Ref: newer.Ref}, newer)
	got, err := s.AsOf(t.Context(), newer.Ref, then.Metadata.LastModifiedOn+1)
	if err != nil || got.Metadata != then.Metadata {
		t.Errorf("got %+v, %v", got, err)
	}
}
