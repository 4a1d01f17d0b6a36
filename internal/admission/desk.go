package admission

import (
	"context"
	"sync"
	"time"
)

// adjustTime is the time between two looks at how the work goes.
const adjustTime = 100 * time.Millisecond

// How many may wait. While the limit is reached all the time, that follows from how many
// are done in a second, so that those who are admitted have not waited for long.
const (
	leastWaiting = 16
	mostWaiting  = 4096
	standing     = 250 * time.Millisecond
)

// bounds are those of a class.
type bounds struct {
	least, most int           // of the limit
	work        time.Duration // that a request may take on average
	wait        time.Duration // that one waits to be admitted
}

// desk admits the requests of one class, first come, first served. How many work at
// once follows from how long they take.
type desk struct {
	bounds
	giveWay func(time.Time) bool // whether others need the machine more
	slow    func(time.Time)      // called when the requests take longer than work/2

	mu      sync.Mutex
	limit   int
	working int
	waiting []chan struct{} // closed when the request is admitted
	began   time.Time       // of what is added up
	done    int
	took    time.Duration
	refused int64
	busy    bool // some had to wait at the last look
	room    int  // how many may wait
}

func (d *desk) enter(ctx context.Context) error {
	d.mu.Lock()
	if d.working < d.limit && len(d.waiting) == 0 {
		d.working++
		d.mu.Unlock()
		return nil
	}
	if len(d.waiting) >= d.room {
		d.refused++
		d.mu.Unlock()
		return errTooMuch() // it would wait for too long
	}
	admitted := make(chan struct{})
	d.waiting = append(d.waiting, admitted)
	d.mu.Unlock()

	late := time.NewTimer(d.wait)
	defer late.Stop()
	select {
	case <-admitted:
		return nil
	case <-late.C:
	case <-ctx.Done():
	}
	if !d.giveUp(admitted) {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refused++
	return errTooMuch()
}

// giveUp stops waiting. It reports false if the request was admitted meanwhile.
func (d *desk) giveUp(admitted chan struct{}) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, w := range d.waiting {
		if w == admitted {
			d.waiting = append(d.waiting[:i], d.waiting[i+1:]...)
			return true
		}
	}
	return false
}

// leave ends the work of a request that took so long, and admits those that wait.
func (d *desk) leave(took time.Duration, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.working--
	d.done++
	d.took += took
	if elapsed := now.Sub(d.began); elapsed >= adjustTime {
		d.adjust(now, elapsed)
	}
	for d.working < d.limit && len(d.waiting) > 0 {
		close(d.waiting[0])
		d.waiting = d.waiting[1:]
		d.working++
	}
}

// adjust looks at how the work went since the last time. If it takes too long, fewer
// are admitted at once, else more again.
func (d *desk) adjust(now time.Time, elapsed time.Duration) {
	mean := d.took / time.Duration(d.done)
	if mean > d.work/2 {
		d.slow(now)
	}
	switch {
	case mean > d.work || d.giveWay(now):
		d.limit = max(d.least, d.limit*3/4)
	default:
		d.limit = min(d.most, d.limit+d.limit/8+1)
	}
	busy := len(d.waiting) > 0
	d.room = mostWaiting
	if busy && d.busy {
		d.room = min(mostWaiting, max(leastWaiting, int(int64(d.done)*int64(standing)/int64(elapsed))))
	}
	d.busy = busy
	d.began, d.done, d.took = now, 0, 0
}
