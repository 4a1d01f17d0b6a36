package recorder

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Sync says when the spool is forced to disk. Even without a sync, records
// survive the end of the process, including kill -9; a sync makes them survive
// a power cut.
type Sync int

const (
	// SyncInterval syncs in the background, ten times a second and when a
	// segment is full. A power cut may lose the last tenth of a second.
	SyncInterval Sync = iota
	// SyncAlways syncs each record before Record returns, which then takes as
	// long as the disk does. If the sync fails, so does Record.
	SyncAlways
	// SyncNever leaves syncing to the operating system.
	SyncNever
)

var (
	// ErrDropped is in the error chain if a record was dropped, because the
	// spool is full or the disk fails.
	ErrDropped = errors.New("the record was dropped")
	// ErrNotSynced is in the error chain if SyncAlways could not force a record
	// to disk. The record is in the spool and will be sent, but may not survive
	// a power cut.
	ErrNotSynced = errors.New("the record is not safe on disk yet")
	// ErrPutAside is in the error chain if records are in the session's
	// refused.log or damaged.log, and not in the archive.
	ErrPutAside = errors.New("records were put aside")
	// ErrClosed is the error of a closed recorder.
	ErrClosed = errors.New("the recorder is closed")
)

// writer appends records to the segments of a session. Record waits for this
// and nothing else: no network, and no disk beyond the system's cache.
type writer struct {
	s      *session
	policy Sync
	most   int64 // bytes that may wait

	number atomic.Int64 // the last that was taken

	mu      sync.Mutex
	closed  bool
	file    *os.File
	at      position // the end of the newest segment
	torn    bool     // the newest segment must not be written to
	dirty   bool     // there is something to sync
	fresh   bool     // a name is not synced yet
	retired []*os.File
	line    []byte
	amount  tally // written
	done    tally // of it, acknowledged or put aside
	times   times
	dropped int64
	why     error // why the last record was dropped
}

// tally counts lines and their bytes.
type tally struct{ records, bytes int64 }

func newWriter(s *session, policy Sync, most int64) (*writer, error) {
	w := &writer{s: s, policy: policy, most: most}
	if err := w.rotate(); err != nil {
		return nil, fmt.Errorf("begin the spool: %w", err)
	}
	return w, nil
}

// take returns a number for a line that is written later, or never.
func (w *writer) take() int64 { return w.number.Add(1) }

// append writes a line to the newest segment, with the number that was taken for it, or
// the next if that is 0. One that cannot be kept is dropped and counted; earlier ones are
// never dropped for it.
func (w *writer) append(number int64, sort string, body []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return ErrClosed
	}
	if cap(w.line) > keptBuffer {
		w.line = nil
	}
	if number == 0 {
		number = w.take()
	}
	w.line = appendLine(w.line[:0], w.s.id, number, sort, body)
	size := int64(len(w.line))
	switch waiting := w.amount.bytes - w.done.bytes; {
	case size > maxLine:
		return w.drop(fmt.Errorf("it has %d bytes; an archive accepts at most %d", len(body), maxLine))
	case waiting+size > w.most:
		return w.drop(fmt.Errorf("the spool is full: %d bytes wait for the archive", waiting))
	}
	if w.at.offset >= segmentBytes || w.torn {
		if err := w.rotate(); err != nil {
			return w.drop(err)
		}
	}
	if _, err := w.file.Write(w.line); err != nil {
		// A part of the line may have been written. If it cannot be removed,
		// nothing is written after it, and it is later found to be damaged.
		w.torn = w.file.Truncate(w.at.offset) != nil
		if w.at.offset > 0 {
			// Begin the next segment, so that this one can be removed once it
			// is shipped. If that fails, the next record tries again.
			_ = w.rotate()
		}
		return w.drop(err)
	}
	w.at.offset += size
	w.amount.records++
	w.amount.bytes += size
	w.times.add(w.amount.records, time.Now())
	w.dirty = true
	if w.policy == SyncAlways {
		if err := w.force(); err != nil {
			return fmt.Errorf("%w: %w", ErrNotSynced, err)
		}
	}
	return nil
}

