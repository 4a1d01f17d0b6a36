package admission

import (
	"context"
	"errors"
	"runtime"
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

// shared is the work of a machine that does so many requests per second, however many
// there are at once.
func shared(c *Control, class Class, perSecond int) func() time.Duration {
	return func() time.Duration {
		c.desks[class].mu.Lock()
		defer c.desks[class].mu.Unlock()
		return time.Duration(c.desks[class].working) * time.Second / time.Duration(perSecond)
	}
}

// onTwoProcessors lets the bounds be those of a machine with two processors, for which the
// figures of a test are meant.
func onTwoProcessors(t *testing.T) {
	before := runtime.GOMAXPROCS(2)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

// That holds also for a machine on which others leave little of the processors.
func TestPastSaturationWhatIsAcceptedKeepsItsPace(t *testing.T) {
	onTwoProcessors(t)
	for class, rates := range map[Class][]int{Reading: {2000, 200, 20}, Writing: {2000, 200, 20}, Searching: {100, 20}, Recording: {2000, 1000}} {
		for _, perSecond := range rates {
			synctest.Test(t, func(t *testing.T) {
				c := New()
				crowd(t, c, class, 2000, shared(c, class, perSecond), 5*time.Second) // it finds its limit
				admitted, refused, longest, patience := crowd(t, c, class, 2000, shared(c, class, perSecond), 10*time.Second)
				if admitted < 10*perSecond*3/4 || refused == 0 {
					t.Errorf("class %d, %d/s: %d were admitted and %d refused", class, perSecond, admitted, refused)
				}
				if longest > time.Second || patience > c.desks[class].wait {
					t.Errorf("class %d, %d/s: one took %v, and one waited %v to be refused", class, perSecond, longest, patience)
				}
			})
		}
	}
}

// Some wait for a lock of somebody else, as for an entity that another program holds.
func TestAFewThatAreHeldUpDoNotShutOutOthers(t *testing.T) {
	onTwoProcessors(t)
	synctest.Test(t, func(t *testing.T) {
		c := New()
		var group sync.WaitGroup
		group.Go(func() {
			crowd(t, c, Writing, 2*c.desks[Writing].least, func() time.Duration { return 5 * time.Second }, 30*time.Second)
		})
		for range 30 * 30 {
			pass, err := c.Enter(t.Context(), Writing)
			if err != nil {
				t.Errorf("after others were held up: %v", err)
				break
			}
			time.Sleep(5 * time.Millisecond)
			pass.Leave()
			time.Sleep(time.Second/30 - 5*time.Millisecond)
		}
		group.Wait()
	})
}

func TestOthersGiveWayToRecording(t *testing.T) {
	onTwoProcessors(t)
	synctest.Test(t, func(t *testing.T) {
		c := New()
		quick := func() time.Duration { return 20 * time.Millisecond }
		limit := func() int {
			c.desks[Reading].mu.Lock()
			defer c.desks[Reading].mu.Unlock()
			return c.desks[Reading].limit
		}
		// Recording is slow, but there is room for all records.
		var group sync.WaitGroup
		group.Go(func() { crowd(t, c, Reading, 400, quick, 20*time.Second) })
		slow := func() time.Duration { return 200 * time.Millisecond }
		if _, refused, _, _ := crowd(t, c, Recording, c.desks[Recording].least, slow, 5*time.Second); refused > 0 {
			t.Errorf("%d records were refused", refused)
		}
		if limit() < 300 {
			t.Errorf("while no record waits, %d may read at once", limit())
		}
		group.Go(func() { crowd(t, c, Recording, 2000, slow, 5*time.Second) })
		time.Sleep(4 * time.Second)
		if limit() != c.desks[Reading].least {
			t.Errorf("while records wait, %d may read at once", limit())
		}
		time.Sleep(9 * time.Second)
		if limit() < 300 {
			t.Errorf("after that, %d may read at once", limit())
		}
		group.Wait()
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
