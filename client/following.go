package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"
)

const eventStream = "text/event-stream"

// heartbeats is how long a stream may be silent: the archive sends something
// every 15 seconds.
const heartbeats = 45 * time.Second

// longestAway bounds the pause before a stream is asked for again, also if the
// archive asks for a longer one.
const longestAway = time.Minute

// patient returns a client that waits for an answer at least for the given time.
func (c *Client) patient(least time.Duration) *Client {
	patient := *c
	patient.silence = max(c.silence, least)
	return &patient
}

// following is a stream that is asked for again whenever it ends.
type following struct {
	client     *Client
	path       func(last int64) string
	last       int64                     // the number of the last event that was taken
	take       func(event) (bool, error) // takes an event, and reports whether to go on
	unnumbered bool                      // events have no numbers, and stand for themselves
	outage
}

// outage logs once that there was no answer, and that there is one again.
type outage struct{ away bool }

func (o *outage) begin(c *Client, err error) {
	if !o.away {
		o.away = true
		c.logger().Warn("the archive does not answer; asking again until it does", "archive", c.Address(), "error", err)
	}
}

func (o *outage) end(c *Client) {
	if o.away {
		o.away = false
		c.logger().Info("the archive answers again", "archive", c.Address())
	}
}

// errEnded says that the archive ended the stream, as it does when it stops.
var errEnded = fmt.Errorf("%w: the stream ended", ErrNoAnswer)

// run follows until the caller has enough, or an error that asking again does not
// help.
func (f *following) run(ctx context.Context) error {
	pause := firstPause
	for {
		before, begun := f.last, time.Now()
		more, err := f.once(ctx)
		switch {
		case !more:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !resumable(err):
			return err
		}
		// A stream that lasted was no failure, even if nothing has happened meanwhile.
		if f.last != before || time.Since(begun) > heartbeats {
			pause = firstPause
		}
		if !errors.Is(err, errEnded) {
			f.begin(f.client, err)
		}
		if err := wait(ctx, &pause, err); err != nil {
			return err
		}
	}
}

// once follows one stream to its end. It reports whether the caller wants more.
func (f *following) once(ctx context.Context) (more bool, err error) {
	r, err := f.client.patient(heartbeats).attempt(ctx, request{
		method: http.MethodGet, path: api + f.path(f.last), stream: true, header: http.Header{"Accept": {eventStream}},
	})
	if err != nil {
		return true, err
	}
	defer r.stream.Close()
	if r.header.Get("Content-Type") != eventStream {
		return true, garbled(r, errNotEvents)
	}
	f.end(f.client)
	events := newEvents(r.stream, f.client.maxBody)
	for {
		e, err := events.next()
		if errors.Is(err, errNotEvents) {
			return true, garbled(r, err)
		}
		if err != nil {
			return true, fmt.Errorf("%w: %w", errEnded, err)
		}
		if e.number <= f.last && !f.unnumbered {
			if len(e.data) == 0 {
				continue
			}
			return true, garbled(r, errOrder)
		}
		if len(e.data) > 0 {
			more, err := f.take(e)
			if err != nil {
				return true, garbled(r, err)
			}
			if !more {
				return false, nil
			}
		}
		f.last = e.number
	}
}

// wait pauses before a follower asks again, longer each time. It heeds what the
// archive asks for.
func wait(ctx context.Context, pause *time.Duration, because error) error {
	long := *pause/2 + rand.N(*pause) // #nosec G404 -- so that followers do not all come back at once
	if a, ok := errors.AsType[*Answer](because); ok {
		long = max(long, min(a.RetryAfter, longestAway))
	}
	*pause = min(2**pause, longestPause)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(long):
		return nil
	}
}
