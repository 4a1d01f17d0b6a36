package recorder_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"oda"
	"oda/client"
	"oda/client/recorder"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

func TestEveryRecordReachesTheArchiveInOrder(t *testing.T) {
	t.Parallel()
	archive := env.Start(t)
	c := connect(t, archive)
	dir := t.TempDir()
	rec, _ := opened(t, c, recorder.Options{Dir: dir, Document: []byte(`{"telescope":"ska_mid"}`)})
	if got := rec.Lag(); got != (recorder.Lag{}) {
		t.Errorf("the lag of a new recorder is %+v", got)
	}
	recordNumbers(t, rec, 1, 2500)
	must.Do(t, rec.Flush(patient(t)))
	if got := rec.Lag(); got != (recorder.Lag{}) {
		t.Errorf("the lag after Flush is %+v", got)
	}
	wantNumbers(t, c, rec.BlockID(), 2500)
	recordNumbers(t, rec, 2501, 2600)
	closeRecorder(t, rec)
	wantNumbers(t, c, rec.BlockID(), 2600)
	wantSent(t, dir)
	block, err := c.Get(t.Context(), oda.ExecutionBlock, rec.BlockID())
	if err != nil || !strings.Contains(string(block.Body), `"telescope":"ska_mid"`) {
		t.Errorf("the block lacks the members of the document: %v", err)
	}
	if err := rec.Record(numbered(1)); !errors.Is(err, recorder.ErrClosed) {
		t.Errorf("after Close, Record returns %v", err)
	}
	if err := rec.Close(t.Context()); err != nil {
		t.Errorf("the second Close returns %v", err)
	}
}

