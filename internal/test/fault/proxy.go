package fault

import (
	"fmt"
	"net"
	"net/url"
	"sync"
	"time"
)

// Direction is a way through a Proxy.
type Direction int

// The two ways.
const (
	ToServer Direction = iota
	ToClient
)

// Cut says what a Proxy does with the connection of a message.
type Cut int

// What can be done. In each case but the first the connection is reset on both
// sides, and nothing more goes through it.
const (
	// NoCut lets the message through.
	NoCut Cut = iota
	// CutBefore keeps the message from the server.
	CutBefore
	// CutInside gives the server the first half of the message.
	CutInside
	// CutAnswer gives the server the message, waits until the server has done
	// what it was asked to and is ready for more, and gives the client nothing
	// of its answer. So a commit is done, and the client does not know.
	CutAnswer
	// CutByServer gives the server the message and the client its answer, until
	// the server is ready for more. Instead of that the client gets the error
	// with which a server ends a session that an administrator terminated. So a
	// commit is done, and the client gets an error.
	CutByServer
)

// Bounds of a proxy.
const (
	proxyConnections = 1024      // at a time; more are refused
	proxyMessage     = 4 << 10   // so much of a message is shown
	proxyBuffer      = 64 << 10  // of each direction of a connection
	proxyMost        = 1<<30 + 4 // no message is longer
	proxyDial        = 5 * time.Second
)

// Proxy stands between clients and a server, and does to their connections what
// networks and machines do. That of a PostgreSQL knows where messages begin and
// end, so that a test can choose the moment. It listens on 127.0.0.1 and is safe
// for concurrent use.
type Proxy struct {
	listener net.Listener
	postgres bool
	running  sync.WaitGroup

	mu      sync.Mutex
	changed *sync.Cond // something below, or the state of a connection
	target  string
	links   map[*link]struct{}
	hook    func([]byte) Cut
	left    [2]int // bytes per direction until a cut; below 0: no cut
	refused bool
	stalled bool
	closed  bool
	cuts    int
}

// NewProxy starts a proxy to the server at target, as host:port. Close ends it.
func NewProxy(target string) (*Proxy, error) { return newProxy(target, false) }

// NewPostgresProxy starts a proxy to a PostgreSQL. Close ends it.
func NewPostgresProxy(target string) (*Proxy, error) { return newProxy(target, true) }

func newProxy(target string, postgres bool) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start a proxy: %w", err)
	}
	p := &Proxy{listener: listener, postgres: postgres, target: target, links: map[*link]struct{}{}, left: [2]int{-1, -1}}
	p.changed = sync.NewCond(&p.mu)
	p.running.Go(p.accept)
	return p, nil
}

// Close ends the proxy and all connections through it.
func (p *Proxy) Close() error {
	p.set(func() { p.closed = true })
	err := p.listener.Close()
	p.CutAll()
	p.running.Wait()
	return err
}

// Addr is where the proxy listens, as host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// DSN leads a client of the server with that DSN, which is a URL, through the
// proxy. It panics if the DSN is no URL.
func (p *Proxy) DSN(dsn string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		panic(err)
	}
	u.Host = p.Addr()
	return u.String()
}

// SetTarget sends connections that are made from now on to another server.
func (p *Proxy) SetTarget(target string) { p.set(func() { p.target = target }) }

// Refuse begins or ends refusing new connections, by a reset.
func (p *Proxy) Refuse(on bool) { p.set(func() { p.refused = on }) }

// Stall begins or ends a silence, as that of a cable that is cut: connections
// stay open and new ones are taken, but nothing goes through, not even the end
// of a connection. Afterwards everything that was held back goes on its way.
func (p *Proxy) Stall(on bool) { p.set(func() { p.stalled = on }) }

// CutAll resets all connections there are.
func (p *Proxy) CutAll() {
	p.set(func() {
		for l := range p.links {
			p.cut(l)
		}
	})
}

// CutAfter lets that many further bytes through in a direction, on all
// connections together, and then resets the connection that they were on. It
// does so once; below 0 cancels it.
func (p *Proxy) CutAfter(d Direction, bytes int) { p.set(func() { p.left[d] = bytes }) }

// OnClientMessage, of a proxy to a PostgreSQL, asks a function about every message of a client, before any
// of it goes to the server. It is given the message as it is on the wire, its
// type first, but no more than 4 KiB of it, which it must not keep. It may be
// called from several goroutines at once. nil ends it.
func (p *Proxy) OnClientMessage(hook func(message []byte) Cut) { p.set(func() { p.hook = hook }) }

// Cuts tells how many connections the proxy has reset so far.
func (p *Proxy) Cuts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cuts
}

// set changes the state.
func (p *Proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	p.changed.Broadcast()
}

// accept takes connections until the proxy ends.
func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		l := &link{p: p, client: client.(*net.TCPConn)}
		p.mu.Lock()
		if p.refused || p.closed || len(p.links) >= proxyConnections {
			reset(l.client)
		} else {
			p.links[l] = struct{}{}
			p.running.Go(func() { l.run(p.target) })
		}
		p.mu.Unlock()
	}
}

// cut resets a connection, with p.mu held.
func (p *Proxy) cut(l *link) {
	if l.ended {
		return
	}
	l.ended = true
	p.cuts++
	reset(l.client)
	if l.server != nil {
		reset(l.server)
	}
}

// reset closes a connection so that the other side gets an error, not an end.
func reset(conn *net.TCPConn) {
	_ = conn.SetLinger(0) // fails only if it is closed already
	_ = conn.Close()
}
