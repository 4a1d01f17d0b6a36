//go:build !race

package httpapi_test

import (
	"math"
	"runtime"
	"testing"
)

// What one request may take of memory, in the archive itself: the handler, the
// rules, the embedded engine and its writer, without net/http. Garbage is time:
// each object is made, and later found dead, on the way of somebody's request.
// The bounds are what is needed now and about 15 % more, so that a new need is
// noticed, and has to be meant.
var allocBounds = map[string]struct{ objects, bytes float64 }{
	// 7 objects, 645 bytes: the call, its name and line in the log, the match of
	// the route, the entity tag. None grows with the document.
	"GET": {8, 750},
	// 20 objects, 3320 bytes: the same, the record and its answer, the room of
	// the scanner, and a transaction of its own.
	"record": {23, 3800},
	// 40 objects, 24400 bytes: the document of 5 KB stands in memory three
	// times, as it was read, as it is kept, and as it is answered. The notes of
	// its 25 targets take 3 KB.
	"update": {46, 28000},
}

func TestARequestTakesLittleMemory(t *testing.T) {
	for name, bound := range allocBounds {
		t.Run(name, func(t *testing.T) {
			send, _ := work[name](t, desk(t))
			objects, bytes := allocated(send)
			t.Logf("%.1f objects, %.0f bytes", objects, bytes)
			if objects > bound.objects {
				t.Errorf("a request takes %.1f objects, more than %.0f", objects, bound.objects)
			}
			if bytes > bound.bytes {
				t.Errorf("a request takes %.0f bytes, more than %.0f", bytes, bound.bytes)
			}
		})
	}
}

// allocated measures what one run takes, in all goroutines. What others do in
// the background comes on top, so the least of several tries counts.
func allocated(run func()) (objects, bytes float64) {
	const tries, runs = 5, 100
	run() // sets up what is kept: statements, buffers
	objects, bytes = math.Inf(1), math.Inf(1)
	var before, after runtime.MemStats
	for range tries {
		runtime.ReadMemStats(&before)
		for range runs {
			run()
		}
		runtime.ReadMemStats(&after)
		objects = min(objects, float64(after.Mallocs-before.Mallocs)/runs)
		bytes = min(bytes, float64(after.TotalAlloc-before.TotalAlloc)/runs)
	}
	return objects, bytes
}
