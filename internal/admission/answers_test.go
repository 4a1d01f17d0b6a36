package admission

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oda"
)

var testBounds = AnswerBounds{Most: 256 << 20, Wait: 5 * time.Second, Stuck: 10 * time.Second}

// reader is a client that takes something only while it moves.
type reader struct {
	mu     sync.Mutex
	moving bool
	cut    func()
}

func (r *reader) Moved() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.moving
}

func (r *reader) Cut() { r.cut() }

// sends lets an answer hold its room until its client is cut off or the context ends.
func sends(ctx context.Context, a *Answers, caller string, bytes int64, moving bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	h := a.For(caller, &reader{moving: moving, cut: func() { cancel(errCut) }})
	if err := h.Take(ctx, bytes, 0); err != nil {
		return err
	}
	defer h.Give(bytes)
	<-ctx.Done()
	return context.Cause(ctx)
}

var errCut = errors.New("the client was cut off")

func TestAnswersStayWithinTheirRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := NewAnswers(testBounds)
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		var mu sync.Mutex
		outcomes := make(map[oda.Code]int)
		began := time.Now()
		for i := range 100 {
			group.Go(func() {
				err := sends(ctx, a, string(rune('a'+i%50)), 30<<20, true)
				mu.Lock()
				defer mu.Unlock()
				if outcomes[oda.CodeOf(err)]++; oda.CodeOf(err) == oda.Overloaded && time.Since(began) != testBounds.Wait {
					t.Errorf("one was refused after %v", time.Since(began))
				}
			})
		}
		synctest.Wait()
		if s := a.Stats(); s.Bytes != 7*30<<20 || s.Waiting != 93 {
			t.Errorf("100 answers: %+v", s)
		}
		time.Sleep(testBounds.Wait)
		synctest.Wait()
		if s := a.Stats(); s.Bytes != 7*30<<20 || s.Waiting != 0 || s.Refused != 93 || outcomes[oda.Overloaded] != 93 {
			t.Errorf("after the wait: %+v, %v", s, outcomes)
		}
		cancel()
		group.Wait()
		if s := a.Stats(); s.Bytes != 0 || len(a.byCaller) != 0 || len(a.holding) != 0 {
			t.Errorf("at the end: %+v", s)
		}
	})
}

func TestAnAnswerWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := NewAnswers(testBounds)
		first, second := a.For("anna", &reader{}), a.For("anna", &reader{})
		if err := first.Take(t.Context(), 40<<20, 0); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, func() { first.Give(40 << 20) })
		began := time.Now()
		if err := second.Take(t.Context(), 40<<20, 0); err != nil || time.Since(began) != time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		second.Give(40 << 20)
	})
}

func TestNoCallerTakesAllTheRoom(t *testing.T) {
	a := NewAnswers(testBounds)
	gone, cancel := context.WithCancel(t.Context())
	cancel() // nobody waits
	take := func(caller string, bytes int64) (*Answer, error) {
		h := a.For(caller, &reader{moving: true})
		return h, h.Take(gone, bytes, 0)
	}
	hog, err := take("hog", 200<<20) // a single one may be as large as it is
	if err != nil {
		t.Fatal(err)
	}
	if _, err := take("hog", 2<<20); err == nil {
		t.Error("a caller has a second answer beyond a quarter")
	}
	if _, err := take("anna", 30<<20); err == nil {
		t.Error("there was no room left, but another took some")
	}
	if _, err := take("anna", 512<<10); err != nil {
		t.Errorf("a moderate answer waits for large ones: %v", err)
	}
	hog.Give(200 << 20)
	for i := range 4 {
		if _, err := take("ben", 16<<20-512<<10); err != nil {
			t.Errorf("answer %d within a quarter: %v", i, err)
		}
	}
	if _, err := take("ben", 16<<20); err == nil {
		t.Error("a caller has more than a quarter")
	}
}

func TestWhatIsLargerThanTheRoomIsSentAlone(t *testing.T) {
	a := NewAnswers(testBounds)
	h := a.For("anna", &reader{moving: true})
	for range 3 {
		if err := h.Take(t.Context(), 200<<20, 0); err != nil {
			t.Fatal(err)
		}
	}
	h.Give(600 << 20)
}

func TestAClientThatTakesNothingIsCutOffWhenOthersWait(t *testing.T) {
	for name, test := range map[string]struct {
		moving, others bool
		want           error
	}{
		"stuck, others wait":  {false, true, errCut},
		"stuck, nobody waits": {false, false, context.Canceled},
		"slow, others wait":   {true, true, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := NewAnswers(testBounds)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- sends(ctx, a, "stuck", 200<<20, test.moving) }()
				time.Sleep(20 * time.Second)
				if test.others {
					waiting, cancel := context.WithTimeout(t.Context(), 4*time.Second)
					defer cancel()
					_ = sends(waiting, a, "anna", 100<<20, true)
				}
				cancel()
				if err := <-ended; !errors.Is(err, test.want) {
					t.Errorf("it ended with %v, want %v", err, test.want)
				}
			})
		})
	}
}

// A client is not cut off for those who would not get its room: they wait for answers to
// their own caller.
func TestOnlyWhoIsInTheWayIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := NewAnswers(testBounds)
		ctx, cancel := context.WithCancel(t.Context())
		stuck, own := make(chan error, 1), make(chan error, 1)
		go func() { stuck <- sends(ctx, a, "stuck", 40<<20, false) }()
		go func() { own <- sends(ctx, a, "anna", 40<<20, true) }()
		time.Sleep(time.Minute)
		if err := sends(t.Context(), a, "anna", 40<<20, true); oda.CodeOf(err) != oda.Overloaded {
			t.Errorf("a second large answer: %v", err)
		}
		cancel()
		if err := <-stuck; !errors.Is(err, context.Canceled) {
			t.Errorf("the stuck client: %v", err)
		}
		<-own
	})
}
