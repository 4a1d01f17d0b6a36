package recorder_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oda"
	"oda/client"
	"oda/client/recorder"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// soon are options with which a call is announced almost at once.
func soon(o recorder.Options) recorder.Options {
	return recorder.Hastened(o, 20*time.Millisecond, oda.MinLease)
}

// awaitRunning waits until so many calls of a block are running, and returns them.
func awaitRunning(t testing.TB, c *client.Client, block string, count int) []oda.RunningCall {
	t.Helper()
	var calls []oda.RunningCall
	env.Await(t, "the calls that are running", func() bool {
		var err error
		calls, err = c.RunningIn(patient(t), block)
		return err == nil && len(calls) == count
	})
	return calls
}

func TestACallIsRunningUntilItsRecordIsThere(t *testing.T) {
	t.Parallel()
	c := connect(t, env.Start(t))
	rec, _ := opened(t, c, soon(recorder.Options{Document: []byte(`{"telescope":"ska_mid"}`)}))
	good := rec.Begin("functions.scan", map[string]any{"id": 1})
	bad := rec.Begin("functions.point", []int{2})
	calls := awaitRunning(t, c, rec.BlockID(), 2)
	if got := calls[0]; got.Request != "functions.scan" || string(got.Arguments) != `{"id":1}` || got.At() != "ska_mid" || got.Silent {
		t.Errorf("running is %+v", got)
	}
	must.Do(t, bad.End(1, errors.New("no beam")))
	must.Do(t, good.End(map[string]int{"n": 3}, nil))
	must.Do(t, good.End(nil, errors.New("too late")))
	must.Do(t, rec.Flush(patient(t)))
	if got := must.Get(c.RunningIn(t.Context(), rec.BlockID()))(t); len(got) != 0 {
		t.Errorf("after their records, %+v are running", got)
	}
	got := texts(recordsOf(t, c, rec.BlockID()))
	want := []string{
		`{"request":"functions.point","request_args":{"args":[2]},"status":"ERROR","error":{"detail":"no beam"},"request_sent_at":"` + calls[1].SentAt.String() + `"`,
		`{"request":"functions.scan","request_args":{"id":1},"status":"OK","response":{"n":3},"request_sent_at":"` + calls[0].SentAt.String() + `"`,
	}
	if len(got) != 2 || !strings.HasPrefix(got[0], want[0]) || !strings.HasPrefix(got[1], want[1]) {
		t.Errorf("the records are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestACallIsRenewedWhileItGoesOn(t *testing.T) {
	t.Parallel()
	c := connect(t, env.Start(t))
	rec, _ := opened(t, c, soon(recorder.Options{}))
	call := rec.Begin("functions.scan", nil)
	first := awaitRunning(t, c, rec.BlockID(), 1)[0]
	env.Await(t, "a renewal", func() bool {
		later := awaitRunning(t, c, rec.BlockID(), 1)[0]
		return later.RenewedOn > first.RenewedOn && later.Since == first.Since && later.Key == first.Key && !later.Silent
	})
	must.Do(t, call.End(nil, nil))
}

// heard is what a client has asked of an archive.
type heard struct {
	http.RoundTripper
	running atomic.Int64 // requests about what is running
}

func (h *heard) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.Contains(r.URL.Path, "/running/") {
		h.running.Add(1)
	}
	return h.RoundTripper.RoundTrip(r)
}

func TestAShortCallIsNeverAnnounced(t *testing.T) {
	t.Parallel()
	archive := env.Start(t)
	transport := &heard{RoundTripper: archive.Client().Transport}
	c := clientOf(t, archive.URL(), client.WithHTTPClient(&http.Client{Transport: transport}))
	rec, _ := opened(t, c, recorder.Options{})
	for begun := time.Now(); time.Since(begun) < 1500*time.Millisecond; time.Sleep(time.Millisecond) {
		must.Do(t, rec.Begin("functions.scan", nil).End(nil, nil))
	}
	if n := transport.running.Load(); n != 0 {
		t.Errorf("%d requests about short calls", n)
	}
	begun := time.Now()
	call := rec.Begin("functions.scan", nil)
	awaitRunning(t, c, rec.BlockID(), 1)
	if took := time.Since(begun); took < time.Second {
		t.Errorf("a call was announced after %v", took)
	}
	must.Do(t, call.End(nil, nil))
}

func TestWhatIsRunningSurvivesAnOutage(t *testing.T) {
	t.Parallel()
	network, c := unconnected(t)
	rec, _ := opened(t, c, soon(recorder.Options{CreateTimeout: 50 * time.Millisecond}))
	before := rec.Begin("functions.scan", nil) // the archive does not have the block
	network.point(env.Start(t).Addr())
	awaitRunning(t, c, rec.BlockID(), 1)
	network.point("")
	during := rec.Begin("functions.point", nil)
	network.point(env.Start(t).Addr()) // of another archive, which knows nothing
	must.Get(c.Store(patient(t), oda.ExecutionBlock, rec.BlockID(), []byte("{}")))(t)
	awaitRunning(t, c, rec.BlockID(), 2)
	must.Do(t, errors.Join(during.End(nil, nil), before.End(nil, nil)))
	must.Do(t, rec.Flush(patient(t)))
	awaitRunning(t, c, rec.BlockID(), 0)
}

func TestACallThatIsNotRecordedIsTakenBack(t *testing.T) {
	t.Parallel()
	c := connect(t, env.Start(t))
	rec, _ := opened(t, c, soon(recorder.Options{}))
	call := rec.Begin("functions.scan", nil)
	awaitRunning(t, c, rec.BlockID(), 1)
	if err := call.End(func() {}, nil); err == nil {
		t.Error("a function is recorded as a response")
	}
	awaitRunning(t, c, rec.BlockID(), 0)
	if err := rec.Begin("functions.scan", func() {}).End(nil, nil); err == nil || !strings.Contains(err.Error(), "request_args") {
		t.Errorf("a function is recorded as an argument: %v", err)
	}
}

func TestLongArgumentsAreNotAnnounced(t *testing.T) {
	t.Parallel()
	c := connect(t, env.Start(t))
	rec, _ := opened(t, c, soon(recorder.Options{}))
	call := rec.Begin("functions.scan", map[string]string{"long": strings.Repeat("x", 20_000)})
	if got := awaitRunning(t, c, rec.BlockID(), 1); string(got[0].Arguments) != "null" {
		t.Errorf("the arguments are %s", got[0].Arguments)
	}
	must.Do(t, call.End(nil, nil))
	must.Do(t, rec.Flush(patient(t)))
	if got := recordsOf(t, c, rec.BlockID()); len(got) != 1 || len(got[0].Text) < 20_000 {
		t.Errorf("the record has lost its arguments: %v", texts(got))
	}
}

func TestAKilledProcessLeavesItsCallSilent(t *testing.T) {
	t.Parallel()
	archive := env.Start(t)
	c := connect(t, archive)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+archive.URL()+"|"+t.TempDir()+"|hangs")
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	var block string
	must.Get(fmt.Fscanln(out, &block))(t)
	if awaitRunning(t, c, block, 1)[0].Silent {
		t.Error("the call is silent while its process lives")
	}
	must.Do(t, cmd.Process.Kill())
	_ = cmd.Wait()
	env.Await(t, "silence", func() bool { return awaitRunning(t, c, block, 1)[0].Silent })
}

