package migrate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Database is what Run needs from an engine.
type Database[Tx any] interface {
	// State reads the state of the database. It takes no lock and needs no right
	// to change anything.
	State(ctx context.Context) (State, error)

	// Transact runs work in a transaction that only one process can have at a
	// time. If another process stands in its way, the error is ErrLocked.
	Transact(ctx context.Context, work func(Tx) error) error

	// Alone returns an error that names the processes that are connected and do not
	// know a step, and says what to do about them.
	Alone(ctx context.Context, tx Tx, step Step[Tx]) error

	// StateOf is State within a transaction.
	StateOf(ctx context.Context, tx Tx) (State, error)
	// Script runs the statements of a step.
	Script(ctx context.Context, tx Tx, sql string) error
	// Enter adds a step to the list of applied steps, and forgets how far it had
	// come.
	Enter(ctx context.Context, tx Tx, step Step[Tx]) error
	// Keep stores how far a step has come.
	Keep(ctx context.Context, tx Tx, step Step[Tx], part Part) error
}

// ErrLocked says that another process is changing the schema, or uses what a step changes.
var ErrLocked = errors.New("another process is changing the schema, or uses what a step changes")

// The pauses between two attempts to get a lock that another process holds. They
// double from the first to the longest.
const (
	firstPause   = 10 * time.Millisecond
	longestPause = time.Second
)

// logEvery is the time between two lines of progress in the log.
const logEvery = 5 * time.Second

// Status says how far the steps have come.
type Status struct {
	Number  int // of the current step
	Last    int // number of the last step
	Name    string
	New     bool // the database had no tables before: nothing is upgraded
	Waiting bool // another process does the step, or stands in its way
	Done    int64
	Total   int64 // 0: not known
}

// String returns the status as part of a sentence.
func (s Status) String() string {
	text := fmt.Sprintf("schema step %d of %d (%s)", s.Number, s.Last, s.Name)
	if s.Total > 0 {
		text += fmt.Sprintf(", %d of %d", s.Done, s.Total)
	}
	if s.Waiting {
		text += ", waiting for another process"
	}
	return text
}

// Run applies the steps that a database lacks, however long that takes. Several
// processes may do so at once: the one that has the lock does a part of a step, and
// the others wait and do the next. Run calls tell with its progress, unless there
// is nothing to do. Its error says what it has changed, if anything.
func Run[Tx any](ctx context.Context, db Database[Tx], steps []Step[Tx], log *slog.Logger, tell ...func(Status)) (err error) {
	state, err := db.State(ctx)
	if err != nil {
		return err
	}
	pending, err := Pending(steps, state)
	if err != nil || len(pending) == 0 {
		return err
	}
	w := newWatcher(log, tell, len(state.Applied) == 0 && state.Begun == 0)
	defer w.end()
	var c changes
	defer func() { err = c.explain(err) }()
	for pause := firstPause; ; {
		ended, err := advance(ctx, db, steps, w, &c)
		switch {
		case errors.Is(err, ErrLocked):
			if ended, err = wait(ctx, db, steps, w, pause); err != nil || ended {
				return err
			}
			pause = min(2*pause, longestPause)
		case err != nil || ended:
			return err
		default:
			pause = firstPause
		}
	}
}

// changes is what a run has changed.
type changes struct {
	first, last int // steps that it has completed
	begun       int // the step of which it has done a part, or 0
}

func (c *changes) add(number int, complete bool) {
	if !complete {
		c.begun = number
		return
	}
	c.last, c.begun = number, 0
	if c.first == 0 {
		c.first = number
	}
}

// explain adds what was changed to an error. That nothing was changed is certain only
// if the run was refused before it began.
func (c *changes) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case c.begun > 0 && c.first == 0:
		return fmt.Errorf("%w; a part of schema step %d was applied before", err, c.begun)
	case c.first > 0 && c.first == c.last:
		return fmt.Errorf("%w; schema step %d was applied before", err, c.first)
	case c.first > 0:
		return fmt.Errorf("%w; schema steps %d to %d were applied before", err, c.first, c.last)
	}
	if _, ok := errors.AsType[refused](err); ok {
		return fmt.Errorf("%w; nothing was changed", err)
	}
	return err
}

// refused is an error of Alone.
type refused struct{ error }

