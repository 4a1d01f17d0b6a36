//go:build !race

package httpapi_test

import (
	"math"
	"runtime"
	"testing"
)

// These bounds limit the memory that one request takes in the archive itself: in
// the handler, the rules, the embedded engine and its writer, without net/http.
// Garbage costs time, since every object is allocated and later collected while
// requests wait. The bounds are about 15 % above what is needed now, so that the
// test fails if a change needs more.
var allocBounds = map[string]struct{ objects, bytes float64 }{
	// 7 objects, 756 bytes: the call with its caller and its place among the others,
	// its request ID and log line, the match of the route, the entity tag. None grows
	// with the document.
	"GET": {8, 860},
	// 22 objects, 3690 bytes: the same, the record and its answer, the buffers of
	// the scanner, and a transaction.
	"record": {23, 3800},
	// 51 objects, 37300 bytes: the document of 5 KB is in memory three times, as received,
	// as stored, and as SQLite is given it (execGiven). Then there are the notes of its 25 targets, its summary, and the terms
	// that searches look for.
	"create": {57, 43000},
	// 43 objects, 26950 bytes: the same without summary and terms.
	"update": {47, 31000},
}

func TestARequestTakesLittleMemory(t *testing.T) {
	for name, bound := range allocBounds {
		t.Run(name, func(t *testing.T) {
			send, _ := work[name](t, desk(t))
			takesAtMost(t, send, bound.objects, bound.bytes)
		})
	}
}

// A token takes no memory, but the log line then names the user.
func TestARequestWithATokenTakesLittleMemory(t *testing.T) {
	for name, bound := range allocBounds {
		t.Run(name, func(t *testing.T) {
			gate, header := tokenGate(t)
			send, _ := work[name](t, withHeaders(deskBehind(t, gate), header))
			takesAtMost(t, send, bound.objects, bound.bytes+64)
		})
	}
}

func takesAtMost(t *testing.T, send func(), mostObjects, mostBytes float64) {
	t.Helper()
	objects, bytes := allocated(send)
	t.Logf("%.1f objects, %.0f bytes", objects, bytes)
	if objects > mostObjects {
		t.Errorf("a request takes %.1f objects, more than %.0f", objects, mostObjects)
	}
	if bytes > mostBytes {
		t.Errorf("a request takes %.0f bytes, more than %.0f", bytes, mostBytes)
	}
}

// allocated measures what one run allocates, in all goroutines. Background work
// adds to that, so the least of several tries counts.
func allocated(run func()) (objects, bytes float64) {
	const tries, runs = 5, 100
	run() // prepares statements and buffers that are kept
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
