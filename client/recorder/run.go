package recorder

import (
	"context"
	"time"
)

// advanced is called by the shipper when everything before a position is
// settled.
func (r *Recorder) advanced(to position, some tally) {
	r.write.markDone(to, some)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at, r.created, r.refused, r.damaged = to, r.ship.created, r.ship.count.refused, r.ship.count.damaged
	close(r.moved)
	r.moved = make(chan struct{})
}

// shipping sends records for as long as the recorder lives.
func (r *Recorder) shipping(ctx context.Context) {
	var wait backoff
	away := outage{log: r.log}
	for {
		more, err := r.ship.ship(ctx, r.write.end())
		if err == nil {
			wait.reset()
		}
		if err == nil && !more {
			away.over(r.ship.count.stored)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			away.failed(err, r.Lag(), r.ship.count.stored)
			if !r.pause(ctx, wait.after(err)) {
				return
			}
		case !more && !r.rest(ctx):
			return
		}
	}
}

// pause waits, but not as long if a caller is in a hurry. It returns false when
// the recorder should stop.
func (r *Recorder) pause(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-r.hurry:
	case <-timer.C:
	}
	return true
}

// rest waits until there is something to send, and a little longer, so that
// records in quick succession go in one batch.
func (r *Recorder) rest(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-r.hurry:
		return true
	case <-r.wake:
		return r.pause(ctx, linger)
	}
}

// syncing forces the spool to disk and reports what Record has no time to
// report.
func (r *Recorder) syncing(ctx context.Context) {
	ticker := time.NewTicker(syncEvery)
	defer ticker.Stop()
	var drops dropReport
	for {
		select {
		case <-ctx.Done():
			drops.report(r, true)
			return
		case <-ticker.C:
		}
		if err := r.write.sync(); err != nil {
			r.log.Error("cannot sync the spool to disk; a power cut may lose records", "error", err)
		}
		drops.report(r, false)
	}
}

// dropReport logs dropped records: the first at once, then now and then.
type dropReport struct {
	told int64
	at   time.Time
}

func (d *dropReport) report(r *Recorder, last bool) {
	r.write.mu.Lock()
	dropped, why := r.write.dropped, r.write.why
	r.write.mu.Unlock()
	if dropped == d.told || !last && d.told > 0 && time.Since(d.at) < reportEvery {
		return
	}
	r.log.Error("RECORDS ARE LOST: the spool could not take them",
		"dropped", dropped, "reason", why, "spool", r.session.dir)
	d.told, d.at = dropped, time.Now()
}