// The keys in a spool are not in order if a call begins before another and ends after it.
func TestThePythonHelperShipsKeysThatAreNotInOrder(t *testing.T) {
	t.Parallel()
	network, c := unconnected(t)
	dir := t.TempDir()
	rec, _ := opened(t, c, recorder.Options{Dir: dir, CreateTimeout: 50 * time.Millisecond})
	outer := rec.Begin("functions.scan", map[string]int{"n": 3})
	recordNumbers(t, rec, 1, 2)
	must.Do(t, outer.End(nil, nil))
	leave(t, rec)
	var keys []string
	text := must.Get(os.ReadFile(filepath.Join(sessionsIn(t, dir)[0], "00000001.log")))(t)
	for line := range strings.Lines(string(text)) {
		_, number, _ := strings.Cut(strings.Fields(line)[1], "-")
		keys = append(keys, number)
	}
	if !slices.Equal(keys, []string{"2", "3", "1"}) {
		t.Errorf("the keys are %v", keys)
	}
	network.point(env.Start(t).Addr())
	python(t, dir, network.address(), "-m", "oda_helper")
	wantNumbers(t, c, rec.BlockID(), 3)
	wantSent(t, dir)
}

// Announcing costs the caller nothing, whatever the archive does.
func TestAnnouncingCostsTheCallerNothing(t *testing.T) {
	calls, asMuch := 300, 5.0
	if env.InProof() {
		calls, asMuch = 2000, 1.5
	}
	never := make(chan struct{})
	answering := func(handler http.HandlerFunc) string {
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		return server.URL
	}
	addresses := []string{
		env.Start(t).Addr(), away(t),
		answering(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }),
		answering(func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-never:
			case <-r.Context().Done():
			}
		}),
	}
	t.Cleanup(func() { close(never) })
	recorders := make([]*recorder.Recorder, len(addresses))
	for i, address := range addresses {
		recorders[i], _ = opened(t, clientOf(t, address), soon(recorder.Options{CreateTimeout: 50 * time.Millisecond}))
		for range 5 { // something to announce, again and again
			recorders[i].Begin("functions.wait", nil)
		}
	}
	var p99 []time.Duration
	env.Await(t, "a quiet moment", func() bool {
		took := make([][]time.Duration, len(recorders))
		for range calls {
			for i, rec := range recorders {
				begun := time.Now()
				if err := rec.Begin("functions.scan", nil).End(nil, nil); err != nil {
					t.Fatal(err)
				}
				took[i] = append(took[i], time.Since(begun))
			}
			time.Sleep(time.Millisecond)
		}
		p99 = p99[:0]
		for _, times := range took {
			slices.Sort(times)
			p99 = append(p99, times[calls*99/100])
		}
		return float64(slices.Max(p99)) <= asMuch*float64(p99[0])
	})
	t.Logf("p99 of a call with the archive up, away, refusing, hanging: %v", p99)
}
