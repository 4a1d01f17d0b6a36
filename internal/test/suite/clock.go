package suite

import (
	"context"
	"fmt"
	"sync"
	"time"

	"oda"
)

// Clock is a clock for tests. It is safe for concurrent use.
type Clock struct {
	mu   sync.Mutex
	now  oda.Instant
	step oda.Instant
}

// NewClock returns a clock that starts at the first of January 2026 and
// advances by a second whenever it is read.
func NewClock() *Clock {
	return &Clock{
		now:  oda.InstantOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
		step: oda.Instant(time.Second / time.Microsecond),
	}
}

// Now returns the time, and advances the clock.
func (c *Clock) Now() oda.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now
	c.now += c.step
	return now
}

// Set sets the clock to an instant, and how far it advances when read.
func (c *Clock) Set(now oda.Instant, step time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now, c.step = now, oda.Instant(step/time.Microsecond)
}

// Minter mints consecutive identifiers: eb-1, eb-2 and so on. It is safe for
// concurrent use.
type Minter struct {
	mu     sync.Mutex
	minted int
	queued []string
}

// Mint implements oda.Minter.
func (m *Minter) Mint(_ context.Context, kind oda.Kind) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.minted++
	if len(m.queued) > 0 {
		id := m.queued[0]
		m.queued = m.queued[1:]
		return id, nil
	}
	return fmt.Sprintf("%s-%d", kind.Prefix(), m.minted), nil
}

// Queue makes the minter return these identifiers first.
func (m *Minter) Queue(ids ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queued = append(m.queued, ids...)
}

// Minted returns how many identifiers were requested.
func (m *Minter) Minted() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.minted
}
