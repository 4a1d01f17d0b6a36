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

// howFar says how far an export or an import is: how much of how much, the rate, the
// time left, and what was set aside.
func howFar(doing string, done, total, aside int64, took time.Duration) (line string, share float64) {
	line, share = fmt.Sprintf("%s: %s", doing, grouped(done)), -1
	if done > 0 && total > 0 {
		share = min(float64(done)/float64(total), 1)
		rate := float64(done) / took.Seconds()
		left := time.Duration(float64(max(total-done, 0)) / rate * float64(time.Second)).Round(time.Second)
		line = fmt.Sprintf("%s: %s of %s, %.0f %%, %s per second, %s left", doing, grouped(done), grouped(total), 100*share, grouped(int64(rate)), left)
	}
	if aside > 0 {
		line += fmt.Sprintf(", %s set aside", grouped(aside))
	}
	return line, share
}

// moved says how many bytes of a file were written or read.
func moved(doing string, done, total int64, took time.Duration) (line string, share float64) {
	if total <= 0 {
		return doing, -1
	}
	share = min(float64(done)/float64(total), 1)
	return fmt.Sprintf("%s: %s of %s, %.0f %%, %s per second", doing, size(done), size(max(done, total)), 100*share, size(int64(float64(done)/took.Seconds()))), share
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
