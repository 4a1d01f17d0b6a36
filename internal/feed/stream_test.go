package feed

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"oda"
	"oda/internal/test/must"
)

// slowly writes an event to a client that receives so many bytes each second. It
// returns how many arrived, and the error of the write.
func slowly(t *testing.T, event []byte, perSecond int64) (received int64, err error) {
	synctest.Test(t, func(*testing.T) {
		ours, theirs := net.Pipe()
		arrived := make(chan int64)
		go func() {
			total := int64(0)
			for {
				n, err := io.CopyN(io.Discard, theirs, perSecond)
				if total += n; err != nil {
					arrived <- total
					return
				}
				time.Sleep(time.Second)
			}
		}()
		s := &stream{ctx: context.Background(), hub: &Hub{stop: context.Background(), patience: sendTime}, line: &ownLine{ours}}
		err = s.write(event)
		_ = ours.Close()
		received = <-arrived
	})
	return received, err
}

// A record may be so large that a client needs minutes for it. If the client were cut
// off, it would ask for the same record again and never get past it.
func TestALargeEventArrivesOverASlowLine(t *testing.T) {
	event := bytes.Repeat([]byte("x"), 20<<20)
	if received, err := slowly(t, event, 256<<10); err != nil || received != int64(len(event)) {
		t.Errorf("%d of %d bytes arrived: %v", received, len(event), err)
	}
}

func TestAClientThatHardlyReadsIsCutOff(t *testing.T) {
	if received, err := slowly(t, make([]byte, 1<<20), 1); err == nil || received > int64(2*sendTime/time.Second) {
		t.Errorf("%d bytes arrived one by one: %v", received, err)
	}
}

// A client that does not read must not hold up a stop, of which its stream may hear last.
func TestNothingIsWrittenOnceTheArchiveStops(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	stop, cancel := context.WithCancel(t.Context())
	cancel()
	s := &stream{ctx: t.Context(), hub: &Hub{stop: stop, patience: sendTime}, line: &ownLine{ours}}
	if err := s.write([]byte("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// What ends an answer would end an event too, and the client would take half of the
// event for the whole.
func TestAnEventThatIsCutOffIsNotCompleted(t *testing.T) {
	stop, cancel := context.WithCancel(t.Context())
	ours, theirs := net.Pipe()
	s := &stream{ctx: stop, hub: &Hub{stop: stop, patience: sendTime}, line: &ownLine{ours}, framed: true}
	go func() {
		s.outcome(s.send(noteFrame("data: %s\n\n", strings.Repeat("x", 2*sendPiece))))
		_ = ours.Close()
	}()
	begin, err := io.ReadAll(io.LimitReader(theirs, 100))
	cancel()
	rest, restErr := io.ReadAll(theirs)
	if err != nil || restErr != nil {
		t.Fatal(err, restErr)
	}
	if n := len(begin) + len(rest); n > 2*sendPiece || bytes.HasSuffix(rest, []byte(endOfFrames)) {
		t.Errorf("%d bytes arrived, the last of them %q", n, rest[len(rest)-10:])
	}
}

// The archive may stop when a frame is ready, but before any of it was sent. The gzip stream
// then ends after the frames that were.
func TestAGzipStreamEndsWithWhatWasSent(t *testing.T) {
	stop, cancel := context.WithCancel(t.Context())
	ours, theirs := net.Pipe()
	s := &stream{ctx: stop, hub: &Hub{stop: stop, patience: sendTime}, line: &ownLine{ours}, packed: newPacking(), ended: func() bool { return true }}
	go func() {
		defer ours.Close()
		err := s.send(s.packed.begin())
		if err == nil {
			err = s.sendShared(shared(noteFrame("data: first\n\n")))
		}
		if cancel(); err == nil {
			err = s.sendShared(shared(noteFrame("data: second\n\n")))
		}
		s.outcome(err)
	}()
	unpacked := must.Get(gzip.NewReader(theirs))(t)
	if got, err := io.ReadAll(unpacked); err != nil || string(got) != "data: first\n\n" {
		t.Errorf("the stream has %q, %v", got, err)
	}
}

// A stream says that it is alive, and where it is, while nothing happens, while only
// changes happen that the client does not want, and while so many others are behind
// that it must wait to read the log. A client can resume from there.
func TestAStreamIsKeptAlive(t *testing.T) {
	for name, one := range map[string]struct {
		pause time.Duration
		begin oda.Position
	}{"quiet": {time.Hour, 0}, "changes of others": {100 * time.Millisecond, 0}, "behind": {time.Hour, 1}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			hub := &Hub{stop: ctx, patience: sendTime} // without a place to read the log
			log := &tail{hub: hub, moved: make(chan struct{})}
			log.begin(one.begin)
			ours, theirs := net.Pipe()
			s := &stream{ctx: ctx, hub: hub, line: &ownLine{ours}, beats: time.NewTicker(heartbeat)}
			f := &follower{hub: hub, tail: log, filter: &oda.ChangeFilter{Kinds: []oda.Kind{oda.Project}}}
			go func() {
				_ = s.changes(f, false)
				_ = ours.Close()
			}()
			go func() {
				for at := one.begin; ; at++ {
					select {
					case <-ctx.Done():
						return
					case <-time.After(one.pause):
					}
					log.add([]*chunk{{from: at, to: at + 1, changes: []oda.Change{{Ref: oda.Ref{Kind: oda.SBDefinition, ID: "x"}, Position: at + 1}}}})
				}
			}()
			time.AfterFunc(3*heartbeat+time.Second, cancel)
			text := must.Get(io.ReadAll(theirs))(t)
			var beats []int
			for line := range strings.Lines(string(text)) {
				var at int
				if _, err := fmt.Sscanf(line, ": %d\n", &at); err == nil {
					beats = append(beats, at)
				} else if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "retry: ") {
					t.Errorf("%s: the stream has the line %q", name, line)
				}
			}
			if len(beats) != 3 || beats[2] < int(2*heartbeat/one.pause) {
				t.Errorf("%s: the heartbeats are at %v", name, beats)
			}
		})
	}
}

