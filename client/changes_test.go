package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oda"
	"oda/client"
	"oda/internal/app"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

func TestChangesAreWaitedFor(t *testing.T) {
	t.Parallel()
	archive := env.Start(t)
	c := connect(t, archive)
	told := make(chan oda.ChangePage, 1)
	go func() {
		page, err := c.Changes(t.Context(), client.ChangesQuery{After: client.Now, Wait: time.Minute})
		if err != nil {
			t.Error(err)
		}
		told <- page
	}()
	archive.AwaitFollowers(1)
	must.Get(c.Create(t.Context(), oda.SBDefinition, []byte(`{}`), ""))(t)
	if page := <-told; page.Next != 1 || len(page.Changes) != 1 {
		t.Errorf("the page is %+v", page)
	}
}

// Now is when a loop begins, also if there was one over the same sequence before.
func TestNowIsWhenALoopBegins(t *testing.T) {
	t.Parallel()
	var end atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("after") == "now" {
			fmt.Fprintf(w, `{"changes":[],"next":%d}`, end.Add(10))
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "id: %d\ndata: {\"position\":%[1]d,\"kind\":\"sbds\",\"change\":\"stored\",\"on\":\"2026-03-01T20:59:58Z\"}\n\n", end.Load()+1)
	}))
	defer server.Close()
	follow := dialing(t, server.URL).Follow(t.Context(), client.Now, oda.ChangeFilter{})
	for _, want := range []oda.Position{11, 21} {
		for change, err := range follow {
			if err != nil || change.Position != want {
				t.Errorf("the first change is at %d (%v), want %d", change.Position, err, want)
			}
			break
		}
	}
}

// quiet is an archive in which nothing happens, and which ends each stream after five
// minutes, as it does when a token expires.
type quiet struct {
	ended time.Time
	gaps  []time.Duration // between the end of a stream and the next
}

func (q *quiet) RoundTrip(*http.Request) (*http.Response, error) {
	if !q.ended.IsZero() {
		q.gaps = append(q.gaps, time.Since(q.ended))
	}
	in, out := io.Pipe()
	go func() {
		for range 20 {
			time.Sleep(15 * time.Second)
			_, _ = io.WriteString(out, ": 7\n\n")
		}
		q.ended = time.Now()
		_ = out.Close()
	}()
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: in}, nil
}

// That a stream ends now and then is no reason to learn of changes late.
func TestAFollowerComesBackAtOnceAfterALongStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &quiet{}
		c := must.Get(client.New("http://archive", client.WithHTTPClient(&http.Client{Transport: q})))(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		for _, err := range c.Follow(ctx, 7, oda.ChangeFilter{}) {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}
		if len(q.gaps) < 10 || slices.Max(q.gaps) > 200*time.Millisecond {
			t.Errorf("the gaps between streams are %v", q.gaps)
		}
	})
}

// A follower goes on through everything that may happen to the archive, and ends
// with its context.
func TestAFollowerSurvivesTheArchive(t *testing.T) {
	t.Parallel()
	database := "sqlite:" + filepath.Join(t.TempDir(), "archive.db")
	archive := env.Oda(t, "serve", "--db", database)
	address := strings.TrimPrefix(strings.TrimSuffix(archive.URL, "/api/v1"), "http://")
	c := dialing(t, archive.URL)
	block := must.Get(c.CreateBlock(t.Context(), nil, ""))(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 2)
	changes, records := make(chan int64, 100), make(chan int64, 100)
	go func() {
		for change, err := range c.Follow(ctx, client.Now, oda.ChangeFilter{IDs: []string{block.ID}}) {
			if err != nil {
				ended <- err
				return
			}
			for n := change.FirstSequence; n <= change.LastSequence; n++ {
				changes <- n
			}
		}
	}()
	go func() {
		for record, err := range c.FollowRecords(ctx, block.ID, 0) {
			if err != nil {
				ended <- err
				return
			}
			records <- record.Sequence
		}
	}()
	expect := func(n int64) {
		t.Helper()
		for name, seen := range map[string]chan int64{"changes": changes, "records": records} {
			select {
			case got := <-seen:
				if got != n {
					t.Fatalf("the follower of %s saw %d, want %d", name, got, n)
				}
			case err := <-ended:
				t.Fatalf("a follower ended: %v", err)
			case <-time.After(time.Minute):
				t.Fatalf("the follower of %s did not see %d", name, n)
			}
		}
	}
	record := func() { must.Get(c.Record(t.Context(), block.ID, []byte(`{"request":"one"}`), ""))(t) }
	// What came before a follower was there is not new to it, so it must be there.
	archive.AwaitLog(`"path":"/api/v1/changes"`)
	record()
	expect(1)
	for n := int64(2); n < 6; n += 2 {
		record()
		archive.Kill() // it may not have told anybody yet
		archive = env.Oda(t, "serve", "--db", database, "--listen", address)
		record()
		expect(n)
		expect(n + 1)
	}
	cancel()
	for range 2 {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("a follower ended with %v", err)
		}
	}
}

