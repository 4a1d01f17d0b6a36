package measure

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

func TestFuncCountsOperations(t *testing.T) {
	var calls atomic.Int64
	var seen [4]atomic.Bool
	arm := Func("sleep", len(seen), func(_ context.Context, goroutine int) error {
		seen[goroutine].Store(true)
		time.Sleep(5 * time.Millisecond)
		if calls.Add(1) == 3 {
			return errors.New("the third")
		}
		return nil
	})
	s, err := arm.Run(t.Context(), 200*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if s.Operations != calls.Load()-1 || s.Failed != 1 || s.FirstFailure != "the third" {
		t.Errorf("%d calls are %+v", calls.Load(), s)
	}
	if s.P50 < 5*time.Millisecond || s.Max < s.P50 {
		t.Errorf("latencies %+v", s)
	}
	if s.Elapsed < 200*time.Millisecond {
		t.Errorf("elapsed %v", s.Elapsed)
	}
	for i := range seen {
		if !seen[i].Load() {
			t.Errorf("goroutine %d did nothing", i)
		}
	}
}

func TestFuncFinishesWhatItBegan(t *testing.T) {
	arm := Func("long", 2, func(context.Context, int) error {
		time.Sleep(60 * time.Millisecond)
		return nil
	})
	s, err := arm.Run(t.Context(), time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if s.Operations != 2 || s.Elapsed < 60*time.Millisecond {
		t.Errorf("%+v, want one operation of each goroutine", s)
	}
}

func TestOneStragglerDoesNotSpoilTheRate(t *testing.T) {
	// Nine goroutines work for 100 ms each, one for 400 ms.
	arm := Func("uneven", 10, func(_ context.Context, goroutine int) error {
		if goroutine == 0 {
			time.Sleep(400 * time.Millisecond)
		} else {
			time.Sleep(10 * time.Millisecond)
		}
		return nil
	})
	s, err := arm.Run(t.Context(), 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if s.Elapsed > 300*time.Millisecond {
		t.Errorf("elapsed %v is that of the slowest", s.Elapsed)
	}
}

func TestFuncStopsWithTheCaller(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	arm := Func("endless", 1, func(ctx context.Context, _ int) error {
		<-ctx.Done()
		return ctx.Err()
	})
	if _, err := arm.Run(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}
