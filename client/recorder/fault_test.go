package recorder_test

import (
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oda"
	"oda/client/recorder"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

func TestNothingIsLostWhenTheArchiveIsKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	kills := 6
	if env.InProof() {
		kills = 20
	}
	network := newRelay(t)
	database := "--db=sqlite:" + filepath.Join(t.TempDir(), "archive.db")
	archive := env.Oda(t, "serve", database)
	network.point(archive.Host())
	c := clientOf(t, network.address())
	rec, _ := opened(t, c, recorder.Options{})
	var stop atomic.Bool
	recorded := make(chan int)
	go func() {
		n := 0
		for ; !stop.Load(); time.Sleep(200 * time.Microsecond) {
			if err := rec.Record(numbered(n + 1)); err != nil {
				t.Error(err)
				break
			}
			n++
		}
		recorded <- n
	}()
	for range kills {
		if err := rec.Flush(patient(t)); err != nil {
			t.Error(err)
			break
		}
		time.Sleep(rand.N(20 * time.Millisecond)) // so that the kill comes at any moment
		archive.Kill()
		archive = env.Oda(t, "serve", database)
		network.point(archive.Host())
	}
	stop.Store(true)
	last := <-recorded
	closeRecorder(t, rec)
	wantNumbers(t, c, rec.BlockID(), last)
	t.Logf("%d records", last)
}

func TestARecordIsStoredOnceIfItsAnswerIsLost(t *testing.T) {
	t.Parallel()
	network := newRelay(t)
	network.point(env.Start(t).Addr())
	c := clientOf(t, network.address())
	rec, log := opened(t, c, recorder.Options{})
	for first := 1; first <= 201; first += 50 {
		network.lose(2)
		recordNumbers(t, rec, first, first+49)
		env.Await(t, "the loss of an answer", func() bool { return network.answersLost() == 2 })
		must.Do(t, rec.Flush(patient(t)))
	}
	closeRecorder(t, rec)
	wantNumbers(t, c, rec.BlockID(), 250)
	if !strings.Contains(log.String(), "the archive is back, ") {
		t.Errorf("the log says: %s", log)
	}
}

func TestAFullSpoolDropsTheNewRecordLoudlyAndGoesOn(t *testing.T) {
	t.Parallel()
	network, c := unconnected(t)
	const bound = 20_000
	rec, log := opened(t, c, recorder.Options{CreateTimeout: 50 * time.Millisecond, MaxBytes: bound})
	kept := fill(t, rec)
	if got := rec.Lag(); got.Bytes > bound || got.Bytes < bound-1000 || got.Records != int64(kept) {
		t.Errorf("%d records were kept, and the lag is %+v", kept, got)
	}
	env.Await(t, "a message about the dropped records", func() bool { return strings.Contains(log.String(), "RECORDS ARE LOST") })
	if !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), "the spool is full") {
		t.Errorf("the log says: %s", log)
	}
	network.point(env.Start(t).Addr())
	must.Do(t, rec.Flush(patient(t)))
	recordNumbers(t, rec, kept+1, kept+10)
	closeRecorder(t, rec)
	wantNumbers(t, c, rec.BlockID(), kept+10)
	if n := strings.Count(log.String(), "RECORDS ARE LOST"); n > 2 {
		t.Errorf("the log reports it %d times at once", n)
	}
}

