package postgres

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// silence is how long a server that does not answer is waited for once another
// has said that it takes no writes.
const silence = 300 * time.Millisecond

// hosts knows which of several servers takes writes. The driver asks them one
// after the other, so one that is silent would hold up every new connection
// until its time is over, also when another has taken its role long since. So
// all are asked at once, and who takes writes is remembered until a connection
// fails.
type hosts struct {
	mu     sync.Mutex
	known  *server
	search *search
}

// server is one of the servers of a DSN: the ways to connect to it, with TLS and
// without.
type server struct {
	address string
	ways    []*pgconn.FallbackConfig
}

// search is on its way to find the server.
type search struct {
	done  chan struct{}
	found *server // holds once it is done
	err   error
}

// serversOf gives the servers of a configuration in their order.
func serversOf(c *pgconn.Config) []*server {
	var servers []*server
	byAddress := make(map[string]*server)
	first := &pgconn.FallbackConfig{Host: c.Host, Port: c.Port, TLSConfig: c.TLSConfig}
	for _, way := range append([]*pgconn.FallbackConfig{first}, c.Fallbacks...) {
		address := net.JoinHostPort(way.Host, strconv.Itoa(int(way.Port)))
		if byAddress[address] == nil {
			byAddress[address] = &server{address: address}
			servers = append(servers, byAddress[address])
		}
		byAddress[address].ways = append(byAddress[address].ways, way)
	}
	return servers
}

// lead makes a configuration lead to one server only.
func (s *server) lead(c *pgconn.Config) {
	c.Host, c.Port, c.TLSConfig = s.ways[0].Host, s.ways[0].Port, s.ways[0].TLSConfig
	c.Fallbacks = s.ways[1:]
}

// prepare makes a configuration lead to the server that takes writes. It leaves
// alone a configuration with one server, and one that takes any server.
func (h *hosts) prepare(ctx context.Context, c *pgx.ConnConfig) error {
	servers := serversOf(&c.Config)
	if len(servers) == 1 || c.ValidateConnect == nil {
		return nil
	}
	found, err := h.find(ctx, c, servers)
	if err != nil {
		return err
	}
	found.lead(&c.Config)
	return nil
}

// forget is told that the server that is known may not be the one any more.
func (h *hosts) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known = nil
}

// find gives the server that takes writes. Those who ask at the same time share
// one search.
func (h *hosts) find(ctx context.Context, c *pgx.ConnConfig, servers []*server) (*server, error) {
	h.mu.Lock()
	if known := h.known; known != nil {
		h.mu.Unlock()
		return known, nil
	}
	s := h.search
	if s == nil {
		s = &search{done: make(chan struct{})}
		h.search = s
		go h.run(context.WithoutCancel(ctx), s, c.Config.Copy(), servers)
	}
	h.mu.Unlock()
	select {
	case <-s.done:
		return s.found, s.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (h *hosts) run(ctx context.Context, s *search, c *pgconn.Config, servers []*server) {
	ctx, cancel := context.WithTimeout(ctx, c.ConnectTimeout)
	defer cancel()
	s.found, s.err = ask(ctx, c, servers)
	h.mu.Lock()
	h.known, h.search = s.found, nil
	h.mu.Unlock()
	close(s.done)
}

// ask asks all servers at once and gives the first that takes writes.
func ask(ctx context.Context, c *pgconn.Config, servers []*server) (*server, error) {
	type answer struct {
		from *server
		err  error
	}
	answers := make(chan answer, len(servers))
	for _, s := range servers {
		go func() {
			only := c.Copy()
			s.lead(only)
			conn, err := pgconn.ConnectConfig(ctx, only)
			answers <- answer{s, err}
			if err == nil {
				_ = conn.Close(ctx) // it has served its purpose
			}
		}()
	}
	var failed []error
	var enough <-chan time.Time
	for range servers {
		select {
		case a := <-answers:
			if a.err == nil {
				return a.from, nil
			}
			failed = append(failed, a.err)
			if enough == nil {
				enough = time.After(silence)
			}
		case <-enough:
			return nil, errors.Join(append(failed, errors.New("the others do not answer"))...)
		}
	}
	return nil, errors.Join(failed...)
}
