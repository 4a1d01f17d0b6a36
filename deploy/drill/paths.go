package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// path is a way into the archive: the server, and what is written. Records and
// documents take different paths within a server.
type path int

const paths = 2 * serverCount

func (p path) String() string {
	if p < serverCount {
		return fmt.Sprintf("records by oda%d", p+1)
	}
	return fmt.Sprintf("stores by oda%d", p-serverCount+1)
}

// watch sees every request of the load, and when the first write on each path
// succeeds after an event.
type watch struct {
	servers [serverCount]string
	next    http.RoundTripper

	mu    sync.Mutex
	since time.Time
	first [paths]time.Duration // 0 if there is none yet
}

// RoundTrip implements http.RoundTripper.
func (w *watch) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := time.Now()
	answer, err := w.next.RoundTrip(r)
	if err == nil && answer.StatusCode == http.StatusOK && r.Method != http.MethodGet {
		w.success(answer.Request.URL.Host, strings.Contains(r.URL.Path, "/request_response"), sent)
	}
	return answer, err
}

// success notes an acknowledged write. One that was sent before the event may have
// been committed before it.
func (w *watch) success(host string, record bool, sent time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, server := range w.servers {
		if !record {
			i += serverCount
		}
		if server == host && sent.After(w.since) && w.first[i] == 0 {
			w.first[i] = time.Since(w.since)
		}
	}
}

// begin begins to wait for the next write on each path, and returns the instant.
func (w *watch) begin() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since, w.first = time.Now(), [paths]time.Duration{}
	return w.since
}

// firsts returns the time from the event to the first write on each path, or 0
// if there was none.
func (w *watch) firsts() [paths]time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.first
}