// A follower heeds how long the archive wants it to stay away, and goes on after
// faults on the way.
func TestAFollowerComesBackLater(t *testing.T) {
	t.Parallel()
	archive := env.Start(t, func(cfg *app.Config) { cfg.MaxFollowers = 1 })
	busy := archive.Events("/changes?after=now")
	c := dialing(t, archive.URL())
	must.Get(c.CreateBlock(t.Context(), nil, ""))(t)
	started := time.Now()
	time.AfterFunc(100*time.Millisecond, busy.Close)
	for change, err := range c.Follow(t.Context(), 0, oda.ChangeFilter{}) {
		if err != nil || change.Position != 1 {
			t.Errorf("the first change is %+v, %v", change, err)
		}
		break
	}
	if took := time.Since(started); took < time.Second {
		t.Errorf("the follower was back after %v, though it was asked to stay away for a second", took)
	}

	origin := must.Get(url.Parse(archive.Origin()))(t)
	faults := front(t, httputil.NewSingleHostReverseProxy(origin), reset, env.Answering(502, `away`), func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "id: 1\nevent: change\ndata: {\"position\":1,") // cut off
	})
	var log strings.Builder
	told := must.Get(client.New(faults.URL, client.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))))(t)
	for change, err := range told.Follow(t.Context(), 0, oda.ChangeFilter{}) {
		if err != nil || change.Position != 1 {
			t.Errorf("the first change is %+v, %v", change, err)
		}
		break
	}
	if away, back := strings.Count(log.String(), "does not answer"), strings.Count(log.String(), "answers again"); away != 1 || back != 1 {
		t.Errorf("the outage is reported %d times, and its end %d times: %s", away, back, log.String())
	}
}

func TestAFollowerEndsWhereItCannotGoOn(t *testing.T) {
	t.Parallel()
	archive := env.Start(t)
	c := dialing(t, archive.URL())
	for _, err := range c.Follow(t.Context(), 10, oda.ChangeFilter{}) {
		refused(t, err, oda.UnknownPosition, 400)
	}
	for _, err := range c.FollowRecords(t.Context(), "unknown", 0) {
		refused(t, err, oda.NotFound, 404)
	}
	for name, body := range map[string]string{
		"no event":     "id: x\n\n",
		"no JSON":      "id: 1\ndata: {\n\n",
		"no kind":      `id: 1` + "\n" + `data: {"position":1,"kind":"x","on":"2026-03-01T20:00:00Z"}` + "\n\n",
		"not in order": "id: 0\ndata: {}\n\n",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, body)
		}))
		n := 0
		for _, err := range dialing(t, server.URL).Follow(t.Context(), 0, oda.ChangeFilter{}) {
			if n++; err == nil || client.Status(err) != 200 {
				t.Errorf("%s: the follower got %v", name, err)
			}
		}
		if n != 1 {
			t.Errorf("%s: the follower got %d errors", name, n)
		}
		server.Close()
	}
}

// A place that the filter has passed is not looked at again.
func TestAFollowerHeedsHeartbeats(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Query().Get("after")
		w.Header().Set("Content-Type", "text/event-stream")
		if len(asked) == 1 {
			_, _ = io.WriteString(w, "retry: 1000\n\n: 41\n\n")
			return
		}
		_, _ = io.WriteString(w, `id: 42`+"\n"+`data: {"position":42,"kind":"ebs","id":"b","change":"stored","version":1,"by":"ada","on":"2026-03-01T20:00:00.000000Z"}`+"\n\n")
	}))
	t.Cleanup(server.Close)
	for change, err := range dialing(t, server.URL).Follow(t.Context(), 7, oda.ChangeFilter{IDs: []string{"b"}}) {
		if err != nil || change.Position != 42 {
			t.Errorf("the change is %+v, %v", change, err)
		}
		break
	}
	equal(t, "the positions that were asked after", []string{<-asked, <-asked}, []string{"7", "41"})
}

func ExampleClient_Follow() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "id: 1041\nevent: change\n"+
			`data: {"position":1041,"kind":"sbds","id":"sbd-1","change":"stored","version":2,"by":"ada","on":"2026-03-01T21:04:05.000000Z"}`+"\n\n"+
			"id: 1044\nevent: change\n"+
			`data: {"position":1044,"kind":"ebs","id":"eb-1","change":"recorded","version":1,"first_sequence":1,"last_sequence":3,"by":"mid","on":"2026-03-01T21:04:06.000000Z"}`+"\n\n")
	}))
	defer server.Close()
	archive, err := client.New(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	position := oda.Position(1040) // where the program was when it last stopped
	for change, err := range archive.Follow(bg, position, oda.ChangeFilter{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if change.Stored() {
			fmt.Printf("%s %s has version %d, by %s\n", change.Kind, change.ID, change.Version, change.By)
		} else {
			fmt.Printf("%s %s has records up to %d\n", change.Kind, change.ID, change.LastSequence)
		}
		position = change.Position // keep it where it survives the program
		if position == 1044 {
			break
		}
	}
	// Output:
	// SBDefinition sbd-1 has version 2, by ada
	// ExecutionBlock eb-1 has records up to 3
}
