package load

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"oda/bench/measure"
)

// run dials all connections, starts the clock and drives them to the end of
// the schedule.
func run(ctx context.Context, t Target, plan func(start time.Time) schedule) (measure.Sample, error) {
	if err := t.check(); err != nil {
		return measure.Sample{}, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	drivers := make([]*driver, 0, t.Connections)
	defer func() {
		for _, d := range drivers {
			d.close()
		}
	}()
	for i := range t.Connections {
		d, err := newDriver(ctx, t, i)
		if err != nil {
			return measure.Sample{}, err
		}
		drivers = append(drivers, d)
	}

	var (
		all     sync.WaitGroup
		worked  = make([]time.Duration, t.Connections)
		tallies = make([]*measure.Tally, t.Connections)
		start   = time.Now()
		sched   = plan(start)
	)
	for i, d := range drivers {
		tallies[i] = d.tally
		all.Go(func() {
			if err := d.drive(ctx, sched); err != nil {
				cancel(err)
			}
			worked[i] = time.Since(start)
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return measure.Sample{}, fmt.Errorf("the load was cut off: %w", context.Cause(ctx))
	}
	return sched.total(worked, tallies), nil
}

// driver is one connection with its worker.
type driver struct {
	addr     string
	patience time.Duration
	discard  bool
	worker   Worker
	conn     *conn
	alarm    *alarm
	tally    *measure.Tally
	request  []byte
}

// newDriver connects to the server that connection i of the target goes to.
func newDriver(ctx context.Context, t Target, i int) (*driver, error) {
	d := &driver{
		addr:     t.addr(i),
		patience: cmp.Or(t.Patience, defaultPatience),
		discard:  t.Discard,
		worker:   t.New(i),
		tally:    measure.NewTally(),
	}
	var err error
	if d.conn, err = dial(ctx, d.addr, d.patience); err != nil {
		return nil, err
	}
	if d.alarm, err = newAlarm(ctx); err != nil {
		d.conn.close()
		return nil, err
	}
	return d, nil
}

func (d *driver) close() {
	d.alarm.close()
	d.conn.close()
}

// drive sends what the schedule asks for. What goes wrong with one request is
// counted; an error means that there is no server to go on with.
func (d *driver) drive(ctx context.Context, sched schedule) error {
	for ctx.Err() == nil {
		due, more, err := sched.next(d.alarm)
		if err != nil || !more {
			return err
		}
		d.request = d.worker.Next(d.request[:0])
		answer, done, err := d.conn.exchange(d.request, d.discard)
		if err != nil {
			d.tally.Fail(err)
		} else if err := d.worker.Answered(answer); err != nil {
			d.tally.Fail(err)
		} else {
			d.tally.Done(done.Sub(due), answer.Size)
		}
		if d.conn.reusable {
			continue
		}
		d.conn.close()
		fresh, err := dial(ctx, d.addr, d.patience)
		if err != nil {
			return fmt.Errorf("a connection had ended: %w", err)
		}
		d.conn = fresh
	}
	return nil
}
