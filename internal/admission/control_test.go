package admission

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oda"
)

// crowd sends requests of a class, so many at once, each of which works for some
// time. It returns how many were admitted and refused, and the longest that an
// admitted one took with its wait, and a refused one.
func crowd(t *testing.T, c *Control, class Class, at int, work func() time.Duration, lasts time.Duration) (admitted, refused int, longest, patience time.Duration) {
	t.Helper()
	var group sync.WaitGroup
	var mu sync.Mutex
	end := time.Now().Add(lasts)
	for range at {
		group.Go(func() {
			for time.Now().Before(end) {
				began := time.Now()
				pass, err := c.Enter(context.Background(), class)
				if err == nil {
					time.Sleep(work())
					pass.Leave()
				}
				took := time.Since(began)
				mu.Lock()
				if err == nil {
					admitted++
					longest = max(longest, took)
				} else {
					refused++
					patience = max(patience, took)
				}
				mu.Unlock()
				if err != nil {
					if oda.CodeOf(err) != oda.Overloaded {
						t.Errorf("the refusal is %v", err)
					}
					time.Sleep(time.Second) // as Retry-After says
				}
			}
		})
	}
	group.Wait()
	return admitted, refused, longest, patience
}

func TestNobodyWaitsAtANormalLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for class := range classes {
			if class == Free || class == Bulk {
				continue
			}
			c := New()
			at := c.desks[class].least
			_, refused, longest, _ := crowd(t, c, class, at, func() time.Duration { return 400 * time.Millisecond }, 5*time.Second)
			if refused > 0 || longest > 400*time.Millisecond {
				t.Errorf("class %d: of %d at once, %d were refused, and one took %v", class, at, refused, longest)
			}
		}
	})
}

// The work of a machine that does 200 requests per second, however many there are at
// once.
func shared(c *Control, class Class) func() time.Duration {
	return func() time.Duration {
		c.desks[class].mu.Lock()
		defer c.desks[class].mu.Unlock()
		return time.Duration(c.desks[class].working) * time.Second / 200
	}
}

func TestPastSaturationWhatIsAcceptedKeepsItsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		crowd(t, c, Writing, 1000, shared(c, Writing), 3*time.Second) // it finds its limit
		admitted, refused, longest, patience := crowd(t, c, Writing, 1000, shared(c, Writing), 10*time.Second)
		if admitted < 1500 || refused == 0 {
			t.Errorf("%d were admitted and %d refused", admitted, refused)
		}
		if longest > 1200*time.Millisecond || patience > waiting {
			t.Errorf("one took %v, and one waited %v to be refused", longest, patience)
		}
	})
}

func TestOthersGiveWayToRecording(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		slow := func() time.Duration { return 300 * time.Millisecond } // that is slow, but no reason to refuse any
		quick := func() time.Duration { return 20 * time.Millisecond }
		var group sync.WaitGroup
		group.Go(func() {
			if _, refused, _, _ := crowd(t, c, Recording, 500, slow, 5*time.Second); refused > 0 {
				t.Errorf("%d records were refused", refused)
			}
		})
		group.Go(func() { crowd(t, c, Reading, 400, quick, 5*time.Second) })
		time.Sleep(4 * time.Second)
		if limit := c.desks[Reading].limit; limit != c.desks[Reading].least {
			t.Errorf("%d may read at once", limit)
		}
		group.Wait()
		crowd(t, c, Reading, 10, quick, 5*time.Second)
		if limit := c.desks[Reading].limit; limit != c.desks[Reading].most {
			t.Errorf("after that, %d may read at once", limit)
		}
	})
}

func TestAWaitEndsWithItsRequest(t *testing.T) {
	c := New()
	for range c.desks[Bulk].most {
		if _, err := c.Enter(t.Context(), Bulk); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Enter(ctx, Bulk); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if n := len(c.desks[Bulk].waiting); n != 0 {
		t.Errorf("%d still wait", n)
	}
}

func BenchmarkEnter(b *testing.B) {
	c := New()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			pass, err := c.Enter(b.Context(), Reading)
			if err != nil {
				b.Fatal(err)
			}
			pass.Leave()
		}
	})
}
