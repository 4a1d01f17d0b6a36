package night

import (
	"fmt"
	"testing"

	"oda"
)

// What is known of nights takes a bounded amount of memory, and what is asked for again
// and again is kept.
func TestWhatIsKnownOfNightsTakesBoundedMemory(t *testing.T) {
	var c cache
	key := func(block string) blockNight { return blockNight{block: block} }
	sumWith := func(requests int) *blockSum {
		b := newBlockSum(Query{}, &oda.Found{})
		for i := range requests {
			b.sum.distinct(fmt.Sprint("request ", i))
		}
		return b
	}
	c.add(key("often"), sumWith(5))
	for i := range 30_000 {
		c.add(key(fmt.Sprint("eb-", i)), sumWith(i%30))
		if c.get(key("often")) == nil {
			t.Fatalf("after %d others, the block that is always asked for is forgotten", i)
		}
	}
	size := 0
	for _, part := range []map[blockNight]*blockSum{c.recent, c.older} {
		for _, sum := range part {
			size += sum.size()
		}
	}
	if size > cacheBytes || size < cacheBytes/4 {
		t.Errorf("%d bytes are kept, the bound is %d", size, cacheBytes)
	}
	if c.get(key("eb-0")) != nil {
		t.Error("a block that nobody asked for is still kept")
	}
}
