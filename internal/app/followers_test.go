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
	"oda/internal/test/must"
)

// A thousand clients follow one server that has room for a few connections:
// everybody sees everything, ordinary requests go on, memory stays bounded, one
// that stops reading is cut off and goes on where it was, and a stop ends all of
// them at once.
func TestAThousandFollowers(t *testing.T) {
	p := env.Oda(t, "serve", "--max-connections", "8", "--write-timeout", "3s")
	all := gather(t, p, client, func(path string) *streamed { return stream(t, p, path, "") })
	seen := all.stalled.positions()
	for late := time.Now().Add(2 * time.Minute); seen[len(seen)-1] < all.position && time.Now().Before(late); {
		resumed := stream(t, p, "/changes?after=now", strconv.FormatInt(seen[len(seen)-1], 10))
		resumed.readTo(all.position) // on a busy machine it may be cut off again
		seen = append(seen, resumed.positions()...)
	}
	if int64(len(seen)) != all.position {
		t.Errorf("after it was cut off, the follower saw %d of %d changes", len(seen), all.position)
	}
	for i, got := range seen {
		if got != int64(i+1) {
			t.Fatalf("after it was cut off, the follower saw position %d as its change %d", got, i+1)
		}
	}
	all.stop(t, p)
}

// gathering is a thousand clients who follow the changes of SBDefinitions, and one who
// has stopped reading.
type gathering struct {
	followers []*streamed
	reading   sync.WaitGroup
	stalled   *streamed
	position  int64 // of the last change
}

// gather lets a thousand clients follow, each in the given way, while more is written
// than is buffered for one that does not read. It checks that everybody sees
// everything, and that the one who does not read is cut off.
func gather(t *testing.T, p *env.Process, client *http.Client, follow func(path string) *streamed) *gathering {
	t.Helper()
	const followers, changes, others, parts = 1000, 40, 1000, 8
	before := resident(t, p.PID())
	g := &gathering{stalled: follow("/changes?after=now"), followers: make([]*streamed, followers)}
	for i := range g.followers {
		g.followers[i] = follow("/changes?after=now&kind=sbds")
		g.reading.Go(g.followers[i].readAll)
	}
	put := func(path, body string) {
		t.Helper()
		request := must.Get(http.NewRequest("PUT", p.URL+path, strings.NewReader(body)))(t)
		response := must.Get(client.Do(request))(t)
		defer response.Body.Close()
		if text, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("PUT %s: %s, %v: %.200s", path, response.Status, err, text)
		}
	}
	var want []int64
	one := func(id string) {
		put("/sbds/"+id, `{}`)
		g.position++
		want = append(want, g.position)
	}
	for i := range changes {
		one(fmt.Sprintf("sbd-%d", i))
	}
	for part := range parts {
		var several strings.Builder
		for i := range others {
			fmt.Fprintf(&several, `,{"prj_id":"prj-%d-%d"}`, part, i)
		}
		put("/", `{"prjs":[`+several.String()[1:]+`]}`)
		g.position += others
	}
	p.AwaitLog(`"path":"/api/v1/changes"`) // the one that does not read was cut off
	one("last")
	for i, s := range g.followers {
		s.await(t, g.position)
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
	g.stalled.readAll()
	if n := len(g.stalled.positions()); n == 0 || int64(n) >= g.position {
		t.Fatalf("the follower that stopped reading saw %d of %d changes", n, g.position)
	}
	return g
}

// stop stops the archive, and checks that this ends all streams, soon.
func (g *gathering) stop(t *testing.T, p *env.Process) {
	t.Helper()
	started := time.Now()
	p.MustStop()
	if took := time.Since(started); took > env.AtMost(4*time.Second) {
		t.Errorf("the stop took %v", took)
	}
	g.reading.Wait()
	for i, s := range g.followers {
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
	conn := must.Get(net.Dial("tcp", p.Host()))(t)
	t.Cleanup(func() { conn.Close() })
	must.Do(t, conn.(*net.TCPConn).SetReadBuffer(8<<10))
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