func TestACallBecomesAValidRecord(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 22, 4, 6, 12345678, time.FixedZone("", 3600))
	for name, test := range map[string]struct {
		record recorder.Call
		want   string
	}{
		"only the request": {recorder.Call{Request: "scan"}, `{"request":"scan"}`},
		"everything": {
			recorder.Call{
				Request: "a.scan", RequestArgs: map[string]any{"kwargs": map[string]any{"id": 1}}, Status: "OK",
				Response: map[string]any{"result": "<done>"}, RequestSentAt: at, ResponseReceivedAt: at.Add(time.Second),
			},
			`{"request":"a.scan","request_args":{"kwargs":{"id":1}},"status":"OK","response":{"result":"<done>"},` +
				`"request_sent_at":"2026-03-01T21:04:06.012345Z","response_received_at":"2026-03-01T21:04:07.012345Z"}`,
		},
		"an error":                {recorder.Call{Request: "s", Error: errors.New("no beam")}, `{"request":"s","error":{"detail":"no beam"}}`},
		"an error with members":   {recorder.Call{Request: "s", Error: map[string]int{"code": 3}}, `{"request":"s","error":{"code":3}}`},
		"arguments as a text":     {recorder.Call{Request: "s", RequestArgs: "(1, 2)"}, `{"request":"s","request_args":"(1, 2)"}`},
		"arguments as a list":     {recorder.Call{Request: "s", RequestArgs: []int{1, 2}}, `{"request":"s","request_args":{"args":[1,2]}}`},
		"one argument":            {recorder.Call{Request: "s", RequestArgs: 7}, `{"request":"s","request_args":{"args":[7]}}`},
		"a response of one value": {recorder.Call{Request: "s", Response: []string{"a"}}, `{"request":"s","response":{"result":["a"]}}`},
		"a nil in an interface":   {recorder.Call{Request: "s", Response: (*int)(nil)}, `{"request":"s"}`},
		"more than one line":      {recorder.Call{Request: "a\nb\u2028c"}, `{"request":"a\nb\u2028c"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			archive := env.Start(t)
			c := connect(t, archive)
			rec, _ := opened(t, c, recorder.Options{})
			must.Do(t, rec.Record(test.record))
			closeRecorder(t, rec)
			got := recordsOf(t, c, rec.BlockID())
			if len(got) != 1 || string(got[0].Text) != test.want || rec.Refused() != 0 {
				t.Errorf("the record is %v, want %s", texts(got), test.want)
			}
		})
	}
}

func TestACallThatIsNotJSONIsTheCallersMistake(t *testing.T) {
	t.Parallel()
	rec, _ := opened(t, clientOf(t, away(t)), recorder.Options{CreateTimeout: time.Millisecond})
	cycle := map[string]any{}
	cycle["self"] = cycle
	for name, err := range map[string]error{
		"not a number": rec.Record(recorder.Call{Request: "s", Response: math.NaN()}),
		"a channel":    rec.Record(recorder.Call{Request: "s", RequestArgs: make(chan int)}),
		"a cycle":      rec.Record(recorder.Call{Request: "s", RequestArgs: cycle}),
		"half a text":  rec.RecordJSON([]byte(`{"request":`)),
		"two texts":    rec.RecordJSON([]byte(`{"request":"s"} {}`)),
		"nothing":      rec.RecordJSON(nil),
		"not UTF-8":    rec.RecordJSON([]byte("{\"request\":\"\xff\"}")),
	} {
		if err == nil || errors.Is(err, recorder.ErrDropped) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := rec.Lag().Records; got != 0 || rec.Dropped() != 0 {
		t.Errorf("%d records wait, %d were dropped", got, rec.Dropped())
	}
}

func TestJSONIsSentAsGivenOnOneLine(t *testing.T) {
	t.Parallel()
	archive := env.Start(t)
	c := connect(t, archive)
	rec, _ := opened(t, c, recorder.Options{})
	must.Do(t, rec.RecordJSON([]byte("{ \"request\" : \"s\",\n\t\"f\": 0.35e9, \"t\": \"<&>\\u00e9 é\" }\n")))
	closeRecorder(t, rec)
	got := recordsOf(t, c, rec.BlockID())
	if want := `{"request":"s","f":0.35e9,"t":"<&>\u00e9 é"}`; len(got) != 1 || string(got[0].Text) != want {
		t.Errorf("the record is %v, want %s", texts(got), want)
	}
}

func TestABlockIsOpenedWhileTheArchiveIsUnavailable(t *testing.T) {
	t.Parallel()
	network := newRelay(t)
	c := clientOf(t, network.address(), client.WithUser("ada"))
	dir := t.TempDir()
	rec, log := opened(t, c, recorder.Options{
		Dir: dir, CreateTimeout: 50 * time.Millisecond,
		Document: []byte(`{"telescope":"ska_mid", "f": 0.35e9, "eb_id": "mine", "metadata": {"version": 4}, "request_responses": []}`),
	})
	if !strings.HasPrefix(rec.BlockID(), "eb-") || rec.BlockID() == "mine" {
		t.Errorf("the identifier is %q", rec.BlockID())
	}
	recordNumbers(t, rec, 1, 10)
	if got := rec.Lag(); got.Records != 10 || got.Bytes < 1000 || got.Age <= 0 || got.Age > patience {
		t.Errorf("the lag is %+v", got)
	}
	if !strings.Contains(log.String(), "the archive is unavailable; the ExecutionBlock was opened without it") {
		t.Errorf("the log says: %s", log)
	}
	archive := env.Start(t)
	network.point(archive.Addr())
	closeRecorder(t, rec)
	wantNumbers(t, c, rec.BlockID(), 10)
	block := must.Get(c.Get(t.Context(), oda.ExecutionBlock, rec.BlockID()))(t)
	if !strings.Contains(string(block.Body), `"telescope":"ska_mid","f":0.35e9`) || block.Metadata.CreatedBy != "ada" || block.Metadata.Version != 1 {
		t.Errorf("the block became %s", block.Body)
	}
	wantSent(t, dir)
}

func TestABlockWithoutRecordsReachesTheArchive(t *testing.T) {
	t.Parallel()
	network, c := unconnected(t)
	rec, _ := opened(t, c, recorder.Options{CreateTimeout: 50 * time.Millisecond})
	network.point(env.Start(t).Addr())
	closeRecorder(t, rec)
	if _, err := c.Get(t.Context(), oda.ExecutionBlock, rec.BlockID()); err != nil {
		t.Error(err)
	}
}

func TestAnInvalidDocumentIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	c := connect(t, env.Start(t))
	for _, document := range []string{`[]`, `{`, `null`, `{"request_responses":[{"request":"s"}]}`, `{"sbi_ref": 7}`} {
		dir := t.TempDir()
		rec, err := recorder.Open(t.Context(), c, recorder.Options{Dir: dir, Document: []byte(document)})
		if err == nil {
			t.Errorf("%s was accepted as the block %s", document, rec.BlockID())
			closeRecorder(t, rec)
		}
		wantSent(t, dir)
	}
}

func TestARecorderNeedsAWritableSpool(t *testing.T) {
	t.Parallel()
	c := clientOf(t, away(t))
	if _, err := recorder.Attach(c, "eb-1", recorder.Options{Dir: "/dev/null/spool"}); err == nil {
		t.Error("a recorder was opened with its spool at a place that is no folder")
	}
	if _, err := recorder.Attach(c, "../eb-1", recorder.Options{Dir: t.TempDir()}); oda.CodeOf(err) != oda.InvalidIdentifier {
		t.Errorf("a block with an invalid identifier: %v", err)
	}
}

func TestTwoRecordersRecordIntoOneBlock(t *testing.T) {
	t.Parallel()
	c := clientOf(t, env.Oda(t, "serve").URL)
	dir := t.TempDir()
	first, _ := opened(t, c, recorder.Options{Dir: dir})
	second := must.Get(recorder.Attach(c, first.BlockID(), recorder.Options{Dir: dir}))(t)
	const each = 2500
	done := make(chan error)
	for i, rec := range []*recorder.Recorder{first, second} {
		go func() {
			for n := range each {
				if err := rec.Record(numbered(2*n + i)); err != nil {
					done <- err
					return
				}
			}
			done <- rec.Close(patient(t))
		}()
	}
	must.Do(t, errors.Join(<-done, <-done))
	var got [2][]int
	for _, n := range stored(t, c, first.BlockID()) {
		got[n%2] = append(got[n%2], n/2)
	}
	want := make([]int, each)
	for n := range want {
		want[n] = n
	}
	if diff := cmp.Diff([2][]int{want, want}, got); diff != "" {
		t.Errorf("each recorder's records, once and in order (-want +got):\n%s", diff)
	}
}

func TestARefusedRecordIsPutAsideAndTheOthersAreStored(t *testing.T) {
	t.Parallel()
	c := connect(t, env.Start(t))
	dir := t.TempDir()
	rec, log := opened(t, c, recorder.Options{Dir: dir})
	recordNumbers(t, rec, 1, 3)
	for _, odd := range []string{`{"request":""}`, `[]`, `{"request":"s","response":7}`} {
		must.Do(t, rec.RecordJSON([]byte(odd)))
	}
	recordNumbers(t, rec, 4, 6)
	// Flush and Close must not claim that everything is in the archive.
	if err := rec.Flush(patient(t)); !errors.Is(err, recorder.ErrPutAside) || !strings.Contains(err.Error(), "3 were refused") {
		t.Errorf("Flush returns %v", err)
	}
	if err := rec.Close(patient(t)); !errors.Is(err, recorder.ErrPutAside) {
		t.Errorf("Close returns %v", err)
	}
	wantNumbers(t, c, rec.BlockID(), 6)
	if got := rec.Refused(); got != 3 {
		t.Errorf("%d were refused, want 3", got)
	}
	left := sessionsIn(t, dir)
	if len(left) != 1 {
		t.Fatalf("the spool has %v, want the session with what was refused", left)
	}
	text := content(t, left[0], "refused.log")
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) != 6 || !strings.HasPrefix(lines[0], "# 400 urn:oda:problem:invalid-request ") ||
		!strings.HasSuffix(lines[1], ` {"request":""}`) || !strings.HasSuffix(lines[3], ` []`) {
		t.Errorf("refused.log has:\n%s", text)
	}
	if n := strings.Count(log.String(), "the archive refuses a record"); n != 3 {
		t.Errorf("the log reports %d refused records:\n%s", n, log)
	}
}

func TestRecordsWaitForABlockThatTheArchiveDoesNotKnow(t *testing.T) {
	t.Parallel()
	c := connect(t, env.Start(t))
	log := &env.Journal{}
	rec := must.Get(recorder.Attach(c, "eb-later", recorder.Options{Dir: t.TempDir(), Logger: log.Logger()}))(t)
	recordNumbers(t, rec, 1, 3)
	env.Await(t, "a message about the block", func() bool { return strings.Contains(log.String(), "could not be found") })
	if !strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("the log says: %s", log)
	}
	must.Get(c.Store(t.Context(), oda.ExecutionBlock, "eb-later", []byte(`{}`)))(t)
	begun := time.Now()
	closeRecorder(t, rec)
	if took := time.Since(begun); took > env.AtMost(20*time.Second) {
		t.Errorf("a caller in a hurry had to wait %v", took)
	}
	wantNumbers(t, c, "eb-later", 3)
}

func TestAFlushEndsWithItsContext(t *testing.T) {
	t.Parallel()
	rec, _ := opened(t, clientOf(t, away(t)), recorder.Options{CreateTimeout: time.Millisecond})
	recordNumbers(t, rec, 1, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if err := rec.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Flush returns %v", err)
	}
	leave(t, rec)
	if err := rec.Flush(t.Context()); !errors.Is(err, recorder.ErrClosed) {
		t.Errorf("after Close, Flush returns %v", err)
	}
}

func TestRecordsReachTheArchiveWithEverySyncPolicy(t *testing.T) {
	t.Parallel()
	c := connect(t, env.Start(t))
	for _, policy := range []recorder.Sync{recorder.SyncInterval, recorder.SyncAlways, recorder.SyncNever} {
		rec, _ := opened(t, c, recorder.Options{Sync: policy})
		recordNumbers(t, rec, 1, 50)
		closeRecorder(t, rec)
		wantNumbers(t, c, rec.BlockID(), 50)
	}
}

// This test is not parallel, so that no other test runs at the same time.
func TestAClosedRecorderLeavesNoGoroutine(t *testing.T) {
	addresses := map[string]string{"away": away(t), "there": env.Start(t).Addr()}
	before := goleak.IgnoreCurrent()
	for name, address := range addresses {
		c := clientOf(t, address)
		rec, _ := opened(t, c, recorder.Options{CreateTimeout: 200 * time.Millisecond})
		recordNumbers(t, rec, 1, 10)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		err := rec.Close(ctx)
		cancel()
		if name == "away" && err == nil {
			t.Error("an unavailable archive has acknowledged everything")
		}
		c.CloseIdleConnections()
	}
	goleak.VerifyNone(t, before)
}

// The archive is unavailable, and the telescope does not notice.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "spool-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	archive, err := client.New("http://127.0.0.1:1")
	if err != nil {
		panic(err)
	}
	rec, err := recorder.Open(context.Background(), archive, recorder.Options{
		Dir:           dir,
		Document:      []byte(`{"telescope": "ska_mid"}`),
		CreateTimeout: 50 * time.Millisecond,
		Logger:        slog.New(slog.DiscardHandler),
	})
	if err != nil {
		panic(err)
	}
	err = rec.Record(recorder.Call{Request: "functions.scan", Status: "OK", Response: map[string]any{"result": "done"}})
	fmt.Println(err, rec.Lag().Records)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	err = rec.Close(ctx) // sends what is left, until ctx ends; the rest stays in the spool
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	// Output:
	// <nil> 1
	// true
}