func TestFollowersOfABlockHoldLittleMemory(t *testing.T) {
	for _, record := range []int{1, 1 << 10, 20 << 10, 1 << 20} {
		limit, largest := 1, 0
		for range 20 {
			frame := limit * record
			limit, largest = nextRecords(limit, frame), max(largest, frame)
		}
		if most := max(2*recordsBytes, record); largest > most {
			t.Errorf("records of %d bytes make frames of %d bytes, more than %d", record, largest, most)
		}
		if least := min(recordsMost*record, recordsBytes/2); largest < least {
			t.Errorf("records of %d bytes make frames of only %d bytes, less than %d", record, largest, least)
		}
	}
}

// A write may fail before the stream has noticed that the client is gone.
func TestAClientThatLeavesOrIsTooSlowIsNoFailure(t *testing.T) {
	for _, err := range []error{os.NewSyscallError("write", syscall.ECONNRESET), os.NewSyscallError("write", syscall.EPIPE), os.ErrDeadlineExceeded} {
		s := &stream{ctx: t.Context(), hub: &Hub{stop: t.Context()}}
		if sent := s.outcome(&net.OpError{Op: "write", Err: err}); sent.Err != nil {
			t.Errorf("the stream ended with %v", sent.Err)
		}
	}
}

// The followers may hear that the archive stops before their streams do.
func TestAStopIsNoFailure(t *testing.T) {
	stop, cancel := context.WithCancel(t.Context())
	cancel()
	s := &stream{ctx: t.Context(), hub: &Hub{stop: stop}}
	if sent := s.outcome(errStopping()); sent.Err != nil {
		t.Errorf("the stream ended with %v", sent.Err)
	}
}
