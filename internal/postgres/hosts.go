package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// silence is how long to wait for servers that do not answer, once another has
// answered that it does not accept writes, while requests wait. A request can be sent
// again; an archive that cannot be opened ends the program.
const silence = 300 * time.Millisecond

// hosts knows which of several servers accepts writes. The driver asks them one
// after the other, so a silent server would delay every new connection until its
// time-out, even if another has long taken over its role. So hosts asks all at
// once, and remembers the one that accepts writes until a connection fails.
type hosts struct {
	password string // file with the password; empty if the DSN or the environment has it

	mu     sync.Mutex
	known  *server
	search *search
	opened bool // requests are waiting
}

// passwordFile is the setting of a DSN that names a file with the password.
const passwordFile = "password_file"

// newHosts prepares the connections of a configuration.
func newHosts(config *pgxpool.Config) *hosts {
	h := &hosts{password: config.ConnConfig.RuntimeParams[passwordFile]}
	delete(config.ConnConfig.RuntimeParams, passwordFile)
	config.BeforeConnect = h.prepare
	return h
}

// readPassword reads the password, if a file has it. That is done for every
// connection, so that it can be changed while oda runs.
func (h *hosts) readPassword(c *pgx.ConnConfig) error {
	if h.password == "" {
		return nil
	}
	text, err := os.ReadFile(h.password)
	if err != nil {
		return fmt.Errorf("cannot read the password of the database (password_file in --db): %w", err)
	}
	if c.Password = strings.TrimRight(string(text), "\r\n"); c.Password == "" {
		return fmt.Errorf("the file %s with the password of the database (password_file in --db) is empty", h.password)
	}
	return nil
}

// server is one of the servers of a DSN, with the ways to connect to it: with TLS
// and without.
type server struct {
	address string
	ways    []*pgconn.FallbackConfig
}

// search is a search for the server that accepts writes.
type search struct {
	done  chan struct{}
	found *server // valid once it is done
	err   error
}

// serversOf returns the servers of a configuration, in order.
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

// lead makes a configuration name this server only.
func (s *server) lead(c *pgconn.Config) {
	c.Host, c.Port, c.TLSConfig = s.ways[0].Host, s.ways[0].Port, s.ways[0].TLSConfig
	c.Fallbacks = s.ways[1:]
}

// prepare makes a configuration name the server that accepts writes. It keeps the
// servers of a configuration with one server, or one that accepts any server.
func (h *hosts) prepare(ctx context.Context, c *pgx.ConnConfig) error {
	if err := h.readPassword(c); err != nil {
		return err
	}
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

// forget forgets the server, because it may no longer be the one that accepts
// writes.
func (h *hosts) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known = nil
}

// open says that the archive is open.
func (h *hosts) open() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.opened = true
}

// find returns the server that accepts writes. Calls at the same time share one
// search.
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
		patience := c.ConnectTimeout
		if h.opened {
			patience = silence
		}
		go h.run(context.WithoutCancel(ctx), s, c.Config.Copy(), servers, patience)
	}
	h.mu.Unlock()
	select {
	case <-s.done:
		return s.found, s.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (h *hosts) run(ctx context.Context, s *search, c *pgconn.Config, servers []*server, patience time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, c.ConnectTimeout)
	defer cancel()
	s.found, s.err = ask(ctx, c, servers, patience)
	h.mu.Lock()
	h.known, h.search = s.found, nil
	h.mu.Unlock()
	close(s.done)
}

// ask asks all servers at once and returns the first that accepts writes. Once one has
// answered that it does not, patience is how long to wait for the others.
func ask(ctx context.Context, c *pgconn.Config, servers []*server, patience time.Duration) (*server, error) {
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
				_ = conn.Close(ctx) // it is no longer needed
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
				enough = time.After(patience)
			}
		case <-enough:
			return nil, errors.Join(append(failed, errors.New("the others do not answer"))...)
		}
	}
	return nil, errors.Join(failed...)
}
