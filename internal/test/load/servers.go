package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
)

// servers sends each request to one of the servers, in turn. Like any proxy, it
// tries the next one if a connection is refused, and repeats nothing else.
type servers struct {
	http http.Transport

	mu    sync.Mutex
	hosts []string
	turn  int
	are   chan struct{} // is closed while there are some
}

// use makes these the servers.
func (s *servers) use(hosts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(hosts) > 0 && len(s.hosts) == 0 {
		close(s.are)
	} else if len(hosts) == 0 && len(s.hosts) > 0 {
		s.are = make(chan struct{})
	}
	s.hosts = hosts
}

// next returns the server whose turn it is, and how many there are. It waits until
// there is one.
func (s *servers) next(ctx context.Context) (host string, of int, err error) {
	for {
		s.mu.Lock()
		hosts, are := s.hosts, s.are
		s.turn++
		turn := s.turn
		s.mu.Unlock()
		if len(hosts) > 0 {
			return hosts[turn%len(hosts)], len(hosts), nil
		}
		select {
		case <-are:
		case <-ctx.Done():
			return "", 0, ctx.Err()
		}
	}
}

// RoundTrip implements http.RoundTripper.
func (s *servers) RoundTrip(r *http.Request) (*http.Response, error) {
	for tried := 1; ; tried++ {
		host, of, err := s.next(r.Context())
		if err != nil {
			return nil, err
		}
		url := *r.URL
		url.Host = host
		out := r.WithContext(r.Context())
		out.URL, out.Host = &url, host
		if r.GetBody != nil {
			body, err := r.GetBody()
			if err != nil {
				return nil, fmt.Errorf("send a request again: %w", err)
			}
			out.Body = body
		}
		answer, err := s.http.RoundTrip(out)
		if op, ok := errors.AsType[*net.OpError](err); !ok || op.Op != "dial" || tried >= of {
			return answer, err
		}
	}
}
