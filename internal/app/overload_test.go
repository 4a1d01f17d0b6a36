package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oda/internal/test/env"
)

// overloadClients is how many requests are in progress at once, at most. It is less
// than the number of connections that a server accepts.
const overloadClients = 900

// TestOverload sends five times as many requests as the archive can answer. The
// archive answers some of them in time, refuses the others soon, recording last, loses
// nothing, and is well again when it is over. ODA_OVERLOAD says for how long.
func TestOverload(t *testing.T) {
	length := env.Length(t, "ODA_OVERLOAD", 3*time.Second)
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
		must(t, "PUT", fmt.Sprintf("%s/sbds/sbd-%d", p.URL, i), searched)
	}
	must(t, "PUT", p.URL+"/ebs/eb-1", `{}`)
	before := resident(t, p.PID())
	l := &storm{url: p.URL, transport: &http.Transport{MaxIdleConnsPerHost: overloadClients, MaxConnsPerHost: overloadClients}}
	defer l.transport.CloseIdleConnections()

	capacity := l.closed(16, length/3)
	t.Logf("16 clients: %s", capacity)
	over := l.open(5*capacity.rate(), length)
	t.Logf("five times as many: %s", over)

	// A test run on a busy machine only sees that the times are bounded at all.
	bound := 3 * time.Second
	if length >= time.Minute {
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
	if n := len(recorded.refused); n*20 > len(recorded.accepted)+n {
		t.Errorf("of %d records, %d were refused", len(recorded.accepted)+n, n)
	}
	if grown := resident(t, p.PID()) - before; grown > 256<<20 {
		t.Errorf("the archive takes %.0f MiB more than before", mebibytes(grown))
	}

	l.recovered(t, capacity)
	var block struct {
		Records []json.RawMessage `json:"request_responses"`
	}
	if err := json.Unmarshal([]byte(must(t, "GET", p.URL+"/ebs/eb-1", "")), &block); err != nil {
		t.Fatal(err)
	}
	if n := int64(len(block.Records)); n < l.recorded.Load() {
		t.Errorf("%d records were acknowledged, but the block has %d", l.recorded.Load(), n)
	}
	if code := p.Stop(); code != 0 {
		t.Errorf("the archive ended with %d:\n%s", code, p.Log())
	}
}

// searched is a document that takes a while to be searched.
var searched = `{"list":[` + strings.Repeat(`{"a":[1,2,3]},`, 50) + `0]}`

var kindsOfLoad = []string{"get", "search", "put", "record"}

// storm sends requests of all kinds.
type storm struct {
	url       string
	transport *http.Transport
	sent      atomic.Int64
	recorded  atomic.Int64
}

// send sends the next request. Of ten, one is a search.
func (l *storm) send() (kind string, status int, took time.Duration, err error) {
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
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, l.url+path, strings.NewReader(body))
	if err != nil {
		return kind, 0, 0, err
	}
	began := time.Now()
	response, err := l.transport.RoundTrip(request)
	if err != nil {
		return kind, 0, 0, err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return kind, 0, 0, err
	}
	if kind == "record" && response.StatusCode == http.StatusOK {
		l.recorded.Add(1)
	}
	if response.StatusCode == http.StatusServiceUnavailable && response.Header.Get("Retry-After") == "" {
		return kind, 0, 0, fmt.Errorf("a 503 has no Retry-After")
	}
	return kind, response.StatusCode, time.Since(began), nil
}

// closed lets so many clients send one request after the other.
func (l *storm) closed(clients int, length time.Duration) *outcomes {
	o := &outcomes{length: length}
	var group sync.WaitGroup
	end := time.Now().Add(length)
	for range clients {
		group.Go(func() {
			for time.Now().Before(end) {
				o.add(l.send())
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
	clients := make(chan struct{}, overloadClients)
	began, sent := time.Now(), 0.0
	for tick := time.NewTicker(5 * time.Millisecond); time.Since(began) < length; <-tick.C {
		for ; sent < perSecond*time.Since(began).Seconds(); sent++ {
			select {
			case clients <- struct{}{}:
				group.Go(func() {
					o.add(l.send())
					<-clients
				})
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
