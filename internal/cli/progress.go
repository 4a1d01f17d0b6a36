package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// progressEvery is how often progress is printed where it goes to a log.
const progressEvery = 5 * time.Second

// progress prints how far a command is: a bar on a terminal, a line now and then
// elsewhere.
type progress struct {
	out   io.Writer
	quiet bool
	look       // of the output
	shown bool // the current line has a bar
	mu    sync.Mutex
}

func newProgress(out io.Writer, quiet bool) *progress {
	return &progress{out: out, quiet: quiet, look: coloring{}.look(out)}
}

// follow prints until it is stopped. Tell says how far it is: a line, and the share
// that is done, less than 0 if that is not known.
func (p *progress) follow(tell func(took time.Duration) (line string, share float64)) (stop func()) {
	if p.quiet {
		return func() {}
	}
	every, began := progressEvery, time.Now()
	if p.people {
		every = 200 * time.Millisecond
	}
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				p.clear()
				return
			case <-ticker.C:
				p.show(tell(time.Since(began)))
			}
		}
	}()
	return func() {
		close(ended)
		<-done
	}
}

// show prints how far it is.
func (p *progress) show(line string, share float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.people {
		fmt.Fprintln(p.out, line)
		return
	}
	// A line that is longer than the terminal is wide could not be removed.
	room := cmp.Or(p.width, 80) - 1
	if share >= 0 {
		width := max(min(30, room-len(line)-len("[] ")), 8)
		full := int(min(share, 1) * float64(width))
		line = "[" + strings.Repeat("=", full) + strings.Repeat(" ", width-full) + "] " + line
	}
	fmt.Fprintf(p.out, "\r\x1b[K%.*s", room, line)
	p.shown = true
}

// clear removes the bar.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.shown = false
	}
}

// howFar says how far a command is: how much of how much, the rate, and the time left.
// The total is 0 if it is not known.
func howFar(doing string, done, total int64, took time.Duration, written func(int64) string) (line string, share float64) {
	if done <= 0 {
		return doing, -1
	}
	rate := float64(done) / took.Seconds()
	if total <= 0 {
		return fmt.Sprintf("%s: %s, %s/s", doing, written(done), written(int64(rate))), -1
	}
	left := time.Duration(float64(max(total-done, 0)) / rate * float64(time.Second)).Round(time.Second)
	return fmt.Sprintf("%s: %s of %s, %s/s, %s left", doing, written(done), written(max(done, total)), written(int64(rate)), left), min(float64(done)/float64(total), 1)
}

// size writes a number of bytes.
func size(n int64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", (n+1023)>>10)
}
