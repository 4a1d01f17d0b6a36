package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// progressEvery is how often progress is printed where it goes to a log.
const progressEvery = 5 * time.Second

// progress prints how far a command is: a bar on a terminal, a line now and then
// elsewhere.
type progress struct {
	out      io.Writer
	quiet    bool
	terminal bool
	shown    bool // a bar stands in the line at hand
	mu       sync.Mutex
}

func newProgress(out io.Writer, quiet bool) *progress {
	p := &progress{out: out, quiet: quiet}
	if f, ok := out.(*os.File); ok {
		info, err := f.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

// follow prints until it is stopped. Tell says how far it is: a line, and the share
// that is done, less than 0 if that is not known.
func (p *progress) follow(tell func(took time.Duration) (line string, share float64)) (stop func()) {
	if p.quiet {
		return func() {}
	}
	every, began := progressEvery, time.Now()
	if p.terminal {
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
	if !p.terminal {
		fmt.Fprintln(p.out, line)
		return
	}
	if share >= 0 {
		const width = 30
		full := int(min(share, 1) * width)
		line = "[" + strings.Repeat("=", full) + strings.Repeat(" ", width-full) + "] " + line
	}
	fmt.Fprintf(p.out, "\r\x1b[K%s", line)
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
