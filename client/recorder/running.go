package recorder

import (
	"container/list"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"oda"
	"oda/client"
)

const (
	defaultAnnounceAfter = time.Second
	announceTime         = 5 * time.Second // for a request
	mostArguments        = 15 << 10        // bytes; longer ones are not announced
)

// Begun is a function that was called on the telescope and has not returned. It may be
// used by several goroutines.
type Begun struct {
	recorder *Recorder
	request  string
	args     json.RawMessage
	failed   error // why the arguments cannot be recorded
	sent     time.Time
	number   int64 // of its record
	over     atomic.Bool

	place *list.Element
	due   time.Time // when to speak of it again
	said  bool      // the archive may know of it
}

// Begin notes that a function is being called on the telescope: its name, and its
// arguments as in Call. End records what came of it. Begin neither fails nor waits. Once the
// call has lasted a second the archive is told that it is running, and reminded of it until
// it has the record. If the program ends before, the archive calls it silent.
func (r *Recorder) Begin(request string, args any) *Begun {
	b := &Begun{recorder: r, request: request, sent: time.Now(), number: r.write.take()}
	b.args, b.failed = arguments(args)
	r.running.begin(b)
	return b
}

// End records the call with its response, or with the error if there is one. It returns
// what Record does. Only the first End of a call counts, so a program can defer one for the
// case that it does not reach the other.
func (b *Begun) End(response any, failure error) error {
	if b.over.Swap(true) {
		return nil
	}
	b.recorder.running.end(b)
	err := b.record(response, failure)
	if err != nil && !errors.Is(err, ErrNotSynced) {
		b.recorder.running.withdraw(b)
	}
	return err
}

func (b *Begun) record(response any, failure error) error {
	if b.failed != nil {
		return b.failed
	}
	call := Call{
		Request: b.request, RequestArgs: b.args, Status: "OK", Response: response,
		RequestSentAt: b.sent, ResponseReceivedAt: b.sent.Add(time.Since(b.sent)), // whoever sets the clock meanwhile
	}
	if failure != nil {
		call.Status, call.Response, call.Error = "ERROR", nil, failure
	}
	text, err := call.encode()
	if err != nil {
		return err
	}
	return b.recorder.appendAs(b.number, recordLine, text)
}

// running are the calls of a recorder that go on. Those that begin and end wait for
// nothing here: a goroutine tells the archive, with one request at a time. What
// cannot be told is forgotten; only what still goes on is tried again.
type running struct {
	after, lease time.Duration
	wake         chan struct{}

	mu      sync.Mutex
	calls   list.List // of *Begun, in the order in which they began
	over    []int64   // numbers of calls that are to be taken back
	resting bool      // the goroutine waits to be woken
}

func newRunning(o Options) *running {
	return &running{after: o.announceAfter, lease: o.lease, wake: make(chan struct{}, 1)}
}

func (r *running) begin(b *Begun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b.due = b.sent.Add(r.after)
	b.place = r.calls.PushBack(b)
	r.rouse()
}

func (r *running) end(b *Begun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls.Remove(b.place)
}

// withdraw has it taken back that a call is running, since no record will end it.
func (r *running) withdraw(b *Begun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b.said && len(r.over) < oda.MaxRunningOfCaller {
		r.over = append(r.over, b.number)
		r.rouse()
	}
}

func (r *running) rouse() {
	if r.resting {
		r.resting = false
		signal(r.wake)
	}
}

// next returns the call to announce or renew now, or the number of one to take back. If there
// is neither, it returns how long to wait; a negative time means until somebody wakes. New
// calls come first. If there are very many, only the oldest are announced.
func (r *running) next(now time.Time) (call *Begun, over int64, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.over) > 0 {
		over, r.over = r.over[0], r.over[1:]
		return nil, over, 0
	}
	if r.resting = r.calls.Len() == 0; r.resting {
		return nil, 0, -1
	}
	wait = r.after // what begins from now on is not due earlier
	place := r.calls.Front()
	for range min(r.calls.Len(), oda.MaxRunningOfCaller) {
		b := place.Value.(*Begun)
		if left := b.due.Sub(now); left > 0 {
			wait = min(wait, left)
		} else if call == nil || call.said && !b.said {
			call = b
		}
		place = place.Next()
	}
	if call != nil {
		call.said, call.due = true, now.Add(r.lease/3)
	}
	return call, 0, wait
}

// announcing tells the archive what is running, for as long as the recorder lives.
func (r *Recorder) announcing(ctx context.Context) {
	var away backoff
	for {
		call, over, wait := r.running.next(time.Now())
		var err error
		switch {
		case call != nil:
			if err = r.announce(ctx, call); err != nil {
				wait = r.again(call, &away, err)
			}
		case over != 0:
			if err = r.takeBack(ctx, over); err != nil {
				wait = away.after(err)
			}
		}
		if err == nil && (call != nil || over != 0) {
			away.reset()
			continue
		}
		if !r.running.pause(ctx, wait) {
			return
		}
	}
}

// errNotThere is why calls of a block are not announced that the archive does not have.
var errNotThere = errors.New("the archive does not have the block yet")

func (r *Recorder) announce(ctx context.Context, b *Begun) error {
	r.mu.Lock()
	created := r.created
	r.mu.Unlock()
	if !created {
		return errNotThere
	}
	call := client.NewRunning{Request: b.request, Arguments: b.args, SentAt: b.sent, Lease: r.running.lease}
	if len(b.args) > mostArguments {
		call.Arguments = nil
	}
	ctx, cancel := context.WithTimeout(ctx, announceTime)
	defer cancel()
	return r.ship.archive.Begin(ctx, r.BlockID(), r.keyOf(b.number), call)
}

// again has a call tried again that could not be announced, and returns how long to wait
// before anything is.
func (r *Recorder) again(b *Begun, away *backoff, err error) time.Duration {
	if client.Status(err) >= 400 && (!client.Temporary(err) || oda.CodeOf(err) == oda.TooManyRunning) {
		return 0 // others may be announced; this one is due again when it would be renewed
	}
	wait := r.running.after
	if !errors.Is(err, errNotThere) {
		wait = away.after(err)
	}
	r.running.mu.Lock()
	defer r.running.mu.Unlock()
	b.due = time.Now().Add(wait)
	return wait
}

func (r *Recorder) takeBack(ctx context.Context, number int64) error {
	ctx, cancel := context.WithTimeout(ctx, announceTime)
	defer cancel()
	return r.ship.archive.Withdraw(ctx, r.BlockID(), r.keyOf(number))
}

func (r *Recorder) keyOf(number int64) string {
	return r.session.id + "-" + strconv.FormatInt(number, 10)
}

// pause waits, until somebody wakes if the time is negative. It returns false when the
// recorder should stop.
func (r *running) pause(ctx context.Context, wait time.Duration) bool {
	if wait < 0 {
		select {
		case <-ctx.Done():
			return false
		case <-r.wake:
			return true
		}
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
