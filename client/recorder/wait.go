package recorder

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"oda/client"
)

const (
	firstWait = 100 * time.Millisecond // before a request is tried again
	mostWait  = 5 * time.Second
	stuckWait = 30 * time.Second // before a request that a person must help with
	awayEvery = time.Minute      // at most, a report of an archive that is away
)

// backoff is how long to wait after failures in a row.
type backoff struct{ next time.Duration }

// after gives the wait after a failure. It varies, so that many recorders do
// not come back at the same moment.
func (b *backoff) after(err error) time.Duration {
	if _, stuck := errors.AsType[*stuckError](err); stuck {
		return stuckWait
	}
	b.next = min(max(2*b.next, firstWait), mostWait)
	wait := b.next/2 + rand.N(b.next/2)
	if asked, ok := errors.AsType[*client.Answer](err); ok {
		wait = max(wait, min(asked.RetryAfter, mostWait))
	}
	return wait
}

func (b *backoff) reset() { b.next = 0 }

// outage tells that records cannot be sent: when that begins, now and then, and
// when it is over.
type outage struct {
	log   *slog.Logger
	since time.Time // zero: there is none
	told  time.Time
	text  string // that was told last
}

func (o *outage) failed(err error, lag Lag) {
	level, text := slog.LevelWarn, "the archive is unavailable; records wait in the spool"
	if _, stuck := errors.AsType[*stuckError](err); stuck {
		level, text = slog.LevelError, "the archive refuses the records of this block; they wait in the spool"
	} else if !isAway(err) {
		level, text = slog.LevelError, "the spool cannot be read or cleaned up; records wait in it"
	}
	now := time.Now()
	if o.since.IsZero() {
		o.since = now
	} else if text == o.text && now.Sub(o.told) < awayEvery {
		return
	}
	o.told, o.text = now, text
	o.log.Log(context.Background(), level, text, "records", lag.Records, "bytes", lag.Bytes, "error", err)
}

func (o *outage) over(lag Lag) {
	if !o.since.IsZero() {
		o.log.Info("records are being sent again", "after", time.Since(o.since).Round(time.Millisecond), "waiting", lag.Records)
		o.since = time.Time{}
	}
}
