package serving

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// When all slots are taken, a new connection takes that of another one on which there was
// no request for this long, and looks for one this often.
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

	mu   sync.Mutex
	over int                // connections that have come back when all slots were taken
	all  map[*slot]struct{} // of all connections
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
	conn, err := l.inner.Accept()
	if err != nil {
		return nil, nil, err
	}
	if !l.enter() {
		_ = conn.Close() // the client is told nothing, as those that wait behind it
		return nil, nil, net.ErrClosed
	}
	s := &slot{listener: l, conn: conn, counted: true}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all[s] = struct{}{}
	return conn, s, nil
}

// enter waits for a slot. It returns false if the listener is closed meanwhile.
func (l *Listener) enter() bool {
	select {
	case l.slots <- struct{}{}:
		return true
	default:
	}
	look := time.NewTicker(idleLook)
	defer look.Stop()
	for {
		l.endIdle()
		select {
		case l.slots <- struct{}{}:
			return true
		case <-look.C:
		case <-l.closed:
			return false
		}
	}
}

// endIdle closes the connection that has been idle for longest. net/http notices and gives
// up its slot. Otherwise clients that keep connections and ask for nothing would shut out
// all others.
func (l *Listener) endIdle() {
	var longest *slot
	since := int64(time.Since(epoch) - idleLeast)
	l.mu.Lock()
	for s := range l.all {
		if at := s.idle.Load(); at > 0 && at <= since {
			longest, since = s, at
		}
	}
	l.mu.Unlock()
	if longest != nil && longest.idle.CompareAndSwap(since, 0) {
		_ = longest.conn.Close() // nothing is sent
	}
}

// epoch is before every connection.
var epoch = time.Now()

// comeBack counts a connection again, also if that makes too many.
func (l *Listener) comeBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.slots <- struct{}{}:
	default:
		l.over++
	}
}

// leave stops counting a connection. While there are too many, its slot is not for a new
// one.
func (l *Listener) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over > 0 {
		l.over--
	} else {
		<-l.slots
	}
}

func (l *Listener) forget(s *slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
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

// slot is the place of one connection among those of its listener.
type slot struct {
	listener *Listener
	conn     net.Conn     // TCP
	idle     atomic.Int64 // when the last request ended, in nanoseconds since the epoch; 0 during a request and before the first

	beside atomic.Int64 // bytes of small answers under way, of HTTP/2

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
func (s *slot) rest(idle bool) {
	since := int64(0)
	if idle {
		since = int64(time.Since(epoch))
	}
	s.idle.Store(since)
}

// leave gives up the place. The mutex is held.
func (s *slot) leave() {
	if s.counted {
		s.counted = false
		s.listener.leave()
	}
}

// Aside stops counting the connection of a request that waits for something and
// meanwhile asks for nothing. The caller bounds how many such requests there are, and
// calls back, which counts the connection again, unless another request waits on it.
// If others have taken all places meanwhile, new connections wait until there are
// fewer.
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
		s.listener.comeBack()
	}
}

// slottedConn is the connection under TLS. It gives up its place when it is closed.
type slottedConn struct {
	net.Conn
	slot   *slot
	failed error // of the first write that failed
}

// Write sends nothing after a write that failed, because its deadline has passed or
// the client is gone. crypto/tls counts the records that it makes, also those that were
// not sent or only in part. So the client could not read the alert with which it says
// goodbye, and would take the data for changed. And a client that reads nothing holds
// up no goodbye.
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
