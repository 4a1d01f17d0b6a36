// Package admission decides how many requests the archive works on at once. When there
// are too many, those that it accepts stay fast, and the rest are refused soon. Records
// of a telescope are refused last. The package also limits single callers. It knows
// neither HTTP nor an engine.
package admission

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"oda"
)

// Class is a kind of work. Requests of one class wait for each other only.
type Class uint8

// The classes.
const (
	Free      Class = iota // costs next to nothing, or waits for others: not counted
	Recording              // of calls, and opening blocks for them
	Writing                // one entity
	Reading                // a few rows
	Searching              // takes the processor for longer
	Bulk                   // many entities at once, which may hold up all other writes
	classes
)

// An answer should come within a second, also when there is too much to do, and when
// the processors are shared with other programs. These are how long a request waits to be
// admitted, and how long it works on average, while some take several times as long.
// Records may take longer, since they are refused last.
const (
	waiting = 300 * time.Millisecond
	work    = 125 * time.Millisecond
)

// Control admits requests. It is safe for concurrent use.
type Control struct {
	desks   [classes]desk
	began   time.Time
	pressed atomic.Int64 // until when others give way to recording, in nanoseconds since it began
}

// New returns a control for this machine.
func New() *Control {
	processors := runtime.GOMAXPROCS(0)
	c := &Control{began: time.Now()}
	for class, b := range map[Class]bounds{
		Recording: {least: 256, most: 1024, work: 2 * work, wait: 500 * time.Millisecond},
		Writing:   {least: min(4*processors, 512), most: 512, work: work, wait: waiting, lastFirst: true},
		Reading:   {least: min(4*processors, 512), most: 512, work: work, wait: waiting, lastFirst: true},
		Searching: {least: max(2, processors), most: 4 * max(2, processors), work: 2 * work, wait: waiting, lastFirst: true}, // keeps a processor busy
		Bulk:      {least: 2, most: 2, work: work, wait: 5 * time.Second},
	} {
		d := &c.desks[class]
		d.bounds, d.press = b, func() {}
		d.limit = d.start()
		d.pressed = func(now time.Time) bool {
			return class != Recording && now.Sub(c.began) < time.Duration(c.pressed.Load())
		}
	}
	c.desks[Recording].press = func() { c.pressed.Store(int64(time.Since(c.began) + pressedTime)) }
	return c
}

// pressedTime is how long others give way after records were slow or had to wait.
const pressedTime = time.Second

// Pass lets one request work. A request that is not counted has the zero Pass.
type Pass struct {
	desk  *desk
	since time.Duration // the epoch
}

// epoch is the beginning of time. What has passed since takes less memory than an
// instant.
var epoch = time.Now()

// Enter admits a request. It may wait for others to leave. If there are too many,
// the error says so.
func (c *Control) Enter(ctx context.Context, class Class) (Pass, error) {
	if class == Free {
		return Pass{}, nil
	}
	d := &c.desks[class]
	if err := d.enter(ctx); err != nil {
		return Pass{}, err
	}
	return Pass{d, time.Since(epoch)}, nil
}

// Held reports whether the request works and is counted.
func (p *Pass) Held() bool { return p.desk != nil }

// Leave ends the work. It may be called again.
func (p *Pass) Leave() {
	if p.desk != nil {
		now := time.Now()
		p.desk.leave(now.Sub(epoch)-p.since, now)
		p.desk = nil
	}
}

// Stats is how a class is doing.
type Stats struct {
	Class                   string
	Working, Waiting, Limit int
	Refused                 int64 // so far
}

// names of the classes that are counted.
var names = [classes]string{Recording: "recording", Writing: "writing", Reading: "reading", Searching: "searching", Bulk: "bulk"}

// Stats tells how each class is doing.
func (c *Control) Stats() []Stats {
	var all []Stats
	for class := Recording; class < classes; class++ {
		d := &c.desks[class]
		d.mu.Lock()
		all = append(all, Stats{names[class], d.working, len(d.waiting), d.limit, d.refused})
		d.mu.Unlock()
	}
	return all
}

func errTooMuch() error {
	return oda.Errorf(oda.Overloaded, "The archive is too busy. Nothing was done for this request. Try again shortly.")
}
