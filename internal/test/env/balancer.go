package env

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Balancer sends requests to several processes in turn, while clients read and
// write. Like any proxy, it tries another process if a connection is refused, and
// repeats nothing else.
type Balancer struct {
	tb testing.TB

	mu   sync.Mutex
	urls []string // of interfaces
	turn int

	answered atomic.Int64
	stop     atomic.Bool
	working  sync.WaitGroup
	recorded []atomic.Int64 // acknowledged, by client
}

// Balance lets clients work with the processes at these addresses, until Whole is
// called. A request that is not answered 200 fails the test.
func Balance(tb testing.TB, clients int, urls ...string) *Balancer {
	b := &Balancer{tb: tb, urls: urls, recorded: make([]atomic.Int64, clients)}
	for i := range clients {
		b.working.Go(func() { b.work(i) })
	}
	tb.Cleanup(b.end)
	return b
}

func (b *Balancer) end() {
	b.stop.Store(true)
	b.working.Wait()
}

// Use makes these the processes.
func (b *Balancer) Use(urls ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.urls = urls
}

// More waits until more requests were answered.
func (b *Balancer) More(what string) {
	b.tb.Helper()
	from := b.answered.Load()
	for deadline := time.Now().Add(time.Minute); b.answered.Load() < from+100; time.Sleep(5 * time.Millisecond) {
		if b.stop.Load() || time.Now().After(deadline) {
			b.tb.Fatalf("requests are no longer answered %s", what)
		}
	}
}

// Acknowledged returns how many records were acknowledged so far, by block.
func (b *Balancer) Acknowledged() map[string]int {
	acknowledged := make(map[string]int)
	for i := range b.recorded {
		acknowledged[fmt.Sprintf("/ebs/eb-%d", i)] = int(b.recorded[i].Load())
	}
	return acknowledged
}

// Whole ends the work, and checks that every record that was acknowledged is there
// once.
func (b *Balancer) Whole() {
	b.tb.Helper()
	b.end()
	for path, want := range b.Acknowledged() {
		_, text := b.send(http.DefaultClient, "GET", path, "", "")
		if got := strings.Count(text, `"request":"`); got != want {
			b.tb.Errorf("%s has %d records, and %d were acknowledged", path, got, want)
		}
	}
}

// work is one client: it changes an entity, records into a block, and lists.
func (b *Balancer) work(i int) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: i%2 == 0}}
	defer client.CloseIdleConnections()
	must := func(method, path, body, key string) string {
		status, text := b.send(client, method, path, body, key)
		if status != http.StatusOK {
			b.tb.Errorf("%s %s is answered %d: %s", method, path, status, text)
			b.stop.Store(true)
		}
		b.answered.Add(1)
		return text
	}
	sbd, eb := fmt.Sprintf("/sbds/sbd-%d", i), fmt.Sprintf("/ebs/eb-%d", i)
	must("PUT", sbd, `{}`, "")
	must("PUT", eb, `{}`, "")
	for n := 0; !b.stop.Load(); n++ {
		must("PUT", sbd, must("GET", sbd, "", ""), "")
		must("POST", eb+"/request_response", fmt.Sprintf(`{"request":"%d"}`, n), fmt.Sprintf("%d-%d", i, n))
		b.recorded[i].Add(1)
		must("GET", "/ebs?created_after=2026-01-01&limit=10", "", "")
	}
}

func (b *Balancer) next() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turn++
	return b.urls[b.turn%len(b.urls)]
}

// send returns the status and the text of the answer, 0 and the error if there is
// none.
func (b *Balancer) send(client *http.Client, method, path, body, key string) (int, string) {
	for {
		request, err := http.NewRequestWithContext(b.tb.Context(), method, b.next()+path, strings.NewReader(body))
		if err != nil {
			return 0, err.Error()
		}
		if key != "" {
			request.Header.Set("Idempotency-Key", key)
		}
		response, err := client.Do(request)
		if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" && b.tb.Context().Err() == nil {
			continue
		}
		if err != nil {
			return 0, err.Error()
		}
		text, err := io.ReadAll(response.Body)
		_ = response.Body.Close() // all of it was read
		if err != nil {
			return 0, err.Error()
		}
		return response.StatusCode, string(text)
	}
}