// force syncs the newest segment and its name. After a failure nobody can tell
// which part of the segment is on disk, not even after a later success. So the
// next record begins a new segment.
func (w *writer) force() error {
	if err := w.file.Sync(); err != nil {
		w.torn = true
		return err
	}
	w.dirty = false
	if w.fresh {
		if err := w.s.in.sync(); err != nil {
			return err
		}
		w.fresh = false
	}
	return nil
}

func (w *writer) drop(why error) error {
	w.dropped++
	w.why = why
	return fmt.Errorf("%w: %w", ErrDropped, why)
}

// rotate begins the next segment.
func (w *writer) rotate() error {
	next := w.at.segment + 1
	file, err := w.s.in.create(segmentName(next))
	if err != nil {
		return err
	}
	if w.file != nil {
		w.retired = append(w.retired, w.file)
	}
	w.file, w.at, w.fresh, w.torn = file, position{segment: next}, true, false
	return nil
}

// end returns the end of the last complete line.
func (w *writer) end() position {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

// markDone notes that records up to a position were acknowledged or put aside.
func (w *writer) markDone(to position, some tally) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done.records = min(w.done.records+some.records, w.amount.records)
	w.done.bytes = min(w.done.bytes+some.bytes, w.amount.bytes)
	if to == w.at {
		// Lines that the disk has damaged could not be counted.
		w.done, w.times = w.amount, times{}
	}
}

// lag returns what waits, and the age of the oldest record.
func (w *writer) lag() (waiting tally, age time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	waiting = tally{w.amount.records - w.done.records, w.amount.bytes - w.done.bytes}
	if waiting.records > 0 {
		age = time.Since(w.times.oldest(w.done.records + 1))
	}
	return waiting, age
}

// sync does the background work of the sync policy. Only one goroutine calls
// it.
func (w *writer) sync() error {
	w.mu.Lock()
	file, retired := w.file, w.retired
	dirty, fresh := w.dirty && w.policy == SyncInterval, w.fresh && w.policy == SyncInterval
	w.retired = nil
	if w.policy == SyncInterval {
		w.dirty, w.fresh = false, false
	}
	w.mu.Unlock()
	var errs []error
	for _, full := range retired {
		if w.policy == SyncInterval {
			errs = append(errs, full.Sync())
		}
		errs = append(errs, full.Close())
	}
	if dirty {
		errs = append(errs, file.Sync())
	}
	if fresh {
		if err := w.s.in.sync(); err != nil {
			errs = append(errs, err)
			w.mu.Lock()
			w.fresh = true // try again next time
			w.mu.Unlock()
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("sync the spool: %w", err)
	}
	return nil
}

// close ends the writing. Nothing is appended after it.
func (w *writer) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
}

// finish syncs what is written and closes the files. No other goroutine uses
// the writer by then.
func (w *writer) finish() error {
	return errors.Join(w.sync(), w.file.Close())
}

// times remembers roughly when records were written: the age of the oldest is
// known to a small fraction. It is bounded, however long an archive is
// unavailable.
type times struct {
	marks []mark
	every time.Duration // minimum time between marks
}

type mark struct {
	first int64 // number of the first record of the mark
	at    time.Time
}

const (
	mostMarks = 512
	markEvery = 10 * time.Millisecond
)

func (t *times) add(number int64, now time.Time) {
	t.every = max(t.every, markEvery)
	if n := len(t.marks); n > 0 && now.Sub(t.marks[n-1].at) < t.every {
		return
	}
	if len(t.marks) == mostMarks {
		for i := range mostMarks / 2 {
			t.marks[i] = t.marks[2*i]
		}
		t.marks, t.every = t.marks[:mostMarks/2], 2*max(t.every, now.Sub(t.marks[0].at)/mostMarks)
	}
	t.marks = append(t.marks, mark{number, now})
}

// oldest returns when a record was written, or a little earlier, and forgets
// everything before it. The record must have been added.
func (t *times) oldest(number int64) time.Time {
	before := 0
	for before+1 < len(t.marks) && t.marks[before+1].first <= number {
		before++
	}
	t.marks = append(t.marks[:0], t.marks[before:]...)
	if len(t.marks) < mostMarks/4 {
		t.every /= 2
	}
	return t.marks[0].at
}
