package env

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// mark begins the console message that tells a Watch that it has seen
// everything up to now.
const mark = "env: seen up to here "

// Watch notes the hosts that a browser contacts, and its complaints. It is safe
// for concurrent use and ends with the browser.
type Watch struct {
	mu         sync.Mutex
	hosts      []string
	complaints []string
	marks      int
	seen       chan string
}

// NewWatch begins to watch the browser of ctx, which comes from Browser.
func NewWatch(ctx context.Context) *Watch {
	w := &Watch{seen: make(chan string, 1)}
	messages := chromedp.Console(ctx)
	requests := chromedp.Events(ctx, network.RequestWillBeSent)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			w.noteMessage(ctx, m)
		}
	}()
	go func() {
		for e, err := range requests {
			if err != nil {
				return
			}
			w.noteRequest(e.Request.URL)
		}
	}()
	return w
}

// Hosts returns every host that was contacted so far, each once. Addresses
// without a host, such as data:, do not count.
func (w *Watch) Hosts() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.hosts)
}

// Complaints returns all warnings and errors of the browser so far: violations
// of the Content-Security-Policy, failed loads, console messages and
// exceptions.
func (w *Watch) Complaints(ctx context.Context) ([]string, error) {
	w.mu.Lock()
	w.marks++
	text := fmt.Sprint(mark, w.marks)
	w.mu.Unlock()
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`console.debug("`+text+`") ?? true`)); err != nil {
		return nil, fmt.Errorf("write a mark to the console: %w", err)
	}
	for {
		select {
		case got := <-w.seen:
			if got != text {
				continue
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			return slices.Clone(w.complaints), nil
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the mark on the console: %w", ctx.Err())
		}
	}
}

func (w *Watch) noteMessage(ctx context.Context, m chromedp.ConsoleMessage) {
	if strings.HasPrefix(m.Text, mark) {
		select {
		case w.seen <- m.Text:
		case <-ctx.Done():
		}
		return
	}
	switch m.Type {
	case chromedp.ConsoleWarning, chromedp.ConsoleError, chromedp.ConsoleException:
		w.mu.Lock()
		defer w.mu.Unlock()
		w.complaints = append(w.complaints, fmt.Sprintf("%s (%s)", m, m.URL))
	}
}

func (w *Watch) noteRequest(address string) {
	host := address
	if u, err := url.Parse(address); err == nil {
		host = u.Host
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if host != "" && !slices.Contains(w.hosts, host) {
		w.hosts = append(w.hosts, host)
	}
}
