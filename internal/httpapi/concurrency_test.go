package httpapi_test

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oda"
	"oda/internal/test/env"
)

// If many clients update the same version, one wins and the others get a problem.
func TestOneOfManyUpdatesWins(t *testing.T) {
	a := env.Start(t)
	const writers, rounds = 12, 5
	store(t, a, "/sbds/a", `{"by":0}`)
	for round := range rounds {
		reading := a.Do("GET", "/sbds/a", "").Text()
		var won, lost atomic.Int32
		var wg sync.WaitGroup
		for range writers {
			wg.Go(func() {
				r, err := a.Try("PUT", "/sbds/a", reading)
				switch {
				case err != nil:
					t.Error(err)
				case r.Status == 200:
					won.Add(1)
				case r.Status == 422 && strings.Contains(r.Text(), string(oda.MetadataMismatch)):
					lost.Add(1)
				default:
					t.Errorf("%d %s", r.Status, r.Body)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 || lost.Load() != writers-1 {
			t.Errorf("%d won, %d lost", won.Load(), lost.Load())
		}
		if m := metadataOf(t, a.Do("GET", "/sbds/a", "").Body); m.Version != int64(round+2) {
			t.Errorf("after round %d the version is %d", round, m.Version)
		}
	}
}

// If many clients store the same new identifier, one creates the entity.
func TestOneOfManyFirstStoresWins(t *testing.T) {
	a := env.Start(t)
	var won atomic.Int32
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			var headers []string
			if i%2 == 0 {
				headers = []string{"If-None-Match", "*"}
			}
			r, err := a.Try("PUT", "/sbds/new", fmt.Sprintf(`{"by":%d}`, i), headers...)
			switch {
			case err != nil:
				t.Error(err)
			case r.Status == 200:
				won.Add(1)
			case r.Status != 422 && r.Status != 412:
				t.Errorf("%d %s", r.Status, r.Body)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("%d created it", won.Load())
	}
}

// If several clients record while a tool changes the block, the block has every
// record once, in the order in which each client sent them.
func TestRecordersAndATool(t *testing.T) {
	a := env.Start(t)
	const recorders, each, changes = 4, 40, 10
	store(t, a, "/ebs/eb", `{"changed":0}`)
	var mu sync.Mutex
	sequences := map[int64]bool{}
	var wg sync.WaitGroup
	for who := range recorders {
		wg.Go(func() {
			last := int64(0)
			for n := range each {
				r, err := a.Try([]string{"POST", "PATCH"}[n%2], "/ebs/eb/request_response", fmt.Sprintf(`{"request":"%d-%d"}`, who, n))
				if err != nil || r.Status != 200 {
					t.Errorf("%v %+v", err, r)
					return
				}
				var got recorded
				if err := json.Unmarshal(r.Body, &got); err != nil || got.Sequence <= last {
					t.Errorf("%d after %d, %v", got.Sequence, last, err)
				}
				last = got.Sequence
				mu.Lock()
				if sequences[last] {
					t.Errorf("the sequence %d is used twice", last)
				}
				sequences[last] = true
				mu.Unlock()
			}
		})
	}
	wg.Go(func() {
		for n := 1; n <= changes; n++ {
			m := metadataOf(t, a.Do("GET", "/ebs/eb", "").Body)
			if r := a.Do("PUT", "/ebs/eb?records=keep", fmt.Sprintf(`{"changed":%d,"metadata":%s}`, n, m.text())); r.Status != 200 {
				t.Errorf("%d %s", r.Status, r.Body)
			}
		}
	})
	wg.Wait()
	var document struct {
		Changed int
		Records []struct{ Request string } `json:"request_responses"`
	}
	if err := json.Unmarshal([]byte(block(t, a, "eb")), &document); err != nil {
		t.Fatal(err)
	}
	if len(document.Records) != recorders*each || document.Changed != changes {
		t.Fatalf("there are %d records and %d changes", len(document.Records), document.Changed)
	}
	next := make([]int, recorders)
	for _, r := range document.Records {
		var who, n int
		if _, err := fmt.Sscanf(r.Request, "%d-%d", &who, &n); err != nil || n != next[who] {
			t.Fatalf("got %s, want %d-%d: %v", r.Request, who, next[who], err)
		}
		next[who]++
	}
}

// Two clients that store the same two entities never win one each.
func TestSeveralAreStoredTogether(t *testing.T) {
	a := env.Start(t)
	want(t, 200, a.Do("PUT", "/", `{"sbds":[{"sbd_id":"x"}],"prjs":[{"prj_id":"x"}]}`))
	for range 10 {
		one, two := a.Do("GET", "/sbds/x", "").Text(), a.Do("GET", "/prjs/x", "").Text()
		var won atomic.Int32
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				body := `{"sbds":[` + one + `],"prjs":[` + two + `]}`
				if i%2 == 1 {
					body = `{"prjs":[` + two + `],"sbds":[` + one + `]}`
				}
				if r, err := a.Try("PUT", "/", body); err != nil {
					t.Error(err)
				} else if r.Status == 200 {
					won.Add(1)
				}
			})
		}
		wg.Wait()
		v1, v2 := metadataOf(t, a.Do("GET", "/sbds/x", "").Body).Version, metadataOf(t, a.Do("GET", "/prjs/x", "").Body).Version
		if won.Load() != 1 || v1 != v2 {
			t.Fatalf("%d won, the versions are %d and %d", won.Load(), v1, v2)
		}
	}
}

// A server that stops finishes the requests in progress and accepts no new ones.
func TestGracefulStop(t *testing.T) {
	a := env.Start(t)
	conn := begin(t, a, "/sbds/late", 2)
	stopped := make(chan error, 1)
	go func() { stopped <- a.Stop() }()
	time.Sleep(100 * time.Millisecond)
	select {
	case err := <-stopped:
		t.Fatalf("the server stopped during a request: %v", err)
	default:
	}
	if _, err := io.WriteString(conn, "{}"); err != nil {
		t.Fatal(err)
	}
	want(t, 200, answer(t, conn))
	select {
	case err := <-stopped:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("the server does not stop")
	}
	if _, err := a.Try("GET", "/sbds/late", ""); err == nil {
		t.Error("the server still answers")
	}
}
