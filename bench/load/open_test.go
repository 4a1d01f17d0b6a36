package load_test

import (
	"math"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oda/bench/load"
)

// stalling is a handler behind which everybody waits once, as behind a
// checkpoint or a garbage collection, a little after the first request.
func stalling(after, stall time.Duration) http.HandlerFunc {
	var (
		one   sync.Mutex
		begin sync.Once
		done  atomic.Bool
		from  time.Time
	)
	return func(http.ResponseWriter, *http.Request) {
		begin.Do(func() { from = time.Now() })
		one.Lock()
		defer one.Unlock()
		if time.Since(from) > after && !done.Swap(true) {
			time.Sleep(stall)
		}
	}
}

// A stall of 300 ms is a quarter of a run of 1.2 s. Who asks at a constant rate
// has a quarter of the requests waiting; who asks again only when answered sees
// one slow answer per connection.
func TestOpenSeesTheStallThatClosedHides(t *testing.T) {
	const (
		stall  = 300 * time.Millisecond
		length = 1200 * time.Millisecond
	)
	addr, _ := serve(t, stalling(300*time.Millisecond, stall))
	open, err := load.Open(t.Context(), target(addr, 4, "/"), 500, length)
	if err != nil || open.Failed > 0 {
		t.Fatal(open, err)
	}
	addr, _ = serve(t, stalling(300*time.Millisecond, stall))
	closed, err := load.Closed(t.Context(), target(addr, 4, "/"), length)
	if err != nil || closed.Failed > 0 {
		t.Fatal(closed, err)
	}
	t.Logf("open p50 %v p90 %v p99 %v, closed p50 %v p99 %v max %v",
		open.P50, open.P90, open.P99, closed.P50, closed.P99, closed.Max)
	if open.P99 < stall*8/10 {
		t.Errorf("open: p99 is %v, but the stall was %v", open.P99, stall)
	}
	if open.P90 < stall/4 {
		t.Errorf("open: p90 is %v, but a quarter of the requests met the stall of %v", open.P90, stall)
	}
	if closed.P99 > stall/2 || closed.Max < stall*9/10 {
		t.Errorf("closed: p99 %v and max %v; this test expects it to hide the stall", closed.P99, closed.Max)
	}
}

func TestOpenKeepsTheRate(t *testing.T) {
	for _, rate := range []float64{333.3, 2000} {
		var served atomic.Int64
		addr, _ := serve(t, func(http.ResponseWriter, *http.Request) { served.Add(1) })
		const length = time.Second
		s, err := load.Open(t.Context(), target(addr, 8, "/"), rate, length)
		if err != nil || s.Failed > 0 {
			t.Fatal(s, err)
		}
		if want := int64(math.Ceil(rate * length.Seconds())); served.Load() != want || s.Operations != want {
			t.Errorf("at %v: %d served, %d counted, want %d", rate, served.Load(), s.Operations, want)
		}
		if off := math.Abs(s.Rate()/rate - 1); off > 0.05 {
			t.Errorf("at %v: %v in a second (elapsed %v)", rate, s.Rate(), s.Elapsed)
		}
	}
}

func TestOpenSpacesItsRequestsEvenly(t *testing.T) {
	var (
		mu      sync.Mutex
		arrived []time.Time
	)
	addr, _ := serve(t, func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		arrived = append(arrived, time.Now())
	})
	const rate = 200
	if s, err := load.Open(t.Context(), target(addr, 4, "/"), rate, time.Second); err != nil || s.Failed > 0 {
		t.Fatal(s, err)
	}
	// Half of the requests arrive in each half of the time.
	early := 0
	for _, at := range arrived {
		if at.Sub(arrived[0]) < 500*time.Millisecond {
			early++
		}
	}
	if early < rate*4/10 || early > rate*6/10 {
		t.Errorf("%d of %d requests came in the first half", early, len(arrived))
	}
}

func TestOpenWaitsForNoAnswerBeforeItSends(t *testing.T) {
	t.Parallel()
	// Each answer takes 100 ms and 50 are due in that time: they overlap.
	var now, most atomic.Int64
	addr, _ := serve(t, func(http.ResponseWriter, *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		time.Sleep(100 * time.Millisecond)
	})
	s, err := load.Open(t.Context(), target(addr, 100, "/"), 500, 400*time.Millisecond)
	if err != nil || s.Failed > 0 || s.Operations != 200 {
		t.Fatal(s, err)
	}
	if most.Load() < 40 {
		t.Errorf("%d requests at a time, want about 50", most.Load())
	}
	if s.P50 > 160*time.Millisecond {
		t.Errorf("p50 %v: requests waited although connections were free", s.P50)
	}
}

func TestOpenSaysWhatWasNeverSent(t *testing.T) {
	t.Parallel()
	addr, _ := serve(t, func(http.ResponseWriter, *http.Request) { time.Sleep(50 * time.Millisecond) })
	start := time.Now()
	s, err := load.Open(t.Context(), target(addr, 1, "/"), 1000, 200*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 4*time.Second {
		t.Errorf("it took %v", took)
	}
	if s.Operations+s.Failed != 200 || s.Failed < 100 || !strings.Contains(s.FirstFailure, "never sent") {
		t.Errorf("%+v", s)
	}
}

func TestOpenRefusesARateOfNothing(t *testing.T) {
	if _, err := load.Open(t.Context(), target("127.0.0.1:1", 1, "/"), 0, time.Second); err == nil {
		t.Error("no error")
	}
}
