package night_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oda"
	"oda/night"
)

// stuck is an engine that does not answer until its caller gives up.
type stuck struct{ oda.Engine }

func (stuck) BlocksOn(ctx context.Context, _ oda.Days, _ int) ([]string, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestReportsOnNightsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := night.New(stuck{}, nil, nil)
		began := time.Now()
		ask := func(ctx context.Context) (time.Duration, error) {
			_, err := a.Report(ctx, night.Query{From: 0, To: 1})
			return time.Since(began), err
		}
		type answer struct {
			err  error
			took time.Duration
		}
		answers := make(chan answer, 2)
		for range 2 {
			go func() {
				took, err := ask(t.Context())
				answers <- answer{err, took}
			}()
		}
		synctest.Wait()
		if took, err := ask(t.Context()); oda.CodeOf(err) != oda.Overloaded || took != 5*time.Second {
			t.Errorf("a third report got %v after %v", err, took)
		}
		gone, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		if took, err := ask(gone); !errors.Is(err, context.Canceled) || took != 6*time.Second {
			t.Errorf("a report whose client left while it waited got %v after %v", err, took)
		}
		for range 2 {
			one := <-answers
			if oda.CodeOf(one.err) != oda.Overloaded || !strings.Contains(one.err.Error(), "60 seconds") || one.took != time.Minute {
				t.Errorf("a report that does not end got %v after %v", one.err, one.took)
			}
		}
		// Their places are free again.
		gone, leave = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		if took, err := ask(gone); !errors.Is(err, context.Canceled) || took != 61*time.Second {
			t.Errorf("a report whose client left got %v after %v", err, took)
		}
	})
}
