package recorder_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"oda"
	"oda/client"
	"oda/client/recorder"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// saidEvery is how many records a script makes between two statuses.
const saidEvery = 50

// script is a script at the telescope, in its own process: it opens a block,
// prints its identifier and records until it is killed, printing the number of
// each record. Now and then it says a status. With a third argument it makes one call, which
// never returns.
func script(arguments []string) {
	archive, err := client.New(arguments[0])
	if err != nil {
		panic(err)
	}
	rec, err := recorder.Open(context.Background(), archive, soon(recorder.Options{
		Dir: arguments[1], CreateTimeout: 200 * time.Millisecond, Document: []byte(`{"telescope":"ska_mid"}`),
	}))
	if err != nil {
		panic(err)
	}
	fmt.Println(rec.BlockID())
	if len(arguments) > 2 {
		rec.Begin("functions.hang", nil)
		time.Sleep(2 * patience)
	}
	for n := 1; ; n++ {
		if err := rec.Record(numbered(n)); err != nil {
			panic(err)
		}
		if n%saidEvery == 0 {
			if err := rec.Say("Executing", strconv.Itoa(n)); err != nil {
				panic(err)
			}
		}
		fmt.Println(n)
	}
}

// killed runs the script, sends it SIGKILL after this many records, and returns
// its block and the last number that it printed.
func killed(t *testing.T, address, dir string, records int) (block string, last int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+address+"|"+dir)
	out := must.Get(cmd.StdoutPipe())(t)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	must.Do(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if block == "" {
			block = lines.Text()
			continue
		}
		if last = must.Get(strconv.Atoi(lines.Text()))(t); last == records {
			must.Do(t, cmd.Process.Kill())
		}
	}
	if err := cmd.Wait(); err == nil || last < records {
		t.Fatalf("the script ended after %d records with %v:\n%s", last, err, complaints.String())
	}
	return block, last
}

// wantScript checks that a block has the records of a killed script. It may
// have one more, which the script did not live to print.
func wantScript(t *testing.T, c *client.Client, block string, last int) {
	t.Helper()
	got := len(stored(t, c, block))
	if got < last || got > last+1 {
		t.Errorf("the block has %d records; the script had recorded %d", got, last)
	}
	wantNumbers(t, c, block, got)
	said := statusesOf(t, c, block)
	for i, e := range said {
		if e.Reason != strconv.Itoa((i+1)*saidEvery) {
			t.Errorf("status %d of %d is %+v", i+1, len(said), e)
		}
	}
	if n := len(said); n < last/saidEvery || n > got/saidEvery {
		t.Errorf("%d statuses were said in %d records", n, got)
	}
}

func TestAKilledProcessIsResumedFromItsSpool(t *testing.T) {
	t.Parallel()
	network := newRelay(t)
	network.point(env.Start(t).Addr())
	dir := t.TempDir()
	c := clientOf(t, network.address())
	block, last := killed(t, network.address(), dir, 3000)
	got := resumeAll(t, dir, &env.Journal{})
	if got.Err != nil || got.Block != block || got.Left != 0 {
		t.Errorf("the session was resumed with %+v", got)
	}
	wantScript(t, c, block, last)
	if left := sessionsIn(t, dir); got.Damaged == 0 && len(left) > 0 {
		t.Errorf("sessions left: %v", left)
	}
}

func TestAProcessKilledDuringAnOutageIsResumed(t *testing.T) {
	t.Parallel()
	network, c := unconnected(t)
	dir := t.TempDir()
	block, last := killed(t, network.address(), dir, 500)
	if left := sessionsIn(t, dir); len(left) != 1 {
		t.Fatalf("the spool has %v", left)
	}
	// The block is stored, but the answer is lost.
	network.point(env.Start(t).Addr())
	network.lose(1)
	if got := resumeAll(t, dir, &env.Journal{}); got.Err != nil || got.Block != block {
		t.Errorf("the session was resumed with %+v", got)
	}
	if network.answersLost() != 1 {
		t.Error("no answer was lost")
	}
	wantScript(t, c, block, last)
	stored, err := c.Get(t.Context(), oda.ExecutionBlock, block)
	if err != nil || stored.Metadata.Version != 1 || !strings.Contains(string(stored.Body), `"telescope":"ska_mid"`) {
		t.Errorf("the block differs from the one opened: %v", err)
	}
}

