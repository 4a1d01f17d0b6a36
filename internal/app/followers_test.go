package app_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"oda/internal/test/env"
)

// A thousand clients follow one server that has room for a few connections:
// everybody sees everything, ordinary requests go on, memory stays bounded, one
// that stops reading is cut off and goes on where it was, and a stop ends all of
// them at once.
func TestAThousandFollowers(t *testing.T) {
	const followers, changes, others, parts = 1000, 40, 1000, 8
	p := env.Oda(t, "serve", "--max-connections", "8", "--write-timeout", "3s")
	before := resident(t, p.PID())
	stalled := stream(t, p, "/changes?after=now", "")
	all := make([]*streamed, followers)
	for i := range all {
		all[i] = stream(t, p, "/changes?after=now&kind=sbds", "")
	}
	var reading sync.WaitGroup
	for _, s := range all {
		reading.Go(s.readAll)
	}
	put := func(path, body string) {
		t.Helper()
		request, err := http.NewRequest("PUT", p.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if text, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("PUT %s: %s, %v: %.200s", path, response.Status, err, text)
		}
	}
	var want []int64
	position := int64(0)
	for i := range changes {
		put(fmt.Sprintf("/sbds/sbd-%d", i), `{}`)
		position++
		want = append(want, position)
	}
	// More than is buffered for one that does not read.
	for part := range parts {
		var several strings.Builder
		for i := range others {
			fmt.Fprintf(&several, `,{"prj_id":"prj-%d-%d"}`, part, i)
		}
		put("/", `{"prjs":[`+several.String()[1:]+`]}`)
		position += others
	}
	awaitLine(t, p, `"path":"/api/v1/changes"`) // it was cut off
	put("/sbds/last", `{}`)
	position++
	want = append(want, position)
	for i, s := range all {
		s.await(t, position)
		if got := s.positions(); !slices.Equal(got, want) {
			t.Fatalf("follower %d saw %v, want %v", i, got, want)
		}
	}
	// About 30 KiB each, and what is kept for all of them.
	grown := resident(t, p.PID()) - before
	t.Logf("%d followers take %.0f MiB", followers, mebibytes(grown))
	if grown > 160<<20 {
		t.Error("that is too much")
	}

	stalled.readAll()
	seen := stalled.positions()
	if len(seen) == 0 || int64(len(seen)) >= position {
		t.Fatalf("the follower that stopped reading saw %d of %d changes", len(seen), position)
	}
	for late := time.Now().Add(2 * time.Minute); seen[len(seen)-1] < position && time.Now().Before(late); {
		resumed := stream(t, p, "/changes?after=now", strconv.FormatInt(seen[len(seen)-1], 10))
		resumed.readTo(position) // on a busy machine it may be cut off again
		seen = append(seen, resumed.positions()...)
	}
	if int64(len(seen)) != position {
		t.Errorf("after it was cut off, the follower saw %d of %d changes", len(seen), position)
	}
	for i, got := range seen {
		if got != int64(i+1) {
			t.Fatalf("after it was cut off, the follower saw position %d as its change %d", got, i+1)
		}
	}

	started := time.Now()
	if code := p.Stop(); code != 0 {
		t.Errorf("the stop ended with %d", code)
	}
	if took := time.Since(started); took > 4*time.Second {
		t.Errorf("the stop took %v", took)
	}
	reading.Wait()
	for i, s := range all {
		if s.err != io.EOF {
			t.Errorf("the stream of follower %d ended with %v", i, s.err)
		}
	}
}

// streamed is a stream of changes, read with little effort.
type streamed struct {
	conn net.Conn
	body *bufio.Reader
	err  error // with which it ended

	mu   sync.Mutex
	seen []int64 // positions
	more chan struct{}
}

// stream asks for a stream on a connection of its own.
func stream(t *testing.T, p *env.Process, path, last string) *streamed {
	t.Helper()
	conn, err := net.Dial("tcp", p.Host())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.(*net.TCPConn).SetReadBuffer(8 << 10); err != nil {
		t.Fatal(err)
	}
	if last != "" {
		last = "Last-Event-ID: " + last + "\r\n"
	}
	fmt.Fprintf(conn, "GET /api/v1%s HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n%s\r\n", path, last)
	response, err := http.ReadResponse(bufio.NewReaderSize(conn, 1<<10), nil)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("ask for a stream: %v, %+v", err, response)
	}
	return &streamed{conn: conn, body: bufio.NewReaderSize(response.Body, 1<<10), more: make(chan struct{}, 1)}
}

// readAll notes the positions of the changes until the stream ends.
func (s *streamed) readAll() { s.readTo(0) }

// readTo is like readAll, and also ends after the change at a position.
func (s *streamed) readTo(last int64) {
	position := int64(0)
	for {
		line, err := s.body.ReadString('\n')
		if err != nil {
			s.err = err
			return
		}
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			position, _ = strconv.ParseInt(strings.TrimSpace(id), 10, 64)
		}
		if line != "\n" || position == 0 {
			continue
		}
		s.mu.Lock()
		s.seen = append(s.seen, position)
		s.mu.Unlock()
		if position == last {
			return
		}
		position = 0
		select {
		case s.more <- struct{}{}:
		default:
		}
	}
}

func (s *streamed) positions() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// await waits until the change at a position was seen.
func (s *streamed) await(t *testing.T, position int64) {
	t.Helper()
	for late := time.After(2 * time.Minute); !s.reached(position); {
		select {
		case <-s.more:
		case <-late:
			t.Fatalf("position %d was not seen; the last are %v", position, s.positions())
		}
	}
}

// reached reports whether the stream has come to a position. Positions grow.
func (s *streamed) reached(position int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen) > 0 && s.seen[len(s.seen)-1] >= position
}

// awaitLine waits until the log of a process has a line with a text.
func awaitLine(t *testing.T, p *env.Process, text string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !strings.Contains(p.Log(), text); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the log has no line with %s", text)
		}
	}
}
