package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// The load: recorders share ExecutionBlocks, and two writers, one through each
// server, contend for each SBDefinition, which two readers watch.
const (
	recorders = 8
	blocks    = 4
	chains    = 3

	recorderPace = 20 * time.Millisecond
	writerPace   = 50 * time.Millisecond
	retryPause   = 250 * time.Millisecond

	// A script at the telescope does not wait long. This is less than an
	// isolated leader takes to step down, so requests are given up, and
	// retried, while it still answers.
	attemptTime = 3 * time.Second
	patience    = 90 * time.Second // for one operation, before it is given up
)

// load is the users of the archive.
type load struct {
	servers [serverCount]string
	client  *http.Client
	tally   *tally
	blocks  [blocks]string
	running sync.WaitGroup
	stop    context.CancelFunc // no new operations
	cancel  context.CancelFunc // no more waiting for the running ones
}

// answer is the answer to an attempt; its status is 0 if there was none.
type answer struct {
	status int
	body   []byte
}

// startLoad creates the entities of the load, and starts it.
func startLoad(ctx context.Context, servers [serverCount]string, t *tally) (*load, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: 64, MaxConnsPerHost: 64}
	l := &load{servers: servers, tally: t, client: &http.Client{Transport: transport, Timeout: attemptTime}}
	for i := range l.blocks {
		a := l.send(ctx, 0, http.MethodPost, "/ebs/create", fmt.Sprintf("drill-block-%d", i), nil)
		var block struct {
			ID string `json:"eb_id"`
		}
		if err := json.Unmarshal(a.body, &block); err != nil || a.status != http.StatusOK {
			return nil, fmt.Errorf("create an ExecutionBlock: status %d: %s", a.status, a.body)
		}
		l.blocks[i] = block.ID
	}
	for i := range chains {
		mark := t.writes(chainID(i)).Begin(chainMaker(i), 1)
		body := fmt.Appendf(nil, `{"mark": %q}`, mark)
		if a := l.send(ctx, 0, http.MethodPut, "/sbds/"+chainID(i), "", body); a.status != http.StatusOK {
			return nil, fmt.Errorf("store an SBDefinition: status %d: %s", a.status, a.body)
		}
		t.writes(chainID(i)).Acknowledge(mark, 1)
	}
	ctx, l.cancel = context.WithCancel(ctx)
	beginning, stop := context.WithCancel(ctx)
	l.stop = stop
	for i := range recorders {
		l.running.Go(func() { l.record(ctx, beginning, i) })
	}
	for i := range chains {
		for server := range serverCount {
			l.running.Go(func() { l.write(ctx, beginning, i, server) })
			l.running.Go(func() { l.watch(beginning, i, server) })
		}
	}
	return l, nil
}

// end lets running operations finish, in bounded time.
func (l *load) end(most time.Duration) {
	l.stop()
	timer := time.AfterFunc(most, l.cancel)
	defer timer.Stop()
	l.running.Wait()
	l.cancel()
	l.tally.end()
	l.client.CloseIdleConnections()
}

// send makes one attempt.
func (l *load) send(ctx context.Context, server int, method, path, key string, body []byte) answer {
	request, err := http.NewRequestWithContext(ctx, method, l.servers[server]+"/api/v1"+path, bytes.NewReader(body))
	if err != nil {
		return answer{}
	}
	if len(body) > 0 {
		request.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	response, err := l.client.Do(request)
	if err != nil {
		return answer{}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}
	}
	return answer{response.StatusCode, text}
}

// attempt makes one attempt of a write, and counts it.
func (l *load) attempt(ctx context.Context, server int, way path, method, path, key string, body []byte) answer {
	sent := time.Now()
	a := l.send(ctx, server, method, path, key, body)
	switch {
	case a.status == http.StatusOK:
		l.tally.success(way, sent)
	case a.status == 0:
		l.tally.failed("no answer in time")
	default:
		l.tally.failed(fmt.Sprintf("status %d", a.status))
	}
	return a
}

// pause waits, and returns false if there is no time left.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// record adds records to a block, one after the other. Each has a key and is
// tried on both servers in turn until it is acknowledged. The next one begins
// at the recorder's own server again, so that both are always in use.
func (l *load) record(ctx, beginning context.Context, recorder int) {
	block, server := l.blocks[recorder%blocks], recorder/blocks%serverCount
	for n := 1; beginning.Err() == nil; n++ {
		mark := l.tally.writes(block).Begin(fmt.Sprintf("r%d", recorder), n)
		body := fmt.Appendf(nil, `{"request": %q, "request_args": {"n": %d}, "status": "OK"}`, mark, n)
		end, cancel := context.WithTimeout(ctx, patience)
		l.recordOne(end, server, block, mark, body)
		cancel()
		pause(beginning, recorderPace)
	}
}

// recordOne adds one record.
func (l *load) recordOne(ctx context.Context, server int, block, mark string, body []byte) {
	for {
		a := l.attempt(ctx, server, recording(server), http.MethodPost, "/ebs/"+block+"/request_response", mark, body)
		switch {
		case a.status == http.StatusOK:
			var recorded struct{ Sequence int64 }
			if err := json.Unmarshal(a.body, &recorded); err != nil {
				l.tally.done(unknown)
				return
			}
			l.tally.stored(block, mark, recorded.Sequence)
			return
		case a.status >= 400 && a.status < 500:
			l.tally.done(refused)
			return
		}
		server = (server + 1) % serverCount
		if !pause(ctx, retryPause) {
			l.tally.done(unknown)
			return
		}
	}
}
