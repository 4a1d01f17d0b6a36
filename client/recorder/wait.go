package recorder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"time"

	"oda/client"
)

const (
	firstWait = 100 * time.Millisecond // before the first retry
	mostWait  = 5 * time.Second
	stuckWait = 30 * time.Second // before the retry of a request that needs a person's help
	awayEvery = time.Minute      // at most, a report that the archive is unavailable
)

// denied is what the log says about a token that the archive does not accept.
const denied = "the archive does not accept the token for this block; records wait in the spool until it does"

// backoff is the wait after consecutive failures.
type backoff struct{ next time.Duration }

// after returns the wait after a failure. It is random, so that recorders do
// not all come back at once.
func (b *backoff) after(err error) time.Duration {
	if _, stuck := errors.AsType[*stuckError](err); stuck {
		return stuckWait
	}
	b.next = min(max(2*b.next, firstWait), mostWait)
	wait := b.next/2 + rand.N(b.next/2) // #nosec G404 -- so that recorders do not all come back at once
	if asked, ok := errors.AsType[*client.Answer](err); ok {
		wait = max(wait, min(asked.RetryAfter, mostWait))
	}
	return wait
}

func (b *backoff) reset() { b.next = 0 }

// outage logs that records cannot be sent: when an outage begins, now and then,
// and once when it is over and everything that waited is sent. That the archive does
// not accept the token is said once.
type outage struct {
	log    *slog.Logger
	since  time.Time // zero if there is none
	stored int64     // records that had been stored then
	told   time.Time
	text   string // the last one logged
}

// failed notes a failure. Stored is how many records were stored before it.
func (o *outage) failed(err error, lag Lag, stored int64) {
	level, text, every := slog.LevelWarn, "the archive is unavailable; records wait in the spool", awayEvery
	if client.Denied(err) {
		level, text, every = slog.LevelError, denied, math.MaxInt64
	} else if _, stuck := errors.AsType[*stuckError](err); stuck {
		level, text = slog.LevelError, "the archive refuses the records of this block; they wait in the spool"
	} else if !isAway(err) {
		level, text = slog.LevelError, "the spool cannot be read or cleaned up; records wait in it"
	}
	now := time.Now()
	if o.since.IsZero() {
		o.since, o.stored = now, stored
	} else if text == o.text && now.Sub(o.told) < every {
		return
	}
	o.told, o.text = now, text
	o.log.Log(context.Background(), level, text, "records", lag.Records, "bytes", lag.Bytes, "error", err)
}

// over notes that nothing waits any more. Stored is how many records were stored.
func (o *outage) over(stored int64) {
	if !o.since.IsZero() {
		o.log.Info(fmt.Sprintf("the archive is back, %d records sent", stored-o.stored), "after", time.Since(o.since).Round(time.Millisecond))
		o.since = time.Time{}
	}
}
