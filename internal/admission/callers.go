package admission

import (
	"container/list"
	"math"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"oda"
)

// Limits bound what one caller may do. Zero means no bound.
type Limits struct {
	Rate       float64 // requests per second, on average
	Concurrent int     // requests and streams at once
}

// callersMost is how many callers are known at once. If there are more, the one who called
// least recently and has no request in progress is forgotten.
const callersMost = 10_000

// burstTime is for how long a caller that is quiet saves up requests, to send them at
// once later.
const burstTime = 10 * time.Second

// Callers applies the limits to each caller. It is safe for concurrent use.
type Callers struct {
	limits Limits
	burst  int

	mu     sync.Mutex
	byName map[string]*list.Element
	recent list.List // of *Caller, most recent first
}

// Caller is one of the callers that are known.
type Caller struct {
	name    string
	rate    *rate.Limiter
	working int
}

// NewCallers returns nil if there are no limits.
func NewCallers(limits Limits) *Callers {
	if limits == (Limits{}) {
		return nil
	}
	return &Callers{limits: limits, burst: int(max(1, math.Ceil(limits.Rate*burstTime.Seconds()))), byName: make(map[string]*list.Element)}
}

// Enter lets a caller do one more thing, which must Leave. Otherwise it returns an
// error and how long the caller should wait.
func (c *Callers) Enter(name string, now time.Time) (*Caller, time.Duration, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.caller(name)
	if c.limits.Concurrent > 0 && p.working >= c.limits.Concurrent {
		return nil, time.Second, oda.Errorf(oda.RateLimited, "%d requests of yours are in progress, which is the limit for one caller. "+
			"Nothing was done for this one. Wait until one of them has ended, and try again.", p.working)
	}
	if p.rate != nil {
		one := p.rate.ReserveN(now, 1)
		if wait := one.DelayFrom(now); wait > 0 {
			one.CancelAt(now)
			return nil, wait, oda.Errorf(oda.RateLimited, "You send more than the %g requests per second that one caller may send to this archive. "+
				"Nothing was done for this one. Wait as long as Retry-After says, and try again.", c.limits.Rate)
		}
	}
	p.working++
	return p, 0, nil
}

// Leave ends what a caller did.
func (c *Callers) Leave(p *Caller) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.working--
}

// caller returns a caller. The mutex is held.
func (c *Callers) caller(name string) *Caller {
	if e := c.byName[name]; e != nil {
		c.recent.MoveToFront(e)
		return e.Value.(*Caller)
	}
	if len(c.byName) >= callersMost {
		c.forget()
	}
	p := &Caller{name: name}
	if c.limits.Rate > 0 {
		p.rate = rate.NewLimiter(rate.Limit(c.limits.Rate), c.burst)
	}
	c.byName[name] = c.recent.PushFront(p)
	return p
}

// forget forgets the caller who called least recently and has nothing in progress.
func (c *Callers) forget() {
	for e := c.recent.Back(); e != nil; e = e.Prev() {
		if p := e.Value.(*Caller); p.working == 0 {
			c.recent.Remove(e)
			delete(c.byName, p.name)
			return
		}
	}
}

// Address returns the name of a caller of whom only the address is known. The
// addresses of a network of IPv6 count as one, because one machine has them all.
func Address(address string) string {
	addr, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		if network, err := addr.Prefix(64); err == nil {
			return network.String()
		}
	}
	return addr.String()
}
