package serving

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// When all slots are taken, a new connection takes the slot of one that has had no request
// for idleLeast, and looks for such a one every idleLook. If it finds none within idleLeast,
// it and the next ones take spare places.
const (
	idleLeast = time.Second
	idleLook  = 100 * time.Millisecond
)

// Listener is a listener with a slot for each connection.
type Listener struct {
	inner  net.Listener
	slots  chan struct{}
	once   sync.Once
	closed chan struct{}
	crowd  Crowd
	stuck  bool // the last connection found no place; only Accept uses it

	mu       sync.Mutex
	over     int                // connections that have come back when all slots were taken
	all      map[*slot]struct{} // of all connections
	bySource map[string]int     // those that count, by their sources
	spares   int                // spare places that are taken
}

// Accept waits for a connection and for a slot.
func (l *Listener) Accept() (net.Conn, error) {
	conn, s, err := l.accept()
	if err != nil {
		return nil, err
	}
	return &http1Conn{Conn: conn, slot: s}, nil
}

func (l *Listener) accept() (net.Conn, *slot, error) {
	for {
		conn, err := l.inner.Accept()
		if err != nil {
			return nil, nil, err
		}
		s := &slot{listener: l, conn: conn, source: l.source(conn)}
		if !l.welcome(s.source) {
			_ = conn.Close()
			continue
		}
		if s.spare, err = l.enter(); err != nil {
			_ = conn.Close() // the client is told nothing, nor are those that wait after it
			return nil, nil, err
		}
		s.idle.Store(int64(time.Since(epoch)))
		l.mu.Lock()
		l.all[s] = struct{}{}
		if s.counted = !s.spare; s.counted {
			l.count(s, 1)
		}
		l.mu.Unlock()
		return conn, s, nil
	}
}

// enter waits for a slot, or takes a spare place if that takes too long. It returns an
// error if the listener is closed meanwhile.
func (l *Listener) enter() (spare bool, err error) {
	select {
	case l.slots <- struct{}{}:
		l.stuck = false
		return false, nil
	default:
	}
	look := time.NewTicker(idleLook)
	defer look.Stop()
	for began := time.Now(); ; {
		l.endIdle()
		if l.stuck = l.stuck || time.Since(began) > idleLeast; l.stuck && l.enterSpare() {
			return true, nil
		}
		select {
		case l.slots <- struct{}{}:
			return false, nil
		case <-look.C:
		case <-l.closed:
			return false, net.ErrClosed
		}
	}
}

// endIdle gives up the connection that is needed least, whoever has it.
func (l *Listener) endIdle() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.giveUp(func(s *slot) bool { return !s.spare })
}

// count counts a connection for its source. The mutex is held.
func (l *Listener) count(s *slot, n int) {
	if s.source == "" {
		return
	}
	if l.bySource[s.source] += n; l.bySource[s.source] == 0 {
		delete(l.bySource, s.source)
	}
}

// epoch is before every connection.
var epoch = time.Now()

// comeBack counts a connection again, even if there are then too many.
func (l *Listener) comeBack(s *slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count(s, 1)
	select {
	case l.slots <- struct{}{}:
	default:
		l.over++
	}
}

// leave stops counting a connection. While there are too many, no new one gets its slot.
func (l *Listener) leave(s *slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count(s, -1)
	if l.over > 0 {
		l.over--
	} else {
		<-l.slots
	}
}

func (l *Listener) forget(s *slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.all[s]; known && s.spare {
		l.spares--
	}
	delete(l.all, s)
}

// Addr returns the address that the listener listens on.
func (l *Listener) Addr() net.Addr { return l.inner.Addr() }

// Level returns how many connections there are, and how many there may be.
func (l *Listener) Level() (connections, most int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.slots) + l.over, cap(l.slots)
}

// Close ends the listener, and an Accept that waits for a slot.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.inner.Close()
}

// slot is the place of one connection of a listener.
type slot struct {
	listener *Listener
	conn     net.Conn     // TCP
	source   string       // who has opened it, empty if that does not matter
	spare    bool         // it has a spare place
	asked    atomic.Bool  // there was a request
	idle     atomic.Int64 // when the last request ended, or the connection began, in nanoseconds since the epoch; 0 during a request

	small atomic.Int64 // bytes of small answers under way, of HTTP/2

	mu      sync.Mutex
	counted bool // it takes a place
	aside   int  // requests that wait aside
	closed  bool
}

// close gives up the place for ever.
func (s *slot) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.leave()
	s.listener.forget(s)
}

// rest notes whether the connection is idle.
func (s *slot) rest(state http.ConnState) {
	switch state {
	case http.StateNew:
	case http.StateIdle:
		s.idle.Store(int64(time.Since(epoch)))
	default:
		s.asked.Store(true)
		s.idle.Store(0)
	}
}

// leave gives up the place. The mutex is held.
func (s *slot) leave() {
	if s.counted {
		s.counted = false
		s.listener.leave(s)
	}
}

// Aside stops counting the connection of a request that only waits. The caller bounds how
// many requests wait so. It calls back when the wait is over: then the connection counts
// again, unless another request waits on it. If others have taken all places meanwhile,
// new connections wait until there are fewer.
func Aside(ctx context.Context) (back func()) {
	c, ok := ctx.Value(connKey{}).(conn)
	if !ok {
		return func() {}
	}
	s := c.slot
	s.mu.Lock()
	defer s.mu.Unlock()
	s.aside++
	s.leave()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.aside--; s.aside > 0 || s.closed || s.counted {
			return
		}
		s.counted = true
		s.listener.comeBack(s)
	}
}

// slottedConn is the connection under TLS. It gives up its place when it is closed.
type slottedConn struct {
	net.Conn
	slot   *slot
	failed error // of the first write that failed
}

// Write sends nothing once a write has failed, because its deadline has passed or the
// client is gone. crypto/tls also counts the records that were not sent, or only in part.
// So the client could not read its closing alert, and would think that the data was
// changed. And a client that reads nothing cannot delay the end.
func (c *slottedConn) Write(p []byte) (int, error) {
	if c.failed != nil {
		return 0, c.failed
	}
	n, err := c.Conn.Write(p)
	c.failed = err
	return n, err
}

func (c *slottedConn) Close() error {
	defer c.slot.close()
	return c.Conn.Close()
}

// connKey is the key of the conn in the context of a request.
type connKey struct{}

// conn is what is known about the connection of a request.
type conn struct {
	slot  *slot
	http1 *http1Conn // nil for HTTP/2
}

// known returns what is known about a connection of a Listener.
func known(c net.Conn) (conn, bool) {
	switch c := c.(type) {
	case *http1Conn:
		return conn{c.slot, c}, true
	case *secureConn:
		return conn{c.slot, c.http1Conn}, true
	case *tls.Conn:
		if under, ok := c.NetConn().(*slottedConn); ok {
			return conn{slot: under.slot}, true
		}
	}
	return conn{}, false
}
