package web

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oda"
	"oda/archive"
)

// measured is an engine that is only measured.
type measured struct {
	oda.Engine
	usage func(ctx context.Context) (oda.Usage, error)
}

func (m measured) Usage(ctx context.Context) (oda.Usage, error) { return m.usage(ctx) }

// run starts Run for such an engine and checks, at the end of the test, that it ends with
// its context. It returns the site and its log.
func run(t *testing.T, usage func(ctx context.Context) (oda.Usage, error)) (*Site, *bytes.Buffer) {
	var log bytes.Buffer
	site := New(Config{Archive: archive.New(measured{usage: usage}, nil), Logger: slog.New(slog.NewTextHandler(&log, nil))})
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
	return site, &log
}

func TestRunMeasuresAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		site, _ := run(t, func(context.Context) (oda.Usage, error) { return oda.Usage{Bytes: 100 + calls.Add(1)}, nil })
		for i, want := range []int64{101, 102, 103} {
			synctest.Wait()
			if got := site.usage.Load().Bytes; got != want {
				t.Errorf("%d s after the start the home page shows %d bytes, want %d", i*5, got, want)
			}
			time.Sleep(measureEvery)
		}
	})
}

func TestTheLastUsageStaysWhileMeasuringFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failing atomic.Bool
		site, log := run(t, func(context.Context) (oda.Usage, error) {
			if failing.Load() {
				return oda.Usage{}, errors.New("the engine is unavailable")
			}
			return oda.Usage{Bytes: 45678}, nil
		})
		synctest.Wait()
		failing.Store(true)
		time.Sleep(4 * measureEvery)
		synctest.Wait()
		if got := site.usage.Load().Bytes; got != 45678 {
			t.Errorf("the home page shows %d bytes, want the last that were known", got)
		}
		if got := strings.Count(log.String(), "the engine is unavailable"); got != 1 {
			t.Errorf("the log reports the failure %d times, want once:\n%s", got, log.String())
		}
		failing.Store(false)
		time.Sleep(measureEvery)
		synctest.Wait()
		if !strings.Contains(log.String(), "knows again") {
			t.Errorf("the log does not report the recovery:\n%s", log.String())
		}
	})
}

func TestMeasuringIsBoundedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		run(t, func(ctx context.Context) (oda.Usage, error) {
			calls.Add(1)
			<-ctx.Done()
			return oda.Usage{}, ctx.Err()
		})
		time.Sleep(measureEvery + time.Second)
		synctest.Wait()
		if got := calls.Load(); got != 2 {
			t.Errorf("an engine that never answers was asked %d times in 6 s, want 2", got)
		}
	})
}
