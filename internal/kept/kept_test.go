package kept_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"oda/internal/kept"
)

// A cache takes a bounded amount of memory, and keeps what is asked for again and again.
func TestACacheIsBounded(t *testing.T) {
	const most = 1000
	c := kept.New[string, int](most)
	random := rand.New(rand.NewPCG(1, 2))
	c.Add("often", 1, 10)
	sizes := make(map[string]int)
	for i := range 5000 {
		key := fmt.Sprint(random.IntN(300))
		sizes[key] = random.IntN(60)
		c.Add(key, i, sizes[key])
		if got, there := c.Get(key); !there || got != i {
			t.Fatalf("after it was added, %d is kept under %s, want %d", got, key, i)
		}
		if _, there := c.Get("often"); !there {
			t.Fatalf("after %d others, what is always asked for is forgotten", i)
		}
	}
	size := 10
	for key, one := range sizes {
		if _, there := c.Get(key); there {
			size += one
		}
	}
	if size > most || size < most/4 {
		t.Errorf("a size of %d is kept, the bound is %d", size, most)
	}
	c.Add("often", 2, most)
	if got, there := c.Get("often"); there {
		t.Errorf("what is too large is kept, or what it should replace: %d", got)
	}
}
