package recorder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oda"
	"oda/client"
	"oda/internal/files"
	"oda/internal/test/must"
)

// A session belongs to its owner until it is gone, even if another process
// looks at it at the very moment at which the owner finishes it.
func TestASessionIsNeverTakenFromItsOwner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var current atomic.Pointer[string]
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			path := current.Load()
			if path == nil {
				continue
			}
			s, err := openSession(*path)
			if err == nil {
				t.Error("a session was taken from its owner")
				s.release()
				return
			}
			if !errors.Is(err, files.ErrLocked) && !errors.Is(err, errGone) && !errors.Is(err, os.ErrNotExist) {
				t.Error(err)
				return
			}
		}
	}()
	for begun := time.Now(); time.Since(begun) < time.Second; {
		s := must.Get(createSession(dir, blockFile{Spool: spoolForm, Block: "eb-1", URL: "http://127.0.0.1:1/api/v1"}))(t)
		current.Store(&s.dir)
		must.Do(t, s.remove())
		s.release()
	}
	stop.Store(true)
	<-done
}

func TestARecordThatCannotBeSyncedIsReported(t *testing.T) {
	t.Parallel()
	s := must.Get(createSession(t.TempDir(), blockFile{Spool: spoolForm, Block: "eb-1", URL: "http://127.0.0.1:1/api/v1"}))(t)
	defer s.release()
	w := must.Get(newWriter(s, SyncAlways, 1<<20))(t)
	// The name of a segment must be synced like its content.
	if err := w.append(0, recordLine, []byte(`{"request":"a"}`)); err != nil || w.fresh {
		t.Errorf("the first record: %v; the segment's name is not synced: %v", err, w.fresh)
	}
	// A pipe can be written to but not synced.
	reader, pipe, err := os.Pipe()
	must.Do(t, err)
	defer reader.Close()
	segment := w.file
	w.file = pipe
	if err := w.append(0, recordLine, []byte(`{"request":"b"}`)); !errors.Is(err, ErrNotSynced) {
		t.Errorf("a record that could not be synced: %v", err)
	}
	// Later records go to a new segment.
	if err := w.append(0, recordLine, []byte(`{"request":"c"}`)); err != nil || w.at.segment != 2 || w.fresh {
		t.Errorf("the next record: %v, in segment %d; the segment's name is not synced: %v", err, w.at.segment, w.fresh)
	}
	if err := errors.Join(w.finish(), segment.Close()); err != nil {
		t.Error(err)
	}
}

func TestTheAgeOfTheOldestRecordIsKnownWithinBounds(t *testing.T) {
	t.Parallel()
	var all times
	begun := time.Now()
	const records = 10_000
	for n := range int64(records) {
		all.add(n+1, begun.Add(time.Duration(n)*time.Second))
	}
	if len(all.marks) > mostMarks {
		t.Errorf("%d marks are kept, at most %d are allowed", len(all.marks), mostMarks)
	}
	for _, number := range []int64{1, 10, records / 2, records - 100, records} {
		want := begun.Add(time.Duration(number-1) * time.Second)
		got := all.oldest(number)
		if got.After(want) || want.Sub(got) > records/100*time.Second {
			t.Errorf("record %d appears %v older than it is", number, want.Sub(got))
		}
	}
}

func TestWaitsGrowToABoundAndHonourRetryAfter(t *testing.T) {
	t.Parallel()
	var wait backoff
	for i := range 20 {
		most := min(firstWait<<i, mostWait)
		if got := wait.after(client.ErrNoAnswer); got < most/2 || got > most {
			t.Errorf("wait %d is %v, want between half of %v and all of it", i+1, got, most)
		}
	}
	wait.reset()
	if got := wait.after(&client.Answer{Status: 503, RetryAfter: 3 * time.Second}); got != 3*time.Second {
		t.Errorf("with Retry-After: 3 s the wait is %v", got)
	}
	if got := wait.after(&client.Answer{Status: 503, RetryAfter: time.Hour}); got != mostWait {
		t.Errorf("with Retry-After: 1 h the wait is %v", got)
	}
	if got := wait.after(&stuckError{client.ErrNoAnswer}); got != stuckWait {
		t.Errorf("a request that needs a person's help is retried after %v", got)
	}
}

// Of two statuses the later one counts, although the clock was set back between them.
func TestAStatusIsNotOlderThanTheOneBefore(t *testing.T) {
	t.Parallel()
	rec := must.Get(Attach(must.Get(client.New("http://127.0.0.1:1"))(t), "eb-1", Options{Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)}))(t)
	ahead := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	rec.say.at = ahead
	must.Do(t, rec.Say("Observed", ""))
	text := must.Get(os.ReadFile(filepath.Join(rec.session.dir, segmentName(1))))(t)
	if want := fmt.Sprintf("-1 status {\"status\":\"Observed\",\"at\":%q}\n", stamp(ahead)); !strings.HasSuffix(string(text), want) {
		t.Errorf("the spool has %q, want %q at its end", text, want)
	}
	now, cancel := context.WithCancel(t.Context())
	cancel()
	if err := rec.Close(now); err == nil {
		t.Error("nothing was left in the spool")
	}
}

// Hastened returns options with which a call is announced sooner, for a shorter time.
func Hastened(o Options, after, lease time.Duration) Options {
	o.announceAfter, o.lease = after, lease
	return o
}

// New calls are told before older ones are renewed, and of very many only the oldest.
func TestNewCallsAreToldFirst(t *testing.T) {
	t.Parallel()
	const after, lease = time.Second, 30 * time.Second
	r := newRunning(Options{announceAfter: after, lease: lease})
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	began := func(number int64, at time.Duration) *Begun {
		b := &Begun{number: number, sent: noon.Add(at)}
		r.begin(b)
		return b
	}
	next := func(at time.Duration, want int64, wantOver int64, wantWait time.Duration) {
		t.Helper()
		b, over, wait := r.next(noon.Add(at))
		got := int64(0)
		if b != nil {
			got = b.number
		}
		if got != want || over != wantOver || b == nil && over == 0 && wait != wantWait {
			t.Errorf("after %v: call %d, %d is taken back, wait %v; want %d, %d, %v", at, got, over, wait, want, wantOver, wantWait)
		}
	}
	next(0, 0, 0, -1)
	one := began(1, 0)
	two := began(2, 300*time.Millisecond)
	next(400*time.Millisecond, 0, 0, 600*time.Millisecond)
	next(1100*time.Millisecond, 1, 0, 0)
	next(1100*time.Millisecond, 0, 0, 200*time.Millisecond)
	began(3, 10*time.Second)
	next(12*time.Second, 2, 0, 0)
	next(12*time.Second, 3, 0, 0)
	next(12*time.Second, 1, 0, 0) // a renewal
	next(12*time.Second, 0, 0, after)
	r.end(one)
	r.withdraw(one)
	next(12*time.Second, 0, 1, 0)
	next(22*time.Second, 2, 0, 0)
	r.end(two)
	for n := range int64(oda.MaxRunningOfCaller) {
		began(10+n, 12*time.Second)
	}
	for n := range int64(oda.MaxRunningOfCaller) - 1 {
		next(22*time.Second, 10+n, 0, 0)
	}
	next(22*time.Second, 3, 0, 0)
	next(22*time.Second, 0, 0, after) // there is no room for the last
}
