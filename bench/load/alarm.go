package load

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// alarm wakes one goroutine at a moment. time.Sleep will not do: in a program
// that is idle in between it woke 0.9 ms late (median of 300 waits of 2.3 ms),
// which would be most of the latency of a fast server. A timer of the kernel
// woke 0.03 ms late, with 16 goroutines 0.06 ms.
type alarm struct {
	file *os.File
	fd   int
	read [8]byte
	stop func() bool
}

// newAlarm makes an alarm whose waiting ends, with an error, with the context.
func newAlarm(ctx context.Context) (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making a timer: %w", err)
	}
	a := &alarm{file: os.NewFile(uintptr(fd), "timer"), fd: fd}
	a.stop = context.AfterFunc(ctx, func() {
		// A moment that has passed ends a wait; it fails on a closed file
		// alone, where nobody waits.
		_ = a.file.SetReadDeadline(time.Unix(1, 0))
	})
	return a, nil
}

// wait returns at the moment, or at once where it has passed.
func (a *alarm) wait(moment time.Time) error {
	left := time.Until(moment)
	if left <= 0 {
		return nil
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(left))}
	if err := unix.TimerfdSettime(a.fd, 0, &spec, nil); err != nil {
		return fmt.Errorf("setting a timer: %w", err)
	}
	if _, err := a.file.Read(a.read[:]); err != nil {
		return fmt.Errorf("waiting for a timer: %w", err)
	}
	return nil
}

func (a *alarm) close() {
	a.stop()
	a.file.Close()
}
