package cli

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"oda/internal/test/must"
)

// writes keeps what each call of Write got.
type writes struct {
	mu    sync.Mutex
	calls []string
}

func (w *writes) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, string(p))
	return len(p), nil
}

// messages returns the messages of each write since the last call.
func (w *writes) messages() [][]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all [][]string
	for _, call := range w.calls {
		var messages []string
		for line := range strings.Lines(call) {
			_, message, _ := strings.Cut(strings.TrimSpace(line), "msg=")
			messages = append(messages, message)
		}
		all = append(all, messages)
	}
	w.calls = nil
	return all
}

func TestLinesOfTheLogAreWrittenTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &writes{}
		log, _, flush := logging{LogFormat: "text", LogLevel: "info"}.gathered(out)
		want := func(want ...[]string) {
			t.Helper()
			if diff := cmp.Diff(want, out.messages()); diff != "" {
				t.Error("written (-want +got):\n" + diff)
			}
		}
		log.Info("one")
		log.With("a", "b").WithGroup("c").Info("two")
		want()
		time.Sleep(gatherTime)
		synctest.Wait()
		want([]string{"one", "two a=b"})

		log.Info("three")
		log.With("a", "b").Warn("four")
		want([]string{"three", "four a=b"})

		log.Info("five")
		flush()
		want([]string{"five"})
		time.Sleep(gatherTime)
		synctest.Wait()
		want()
	})
}

func TestAFullLogIsWrittenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &writes{}
		log, _, flush := logging{LogFormat: "text", LogLevel: "info"}.gathered(out)
		line := strings.Repeat("x", gatherBytes/4)
		for range 5 {
			log.Info(line)
		}
		got := out.messages()
		flush()
		got = append(got, out.messages()...)
		want := [][]string{slices.Repeat([]string{line}, 4), {line}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error("written (-want +got):\n" + diff)
		}
		time.Sleep(gatherTime)
	})
}

func TestASlowReaderOfTheLogHoldsUpWhoLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &lines{to: writerFunc(func(p []byte) (int, error) { time.Sleep(time.Hour); return len(p), nil })}
		started := time.Now()
		for range 3 {
			must.Get(slow.Write(make([]byte, gatherBytes)))(t)
		}
		if took := time.Since(started); took != 3*time.Hour {
			t.Errorf("three times as much as fits took %s, as if it were kept", took)
		}
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
