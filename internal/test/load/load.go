package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"oda/internal/test/fault"
)

// Options say how much is written, and how.
type Options struct {
	Writers int           // 32 by default; four share entities
	Pace    time.Duration // the longest pause between two writes of a writer; 100 ms by default
	Attempt time.Duration // how long a writer waits for an answer; 10 s by default
	Patient bool          // writers never leave before that, and every answer must be clear
	Text    string        // is in every record and document, which are small without it

	// Through, if not nil, returns what requests pass on their way to the servers.
	Through func(servers http.RoundTripper) http.RoundTripper
}

const (
	groupOf    = 4           // writers share entities
	progressIn = time.Minute // within which writes are acknowledged after a fault
)

// Load is writers at work on one archive.
type Load struct {
	ledger
	options Options
	servers *servers
	writers []*writer
	groups  []*group
	alive   context.Context // of everything
	kill    context.CancelFunc
	pause   func()
}

// Start starts writers at servers, given as host:port. The caller ends them with
// Stop.
func Start(o Options, hosts ...string) (*Load, error) {
	o.Writers = cmp.Or(o.Writers, 32)
	o.Pace = cmp.Or(o.Pace, 100*time.Millisecond)
	o.Attempt = cmp.Or(o.Attempt, 10*time.Second)
	l := &Load{
		ledger: newLedger(), options: o, pause: func() {},
		servers: &servers{http: http.Transport{MaxIdleConnsPerHost: o.Writers}, are: make(chan struct{})},
	}
	l.Use(hosts...)
	l.alive, l.kill = context.WithCancel(context.Background())
	through := http.RoundTripper(l.servers)
	if o.Through != nil {
		through = o.Through(through)
	}
	for i := range o.Writers {
		if i%groupOf == 0 {
			l.groups = append(l.groups, &group{name: fmt.Sprintf("%s-g%d", l.series, len(l.groups))})
		}
		w, err := newWriter(l, through, fmt.Sprintf("%s-w%d", l.series, i), l.groups[len(l.groups)-1])
		if err != nil {
			return nil, err
		}
		l.writers = append(l.writers, w)
	}
	l.Resume()
	return l, nil
}

// Use makes these the servers, given as host:port. Requests that are on their way
// go on. While there are none, others wait.
func (l *Load) Use(hosts ...string) { l.servers.use(hosts) }

// Pause ends the writing when each writer has finished its write.
func (l *Load) Pause() { l.pause() }

// Resume goes on after Pause.
func (l *Load) Resume() {
	beginning, cancel := context.WithCancel(l.alive)
	var running sync.WaitGroup
	for _, w := range l.writers {
		running.Go(func() { w.run(l.alive, beginning) })
	}
	l.pause = func() {
		cancel()
		running.Wait()
	}
}

// Stop ends the writing at once.
func (l *Load) Stop() {
	l.kill()
	l.pause()
	l.servers.http.CloseIdleConnections()
}

// Recent returns the identifier of a block that was recorded into lately, or "" if
// there is none yet.
func (l *Load) Recent() string {
	if recent := l.groups[rand.N(len(l.groups))].recent.Load(); recent != nil {
		return *recent
	}
	return ""
}

// GoesOn waits until each writer could have been acknowledged something more.
func (l *Load) GoesOn(ctx context.Context) error {
	before := l.Acknowledged()
	return fault.Poll(ctx, progressIn, "the writers", func() (bool, error) {
		return l.Acknowledged() >= before+len(l.writers), nil
	})
}

// unexpected returns the answers that an archive must not give. The writers have
// ended.
func (l *Load) unexpected() error {
	var all []error
	for _, w := range l.writers {
		all = append(all, w.faults...)
	}
	return errors.Join(all[:min(len(all), mostFaults)]...)
}

// newSeries returns a word that is in the names of one load.
func newSeries() string { return fmt.Sprintf("%06x", rand.N(1<<24)) }
