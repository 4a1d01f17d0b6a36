package admission

import (
	"context"
	"slices"
	"sync"
	"time"
)

// adjustTime is the time between two looks at how the work goes.
const adjustTime = 100 * time.Millisecond

// mostWaiting bounds how many wait.
const mostWaiting = 4096

// bounds are the bounds of a class.
type bounds struct {
	least, most int           // of the limit
	work        time.Duration // that a request may take on average
	wait        time.Duration // that one waits to be admitted
	// The last to come is admitted first. So when there are too many, those that are
	// admitted have hardly waited. The others wait for a while and are refused.
	lastFirst bool
}

// desk admits the requests of one class. How many work at once depends on how long they
// take: a number that suits one machine is wrong for another, or for the same one when
// other programs use it too.
type desk struct {
	bounds
	pressed func(time.Time) bool // whether others need the machine more
	press   func()               // called when requests are slow or have to wait

	mu      sync.Mutex
	limit   int
	working int
	waiting []chan struct{} // closed when the request is admitted
	began   time.Time       // of what is added up
	done    int
	took    time.Duration
	full    bool // the limit was reached
	refused int64
}

// start returns the limit as long as nothing is known about the work. It leaves room for
// others when some wait for a lock.
func (d *desk) start() int { return min(8*d.least, d.most) }

func (d *desk) enter(ctx context.Context) error {
	d.mu.Lock()
	if d.working < d.limit && len(d.waiting) == 0 {
		d.working++
		d.mu.Unlock()
		return nil
	}
	if len(d.waiting) >= mostWaiting {
		d.refused++
		d.mu.Unlock()
		return errTooMuch()
	}
	admitted := make(chan struct{})
	d.waiting, d.full = append(d.waiting, admitted), true
	d.mu.Unlock()
	d.press()

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
	i := slices.Index(d.waiting, admitted)
	if i < 0 {
		return false
	}
	d.waiting = slices.Delete(d.waiting, i, i+1)
	return true
}

// leave ends the work of a request, which took the given time, and admits those that wait.
func (d *desk) leave(took time.Duration, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.working--
	d.done++
	d.took += min(took, 2*d.work) // a few that are held up do not make the work slow
	if now.Sub(d.began) >= adjustTime {
		d.adjust(now)
	}
	for d.working < d.limit && len(d.waiting) > 0 {
		next := 0
		if d.lastFirst {
			next = len(d.waiting) - 1
		}
		close(d.waiting[next])
		d.waiting = slices.Delete(d.waiting, next, next+1)
		d.working++
	}
}

// adjust looks at how the work went since the last time. If it takes too long, fewer
// are admitted at once. If it does not, the limit returns to what it was at first, and
// rises further if some had to wait.
func (d *desk) adjust(now time.Time) {
	switch mean := d.took / time.Duration(d.done); {
	case mean > d.work:
		d.press()
		d.limit = max(d.least, d.limit*3/4)
	case d.pressed(now):
		d.limit = max(d.least, d.limit*3/4)
	case d.full || d.limit < d.start():
		d.limit = min(d.most, d.limit+d.limit/8+1)
	}
	d.began, d.done, d.took, d.full = now, 0, 0, false
}
