package app_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oda/internal/test/env"
	"oda/internal/test/must"
)

// overloadClients is how many requests are in progress at once, at most. It is less
// than the number of connections that a server accepts.
const overloadClients = 900

// TestOverload sends five times as many requests as the archive can answer. The
// archive answers some of them in time, refuses the others soon, recording last, loses
// nothing, and is well again when it is over. ODA_OVERLOAD says for how long.
func TestOverload(t *testing.T) {
	length := env.Length(t, "ODA_OVERLOAD", 1500*time.Millisecond)
	for name, database := range map[string]func() []string{
		"SQLite":     func() []string { return nil },
		"PostgreSQL": func() []string { return []string{"--db", env.Postgres(t)} },
	} {
		t.Run(name, func(t *testing.T) { overload(t, length, database()...) })
	}
}

func overload(t *testing.T, length time.Duration, args ...string) {
	p := env.Oda(t, append([]string{"serve"}, args...)...)
	for i := range 200 {
		answered(t, "PUT", fmt.Sprintf("%s/sbds/sbd-%d", p.URL, i), searched)
	}
	answered(t, "PUT", p.URL+"/ebs/eb-1", `{}`)
	before := resident(t, p.PID())
	l := newStorm(t, p.Host())

	capacity := l.closed(16, length/3)
	t.Logf("16 clients: %s", capacity)
	over := l.open(5*capacity.rate(), length)
	t.Logf("five times as many: %s", over)

	// A short run, on a machine that may be busy, only sees that the times are bounded
	// at all, and that recording is refused last.
	bound, proof := 10*time.Second, length >= time.Minute
	if proof {
		bound = time.Second
	}
	for _, kind := range kindsOfLoad {
		o := over.of(kind)
		if p99 := percentile(o.accepted, 99); p99 > bound {
			t.Errorf("%s: the 99th percentile of what was accepted is %v", kind, p99)
		}
		if p99 := percentile(o.refused, 99); p99 > bound {
			t.Errorf("%s: the 99th percentile of what was refused is %v", kind, p99)
		}
	}
	recorded, others := over.of("record"), len(over.of("get").refused)+len(over.of("put").refused)+len(over.of("search").refused)
	if len(over.failed) > 0 {
		t.Errorf("%d requests were neither accepted nor refused, such as %s", len(over.failed), over.failed[0])
	}
	if others == 0 {
		t.Error("nothing was refused, so this was no overload")
	}
	put := over.of("put")
	if share := recorded.share(); share > put.share() && share > 0.05 || proof && share > 0.05 {
		t.Errorf("%.1f %% of the records were refused, and %.1f %% of the other writes", 100*share, 100*put.share())
	}
	if grown := resident(t, p.PID()) - before; grown > 256<<20 {
		t.Errorf("the archive takes %.0f MiB more than before", mebibytes(grown))
	}

	l.recovered(t, capacity)
	var block struct {
		Records []json.RawMessage `json:"request_responses"`
	}
	must.Do(t, json.Unmarshal([]byte(answered(t, "GET", p.URL+"/ebs/eb-1", "")), &block))
	if n := int64(len(block.Records)); n < l.recorded.Load() {
		t.Errorf("%d records were acknowledged, but the block has %d", l.recorded.Load(), n)
	}
	p.MustStop()
}

// searched is a document that takes a while to be searched.
var searched = `{"list":[` + strings.Repeat(`{"a":[1,2,3]},`, 50) + `0]}`

var kindsOfLoad = []string{"get", "search", "put", "record"}

// storm sends requests of all kinds. It shares the machine with the archive, so its
// clients are simple: each has a connection, and no goroutine but the caller's.
type storm struct {
	host     string
	clients  chan *caller
	sent     atomic.Int64
	recorded atomic.Int64
}

// caller is a client. Its connection is nil before its first request, and after an
// error.
type caller struct {
	conn   net.Conn
	answer *bufio.Reader
}

func newStorm(t *testing.T, host string) *storm {
	l := &storm{host: host, clients: make(chan *caller, overloadClients)}
	for range overloadClients {
		l.clients <- &caller{}
	}
	t.Cleanup(func() {
		for range overloadClients {
			if c := <-l.clients; c.conn != nil {
				_ = c.conn.Close()
			}
		}
	})
	return l
}

// send lets a client send the next request, and gives the client back. Of ten, one is
// a search.
func (l *storm) send(c *caller) (kind string, status int, took time.Duration, err error) {
	n := l.sent.Add(1)
	method, path, body := "GET", fmt.Sprintf("/sbds/sbd-%d", n%200), ""
	switch kind = "get"; n % 10 {
	case 0:
		kind, path = "search", "/sbds/search?where="+url.QueryEscape("/list/*/a/*/b = 1")
	case 1, 2, 3:
		kind, method, path, body = "record", "POST", "/ebs/eb-1/request_response", `{"request":"observe.scan","status":"OK"}`
	case 4, 5:
		kind, method, path, body = "put", "PUT", fmt.Sprintf("/prjs/prj-%d", n), `{"title":"overload"}`
	}
	began := time.Now()
	status, err = c.do(l.host, fmt.Sprintf("%s /api/v1%s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", method, path, len(body), body))
	took = time.Since(began)
	if err != nil && c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
	if kind == "record" && status == http.StatusOK {
		l.recorded.Add(1)
	}
	l.clients <- c
	return kind, status, took, err
}