func TestNothingIsRecordedIntoTheBlockOfSomebodyElse(t *testing.T) {
	t.Parallel()
	network, c := unconnected(t)
	dir := t.TempDir()
	rec, log := opened(t, c, recorder.Options{Dir: dir, CreateTimeout: 50 * time.Millisecond, Document: []byte(`{"telescope":"ska_mid"}`)})
	recordNumbers(t, rec, 1, 5)
	archive := env.Start(t)
	other := connect(t, archive)
	must.Get(other.Store(t.Context(), oda.ExecutionBlock, rec.BlockID(), []byte(`{"telescope":"ska_low"}`)))(t)
	network.point(archive.Addr())
	env.Await(t, "a message about the block", func() bool { return strings.Contains(log.String(), "another block already has the identifier") })
	leave(t, rec)
	got := resumeAll(t, dir, log)
	if got.Err == nil || got.Left != 5 || got.Stored != 0 {
		t.Errorf("the session was resumed with %+v", got)
	}
	if n := len(stored(t, other, rec.BlockID())); n != 0 {
		t.Errorf("the other block has %d records", n)
	}
	if left := sessionsIn(t, dir); len(left) != 1 {
		t.Errorf("the spool has %v, want the session", left)
	}
}

func TestResumeCreatesABlockThatTheArchiveLost(t *testing.T) {
	t.Parallel()
	network, c := unconnected(t)
	dir := t.TempDir()
	rec, _ := opened(t, c, recorder.Options{Dir: dir, CreateTimeout: 50 * time.Millisecond})
	network.point(env.Start(t).Addr())
	recordNumbers(t, rec, 11, 15)
	must.Do(t, rec.Flush(patient(t)))
	network.point("")
	recordNumbers(t, rec, 1, 5)
	leave(t, rec)
	network.point(env.Start(t).Addr())
	if got := resumeAll(t, dir, &env.Journal{}); got.Err != nil || got.Stored != 5 {
		t.Errorf("the session was resumed with %+v", got)
	}
	wantNumbers(t, c, rec.BlockID(), 5)
}

func TestTheRecordsOfALongOutageArriveInOrder(t *testing.T) {
	t.Parallel()
	network, c := unconnected(t)
	dir := t.TempDir()
	rec, _ := opened(t, c, recorder.Options{Dir: dir, CreateTimeout: 50 * time.Millisecond, Sync: recorder.SyncNever})
	const records = 1500
	record := func(first, last int) {
		for n := first; n <= last; n++ {
			r := numbered(n)
			r.Response = strings.Repeat("0123456789", 2000)
			must.Do(t, rec.Record(r))
		}
	}
	record(1, records*3/4)
	if got := rec.Lag(); got.Records != records*3/4 {
		t.Errorf("the lag is %+v", got)
	}
	segments := func() int {
		found := must.Get(filepath.Glob(filepath.Join(sessionsIn(t, dir)[0], "0*.log")))(t)
		return len(found)
	}
	if got := segments(); got < 3 {
		t.Errorf("there are %d segments; the test should fill some", got)
	}
	network.point(env.Oda(t, "serve").Host())
	record(records*3/4+1, records) // while the shipper catches up
	must.Do(t, rec.Flush(patient(t)))
	if got := segments(); got != 1 {
		t.Errorf("%d segments are left after everything was shipped, want one", got)
	}
	closeRecorder(t, rec)
	wantNumbers(t, c, rec.BlockID(), records)
}

func TestASessionOfARunningProcessIsLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := connect(t, env.Start(t))
	rec, _ := opened(t, c, recorder.Options{Dir: dir})
	recordNumbers(t, rec, 1, 10)
	for range 5 {
		resumed(t, patient(t), dir, 0, recorder.ResumeOptions{})
	}
	closeRecorder(t, rec)
	wantNumbers(t, c, rec.BlockID(), 10)
}

func TestResumeRetriesUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	c, dir, _, block := leftOver(t, 5)
	nowhere := clientOf(t, away(t))
	rec, _ := opened(t, nowhere, recorder.Options{Dir: dir, CreateTimeout: time.Millisecond})
	recordNumbers(t, rec, 1, 3)
	leave(t, rec)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	got := resumed(t, ctx, dir, 2, recorder.ResumeOptions{})
	for _, r := range got {
		if away := r.Block != block; away != (r.Err != nil) || away != (r.Left == 3) {
			t.Errorf("resumed: %+v", r)
		}
	}
	wantNumbers(t, c, block, 5)
	// The archive has moved.
	must.Do(t, resumed(t, patient(t), dir, 1, recorder.ResumeOptions{URL: c.Address()})[0].Err)
	wantNumbers(t, c, rec.BlockID(), 3)
	if _, err := recorder.Resume(t.Context(), filepath.Join(dir, "none"), recorder.ResumeOptions{}); err == nil {
		t.Error("a missing spool was resumed")
	}
}

// unavailable returns a block in an archive that is unavailable until the switchboard
// lets requests pass.
func unavailable(t *testing.T) (*switchboard, *client.Client, string) {
	t.Helper()
	between := newSwitchboard(t, env.Start(t).Forward())
	c := clientOf(t, between.URL)
	block := blockOf(t, c, 0)
	between.set(env.Answering(503, ""))
	return between, c, block
}

func TestTheSessionsOfABlockAreResumedInOrder(t *testing.T) {
	t.Parallel()
	between, c, block := unavailable(t)
	dir := t.TempDir()
	for i := range 3 {
		before := sessionsIn(t, dir)
		rec := must.Get(recorder.Attach(c, block, recorder.Options{Dir: dir, Logger: (&env.Journal{}).Logger()}))(t)
		recordNumbers(t, rec, 2*i+1, 2*i+2)
		leave(t, rec)
		for _, session := range sessionsIn(t, dir) {
			if !slices.Contains(before, session) {
				began := time.Now().Add(time.Duration(i-10) * time.Second)
				must.Do(t, os.Chtimes(filepath.Join(session, "block.json"), began, began))
			}
		}
	}
	soon, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	results := resumed(t, soon, dir, 3, recorder.ResumeOptions{})
	for _, r := range results {
		if r.Err == nil || r.Left != 2 || r.Block != block {
			t.Errorf("resumed while the archive was unavailable: %+v", r)
		}
	}
	// The first try fails; later sessions must not overtake it.
	between.set(func(w http.ResponseWriter, _ *http.Request) {
		between.set(nil)
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	resumed(t, patient(t), dir, 3, recorder.ResumeOptions{})
	wantNumbers(t, c, block, 6)
}

// A wrong address of one run does not concern a later run with the same block.
func TestASessionForAnotherArchiveDoesNotHoldUpTheBlock(t *testing.T) {
	t.Parallel()
	between, c, block := unavailable(t)
	dir := t.TempDir()
	for _, archive := range []string{away(t), between.URL} {
		rec := must.Get(recorder.Attach(clientOf(t, archive), block, recorder.Options{Dir: dir, Logger: (&env.Journal{}).Logger()}))(t)
		recordNumbers(t, rec, 1, 2)
		leave(t, rec)
	}
	between.set(nil)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	results, err := recorder.Resume(ctx, dir, recorder.ResumeOptions{Logger: (&env.Journal{}).Logger()})
	if err != nil || len(results) != 2 || (results[0].Left == 2) == (results[1].Left == 2) {
		t.Errorf("resumed: %+v %v", results, err)
	}
	wantNumbers(t, c, block, 2)
}
