package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"
)

// patience is how long a server may take to answer.
const patience = 30 * time.Second

// request is one HTTP request. A body is JSON.
type request struct {
	method, path string
	body         []byte
}

func get(path string) request { return request{method: "GET", path: path} }

// worker is one connection's share of the work.
type worker struct {
	next func() request
	// answered, if not nil, is called with the body of each answer, which is
	// valid until it returns.
	answered func(body []byte)
	// mayWait accepts that the server has too much to do at the moment.
	mayWait bool
	token   string // sent with each request, unless it is empty
}

// send sends the requests of each worker over its own connection, and waits for
// all answers. Every answer must be 200, or 503 if the worker may wait.
//
// Without a rate the loop is closed: the next request follows the answer, and
// the load is the most that the server can handle. With a rate it is open:
// requests are sent at that rate whatever the answers do, by any free
// connection, and latency is measured from when a request was due, so that a
// stall of the server shows in all requests that had to wait.
func send(ctx context.Context, addr string, workers []worker, length time.Duration, perSecond float64) (sample, error) {
	clients := make([]*fasthttp.HostClient, len(workers)) // opened before the clock starts
	for i := range clients {
		client, err := connect(addr)
		if err != nil {
			return nil, err
		}
		defer client.CloseIdleConnections()
		clients[i] = client
	}
	var (
		all, running = errgroup.WithContext(ctx)
		latencies    = make([][]time.Duration, len(workers))
		worked       = make([]time.Duration, len(workers))
		taken        atomic.Int64 // number of requests of an open loop
		start        = time.Now()
	)
	for i, w := range workers {
		all.Go(func() error {
			next := func() (due time.Time, more bool, err error) {
				due = time.Now()
				return due, due.Sub(start) < length || len(latencies[i]) == 0, nil
			}
			if perSecond > 0 {
				alarm, err := newAlarm()
				if err != nil {
					return err
				}
				defer alarm.Close()
				next = func() (due time.Time, more bool, err error) {
					due = start.Add(time.Duration(float64(taken.Add(1)-1) / perSecond * float64(time.Second)))
					if due.Sub(start) >= length {
						return due, false, nil
					}
					return due, true, alarm.wait(due)
				}
			}
			var (
				request  fasthttp.Request
				response fasthttp.Response
			)
			for running.Err() == nil {
				due, more, err := next()
				if err != nil {
					return err
				}
				if !more {
					break
				}
				w.next().render(&request)
				if w.token != "" {
					request.Header.Set("Authorization", "Bearer "+w.token)
				}
				if err := clients[i].Do(&request, &response); err != nil {
					return fmt.Errorf("%s %s: %w", request.Header.Method(), request.URI().Path(), err)
				}
				latencies[i] = append(latencies[i], time.Since(due))
				if w.mayWait && response.StatusCode() == http.StatusServiceUnavailable {
					continue
				}
				if response.StatusCode() != http.StatusOK {
					return fmt.Errorf("%s %s answered %d: %.300s", request.Header.Method(), request.URI().Path(), response.StatusCode(), response.Body())
				}
				if w.answered != nil {
					w.answered(response.Body())
				}
			}
			worked[i] = time.Since(start)
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return nil, err
	}
	return summary(slices.Concat(latencies...), mean(worked))
}

func (r request) render(to *fasthttp.Request) {
	to.Reset()
	to.Header.SetMethod(r.method)
	to.SetRequestURI(r.path)
	to.Header.SetHost("bench")
	if r.body != nil {
		to.Header.SetContentType("application/json")
		to.SetBodyRaw(r.body)
	}
}

// connect returns a client with one connection, which must last.
func connect(addr string) (*fasthttp.HostClient, error) {
	conn, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return nil, err
	}
	var dialed atomic.Bool
	return &fasthttp.HostClient{
		Addr: addr, MaxConns: 1, MaxIdemponentCallAttempts: 1, MaxIdleConnDuration: time.Hour,
		ReadTimeout: patience, WriteTimeout: patience, ReadBufferSize: 16 << 10, WriteBufferSize: 8 << 10,
		NoDefaultUserAgentHeader: true, DisablePathNormalizing: true,
		Dial: func(string) (net.Conn, error) {
			if dialed.Swap(true) {
				return nil, fmt.Errorf("the server closed the connection")
			}
			return conn, nil
		},
	}, nil
}

// summary computes the rate and the quantiles of operations that took this long
// together.
func summary(latencies []time.Duration, elapsed time.Duration) (sample, error) {
	if len(latencies) == 0 {
		return nil, fmt.Errorf("nothing was done within %v", elapsed)
	}
	slices.Sort(latencies)
	quantile := func(q float64) float64 {
		return latencies[int(q*float64(len(latencies)-1))].Seconds()
	}
	return sample{
		rate: float64(len(latencies)) / elapsed.Seconds(),
		p50:  quantile(0.5), p99: quantile(0.99), p999: quantile(0.999),
	}, nil
}

// mean returns the mean of durations, by which operations are divided:
// connections that ended early were idle while the slowest one finished.
func mean(all []time.Duration) time.Duration {
	var sum time.Duration
	for _, one := range all {
		sum += one
	}
	return sum / time.Duration(len(all))
}
