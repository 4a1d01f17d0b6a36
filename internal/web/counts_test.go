package web

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oda"
)

func fixedCounts(context.Context) (map[oda.Kind]int64, error) {
	return map[oda.Kind]int64{oda.SBDefinition: 1234567, oda.SBInstance: 890, oda.ExecutionBlock: 45678}, nil
}

func TestCountsAreUnknownUntilTheyAreCounted(t *testing.T) {
	site := New(Config{Counts: fixedCounts})
	if got := strings.Count(homePage(t, site), `<span class="count">–</span>`); got != len(oda.Kinds) {
		t.Errorf("before the first count %d cards show it as unknown, want %d", got, len(oda.Kinds))
	}
	if err := site.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	page := homePage(t, site)
	for _, want := range []string{"1\u202f234\u202f567", "890", "45\u202f678", "0"} {
		if !strings.Contains(page, `<span class="count">`+want+`</span>`) {
			t.Errorf("no card shows the count %s", want)
		}
	}
}

func TestRunRefreshesTheCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		site := New(Config{Counts: func(context.Context) (map[oda.Kind]int64, error) {
			return map[oda.Kind]int64{oda.Project: 100 + calls.Add(1)}, nil
		}})
		run(t, site)
		for i, want := range []string{"101", "102", "103"} {
			synctest.Wait()
			if page := homePage(t, site); !strings.Contains(page, ">"+want+"<") {
				t.Errorf("%d s after the start no card shows %s", i*5, want)
			}
			time.Sleep(refreshEvery)
		}
	})
}

func TestARequestNeverCounts(t *testing.T) {
	var calls atomic.Int64
	site := New(Config{Counts: func(ctx context.Context) (map[oda.Kind]int64, error) {
		calls.Add(1)
		return fixedCounts(ctx)
	}})
	for range 10 {
		homePage(t, site)
	}
	if got := calls.Load(); got != 0 {
		t.Errorf("ten requests counted %d times, want never", got)
	}
}

func TestTheLastCountsStayWhileCountingFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failing atomic.Bool
		var log bytes.Buffer
		site := New(Config{
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Counts: func(ctx context.Context) (map[oda.Kind]int64, error) {
				if failing.Load() {
					return nil, errors.New("the engine is unavailable")
				}
				return fixedCounts(ctx)
			},
		})
		run(t, site)
		synctest.Wait()
		failing.Store(true)
		time.Sleep(4 * refreshEvery)
		synctest.Wait()
		if !strings.Contains(homePage(t, site), "45\u202f678") {
			t.Error("the last known count is gone")
		}
		if got := strings.Count(log.String(), "the engine is unavailable"); got != 1 {
			t.Errorf("the log reports the failure %d times, want once:\n%s", got, log.String())
		}
		failing.Store(false)
		time.Sleep(refreshEvery)
		synctest.Wait()
		if !strings.Contains(log.String(), "up to date again") {
			t.Errorf("the log does not report the recovery:\n%s", log.String())
		}
	})
}

func TestACountIsBoundedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		site := New(Config{Counts: func(ctx context.Context) (map[oda.Kind]int64, error) {
			calls.Add(1)
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		run(t, site)
		time.Sleep(refreshEvery + time.Second)
		synctest.Wait()
		if got := calls.Load(); got != 2 {
			t.Errorf("an engine that never answers was asked %d times in 6 s, want 2", got)
		}
	})
}

// run starts Run and checks, at the end of the test, that it ends with its
// context.
func run(t *testing.T, site *Site) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		site.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// homePage returns the home page as a browser on this machine gets it.
func homePage(t *testing.T, site *Site) string {
	t.Helper()
	w := httptest.NewRecorder()
	if err := site.Home(w, httptest.NewRequest(http.MethodGet, "/api/v1/", nil)); err != nil {
		t.Fatal(err)
	}
	return w.Body.String()
}