// fill records until records are dropped, and returns how many were kept.
// Everything after the first dropped record is dropped too, and quickly.
func fill(t *testing.T, rec *recorder.Recorder) int {
	t.Helper()
	const most = 100_000
	kept := 0
	for ; kept < most; kept++ {
		if err := rec.Record(numbered(kept + 1)); errors.Is(err, recorder.ErrDropped) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if kept == most {
		t.Fatal("nothing was dropped")
	}
	const further = 100
	begun := time.Now()
	for n := range further {
		if err := rec.Record(numbered(kept + n)); !errors.Is(err, recorder.ErrDropped) {
			t.Fatalf("with a full spool Record returns %v", err)
		}
	}
	if took := time.Since(begun); took > env.AtMost(time.Second) {
		t.Errorf("dropping %d records took %v", further, took)
	}
	if got := rec.Dropped(); got != further+1 {
		t.Errorf("%d were dropped, want %d", got, further+1)
	}
	return kept
}

func TestAFullDiskDropsTheNewRecordLoudlyAndGoesOn(t *testing.T) {
	t.Parallel()
	dir := env.SmallDisk(t, 256<<10)
	network, c := unconnected(t)
	rec, log := opened(t, c, recorder.Options{Dir: dir, CreateTimeout: 50 * time.Millisecond})
	kept := fill(t, rec)
	env.Await(t, "a message about the full disk", func() bool { return strings.Contains(log.String(), "no space left on device") })
	network.point(env.Start(t).Addr())
	must.Do(t, rec.Flush(patient(t)))
	// Shipping has made room.
	recordNumbers(t, rec, kept+1, kept+100)
	closeRecorder(t, rec)
	wantNumbers(t, c, rec.BlockID(), kept+100)
	wantSent(t, dir)
	if strings.Contains(log.String(), "damaged") {
		t.Errorf("a line that did not fit is in the spool: %s", log)
	}
}

func TestTimesThatGoBackDoNotChangeTheOrder(t *testing.T) {
	t.Parallel()
	c := connect(t, env.Start(t))
	rec, _ := opened(t, c, recorder.Options{})
	clock := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for n := 1; n <= 50; n++ {
		record := numbered(n)
		record.RequestSentAt, record.ResponseReceivedAt = clock, clock.Add(-time.Hour)
		clock = clock.Add(-time.Minute)
		must.Do(t, rec.Record(record))
	}
	closeRecorder(t, rec)
	wantNumbers(t, c, rec.BlockID(), 50)
}

func TestARecordLargerThanABatchIsSentAlone(t *testing.T) {
	t.Parallel()
	c := clientOf(t, env.Oda(t, "serve").URL)
	rec, _ := opened(t, c, recorder.Options{})
	for n := 1; n <= 5; n++ {
		record := numbered(n)
		if n%2 == 0 {
			record.Response = strings.Repeat("x", 3<<20)
		}
		must.Do(t, rec.Record(record))
	}
	closeRecorder(t, rec)
	wantNumbers(t, c, rec.BlockID(), 5)
	// A record that no archive accepts is dropped at once.
	rec, _ = opened(t, c, recorder.Options{})
	if err := rec.Record(recorder.Call{Request: "s", Response: strings.Repeat("x", 64<<20)}); !errors.Is(err, recorder.ErrDropped) {
		t.Errorf("a record of 64 MiB: %v", err)
	}
}

func TestABlockThatTheArchiveLostIsCreatedAgain(t *testing.T) {
	t.Parallel()
	network, c := unconnected(t)
	rec, _ := opened(t, c, recorder.Options{CreateTimeout: 50 * time.Millisecond, Document: []byte(`{"telescope":"ska_low"}`)})
	network.point(env.Start(t).Addr())
	recordNumbers(t, rec, 1, 5)
	must.Do(t, rec.Flush(patient(t)))
	// An archive that was restored from an older backup does not know the
	// block.
	network.point(env.Start(t).Addr())
	recordNumbers(t, rec, 1, 5)
	closeRecorder(t, rec)
	wantNumbers(t, c, rec.BlockID(), 5)
	if block, err := c.Get(t.Context(), oda.ExecutionBlock, rec.BlockID()); err != nil || !strings.Contains(string(block.Body), "ska_low") {
		t.Errorf("the block differs from the one opened: %v", err)
	}
}

func TestARemovedSpoolIsReportedAndBlocksNobody(t *testing.T) {
	t.Parallel()
	network := newRelay(t)
	dir := t.TempDir()
	rec, log := opened(t, clientOf(t, network.address()), recorder.Options{Dir: dir, CreateTimeout: 50 * time.Millisecond})
	must.Do(t, os.RemoveAll(sessionsIn(t, dir)[0]))
	network.point(env.Start(t).Addr())
	recordNumbers(t, rec, 1, 10)
	env.Await(t, "a message about the spool", func() bool { return strings.Contains(log.String(), "the spool cannot be read or cleaned up") })
	leave(t, rec)
}

func TestASilentArchiveBlocksNobody(t *testing.T) {
	t.Parallel()
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t) // nobody accepts
	defer listener.Close()
	begun := time.Now()
	rec, _ := opened(t, clientOf(t, listener.Addr().String()), recorder.Options{CreateTimeout: 100 * time.Millisecond})
	recordNumbers(t, rec, 1, 10)
	leave(t, rec)
	if took := time.Since(begun); took > env.AtMost(10*time.Second) {
		t.Errorf("a block of 10 records took %v", took)
	}
}