// advance does the next part in a transaction of its own. It reports whether all
// steps have ended.
func advance[Tx any](ctx context.Context, db Database[Tx], steps []Step[Tx], w *watcher, c *changes) (ended bool, err error) {
	var at Status
	var complete bool
	err = db.Transact(ctx, func(tx Tx) error {
		// Another process may have done parts since.
		state, err := db.StateOf(ctx, tx)
		if err != nil {
			return err
		}
		pending, err := Pending(steps, state)
		if err != nil {
			return err
		}
		if len(pending) == 0 {
			ended = true
			return nil
		}
		step := pending[0]
		at = status(steps, step, state)
		if err := admit(ctx, db, tx, pending, state); err != nil {
			return err
		}
		w.note(at)
		part, err := do(ctx, db, tx, step, state)
		if err != nil {
			return fmt.Errorf("schema step %d (%s): %w", step.Number, step.Name, err)
		}
		at.Done, at.Total, complete = part.Done, part.Total, part.End
		return nil
	})
	if err == nil && !ended {
		c.add(at.Number, complete)
		w.note(at)
	}
	return ended, err
}

// admit returns an error before a step begins if one of the pending steps is refused, so
// that an upgrade does not end halfway. The last step that excludes older processes
// excludes the most.
func admit[Tx any](ctx context.Context, db Database[Tx], tx Tx, pending []Step[Tx], state State) error {
	if len(state.Applied) == 0 || state.Begun == pending[0].Number {
		return nil
	}
	for _, step := range slices.Backward(pending) {
		if step.Beside {
			continue
		}
		if err := db.Alone(ctx, tx, step); err != nil {
			return refused{fmt.Errorf("schema step %d (%s): %w", step.Number, step.Name, err)}
		}
		break
	}
	return nil
}

// do does the next part of a step.
func do[Tx any](ctx context.Context, db Database[Tx], tx Tx, step Step[Tx], state State) (part Part, err error) {
	part.End = true
	if step.Work == nil {
		err = db.Script(ctx, tx, step.SQL)
	} else {
		if state.Begun == step.Number {
			part = state.Part
		}
		part, err = step.Work(ctx, tx, part.At)
	}
	switch {
	case err != nil:
		return part, err
	case part.End:
		return part, db.Enter(ctx, tx, step)
	}
	return part, db.Keep(ctx, tx, step, part)
}

// wait waits while another process has the lock, and notes its progress. It
// reports whether all steps have ended.
func wait[Tx any](ctx context.Context, db Database[Tx], steps []Step[Tx], w *watcher, pause time.Duration) (ended bool, err error) {
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case <-time.After(pause):
	}
	state, err := db.State(ctx)
	if err != nil {
		return false, err
	}
	pending, err := Pending(steps, state)
	if err != nil || len(pending) == 0 {
		return true, err
	}
	at := status(steps, pending[0], state)
	at.Waiting = true
	w.note(at)
	return false, nil
}

func status[Tx any](steps []Step[Tx], step Step[Tx], state State) Status {
	s := Status{Number: step.Number, Last: len(steps), Name: step.Name}
	if state.Begun == step.Number {
		s.Done, s.Total = state.Part.Done, state.Part.Total
	}
	return s
}

// watcher reports the progress to the log and the caller, even while one statement
// takes long.
type watcher struct {
	log    *slog.Logger
	tell   []func(Status)
	isNew  bool // the database was empty
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu    sync.Mutex
	at    Status
	since time.Time // when this process began the step
}

func newWatcher(log *slog.Logger, tell []func(Status), isNew bool) *watcher {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watcher{log: log, tell: tell, isNew: isNew, cancel: cancel}
	w.done.Go(func() { w.run(ctx) })
	return w
}

func (w *watcher) run(ctx context.Context) {
	ticker := time.NewTicker(logEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			w.mu.Lock()
			w.line("schema step in progress")
			w.mu.Unlock()
		}
	}
}

func (w *watcher) end() {
	w.cancel()
	w.done.Wait()
}

// note notes and reports a new status.
func (w *watcher) note(at Status) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.at
	at.New = w.isNew
	w.at = at
	if before.Number != at.Number {
		w.since = time.Now()
	}
	switch {
	case at.Waiting && !before.Waiting:
		w.line("waiting for another process that changes the schema")
	case !at.Waiting && (before.Number != at.Number || before.Waiting):
		w.line("schema step")
	}
	for _, tell := range w.tell {
		tell(at)
	}
}

// line writes one line to the log.
func (w *watcher) line(message string) {
	attrs := []any{"number", w.at.Number, "of", w.at.Last, "name", w.at.Name}
	if w.at.Total > 0 {
		attrs = append(attrs, "done", w.at.Done, "total", w.at.Total)
	}
	if took := time.Since(w.since); took >= time.Second {
		attrs = append(attrs, "seconds", int64(took.Seconds()))
	}
	w.log.Info(message, attrs...)
}