// do sends a request and returns the status of its answer.
func (c *caller) do(host, request string) (int, error) {
	if c.conn == nil {
		conn, err := net.DialTimeout("tcp", host, 30*time.Second)
		if err != nil {
			return 0, err
		}
		c.conn, c.answer = conn, bufio.NewReader(conn)
	}
	_ = c.conn.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.WriteString(c.conn, request); err != nil {
		return 0, err
	}
	response, err := http.ReadResponse(c.answer, nil)
	if err != nil {
		return 0, err
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return 0, err
	}
	if response.StatusCode == http.StatusServiceUnavailable && response.Header.Get("Retry-After") == "" {
		return 0, fmt.Errorf("a 503 has no Retry-After")
	}
	return response.StatusCode, nil
}

// closed lets so many clients send one request after the other.
func (l *storm) closed(clients int, length time.Duration) *outcomes {
	o := &outcomes{length: length}
	var group sync.WaitGroup
	end := time.Now().Add(length)
	for range clients {
		group.Go(func() {
			for time.Now().Before(end) {
				o.add(l.send(<-l.clients))
			}
		})
	}
	group.Wait()
	return o
}

// open sends so many requests each second, however many have been answered. Those for
// which all clients are busy are not sent.
func (l *storm) open(perSecond float64, length time.Duration) *outcomes {
	o := &outcomes{length: length}
	var group sync.WaitGroup
	began, sent := time.Now(), 0.0
	for tick := time.NewTicker(5 * time.Millisecond); time.Since(began) < length; <-tick.C {
		for ; sent < perSecond*time.Since(began).Seconds(); sent++ {
			select {
			case c := <-l.clients:
				group.Go(func() { o.add(l.send(c)) })
			default:
				o.unsent++
			}
		}
	}
	group.Wait()
	return o
}

// recovered checks that all kinds of requests are answered within five seconds as
// they were before.
func (l *storm) recovered(t *testing.T, before *outcomes) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); ; {
		after := l.closed(4, 500*time.Millisecond)
		well := len(after.failed) == 0 && after.rate() > 0
		for _, kind := range kindsOfLoad {
			well = well && len(after.of(kind).refused) == 0 &&
				percentile(after.of(kind).accepted, 50) < 2*percentile(before.of(kind).accepted, 90)+50*time.Millisecond
		}
		if well {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("after five seconds the archive has not recovered: %s", after)
			return
		}
	}
}

// outcomes are those of many requests.
type outcomes struct {
	length time.Duration
	unsent int

	mu     sync.Mutex
	kinds  map[string]*outcome
	failed []string
}

type outcome struct{ accepted, refused []time.Duration }

// share is how many of the requests were refused, between 0 and 1.
func (o *outcome) share() float64 {
	return float64(len(o.refused)) / max(1, float64(len(o.accepted)+len(o.refused)))
}

func (o *outcomes) add(kind string, status int, took time.Duration, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	one := o.of(kind)
	switch {
	case err != nil:
		o.failed = append(o.failed, kind+": "+err.Error())
	case status == http.StatusOK:
		one.accepted = append(one.accepted, took)
	case status == http.StatusServiceUnavailable:
		one.refused = append(one.refused, took)
	default:
		o.failed = append(o.failed, fmt.Sprintf("%s: status %d", kind, status))
	}
}

func (o *outcomes) of(kind string) *outcome {
	if o.kinds == nil {
		o.kinds = make(map[string]*outcome)
	}
	if o.kinds[kind] == nil {
		o.kinds[kind] = &outcome{}
	}
	return o.kinds[kind]
}

// rate is how many requests were accepted in a second.
func (o *outcomes) rate() float64 {
	n := 0
	for one := range maps.Values(o.kinds) {
		n += len(one.accepted)
	}
	return float64(n) / o.length.Seconds()
}

func (o *outcomes) String() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%.0f/s accepted, %d not sent", o.rate(), o.unsent)
	for _, kind := range kindsOfLoad {
		one := o.of(kind)
		fmt.Fprintf(&b, "; %s: %d accepted, p50 %v, p99 %v, %d refused, p99 %v", kind, len(one.accepted),
			percentile(one.accepted, 50), percentile(one.accepted, 99), len(one.refused), percentile(one.refused, 99))
	}
	if len(o.failed) > 0 {
		fmt.Fprintf(&b, "; %d failed, such as %s", len(o.failed), o.failed[0])
	}
	return b.String()
}

func percentile(times []time.Duration, percent int) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return sorted[(len(sorted)-1)*percent/100].Round(100 * time.Microsecond)
}
