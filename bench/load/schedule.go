package load

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"oda/bench/measure"
)

// drain is how long an open load goes on sending what was due within its time.
const drain = 2 * time.Second

// schedule says when connections send. All connections of a run share one.
type schedule interface {
	// next waits, by the alarm of the connection, until a request is to be
	// sent. It returns the moment from which its latency counts, or false
	// when there is nothing more to send.
	next(a *alarm) (due time.Time, more bool, err error)
	// total makes the sample of the run. It is given how long each
	// connection worked.
	total(worked []time.Duration, tallies []*measure.Tally) measure.Sample
}

// backToBack lets every connection send at once until the end.
type backToBack struct {
	end time.Time
}

func (b *backToBack) next(*alarm) (time.Time, bool, error) {
	now := time.Now()
	return now, now.Before(b.end), nil
}

func (b *backToBack) total(worked []time.Duration, tallies []*measure.Tally) measure.Sample {
	return measure.Total(measure.Mean(worked), tallies...)
}

// constantRate deals out numbered moments, a constant time apart. A connection
// takes the next number when it is free and waits for its moment; when all of
// them are held up, the moments pass and the requests are sent late, but with
// the moment at which they were due.
type constantRate struct {
	start    time.Time
	interval float64 // nanoseconds; a whole number would drift
	count    int64   // requests due within the length
	length   time.Duration
	taken    atomic.Int64
}

func newConstantRate(start time.Time, rate float64, length time.Duration) *constantRate {
	return &constantRate{
		start:    start,
		interval: float64(time.Second) / rate,
		count:    int64(math.Ceil(rate * length.Seconds())),
		length:   length,
	}
}

func (c *constantRate) next(a *alarm) (time.Time, bool, error) {
	if time.Since(c.start) > c.length+drain {
		return time.Time{}, false, nil
	}
	number := c.taken.Add(1) - 1
	if number >= c.count {
		return time.Time{}, false, nil
	}
	due := c.start.Add(time.Duration(float64(number) * c.interval))
	return due, true, a.wait(due)
}

func (c *constantRate) total(worked []time.Duration, tallies []*measure.Tally) measure.Sample {
	if unsent := c.count - c.taken.Load(); unsent > 0 {
		tallies[0].FailMany(unsent, fmt.Errorf(
			"%d of %d requests were never sent: the answers do not keep up with the rate", unsent, c.count))
	}
	elapsed := c.length
	for _, w := range worked {
		elapsed = max(elapsed, w)
	}
	return measure.Total(elapsed, tallies...)
}
