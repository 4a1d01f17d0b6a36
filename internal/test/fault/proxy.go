package fault

import (
	"fmt"
	"net"
	"net/url"
	"sync"
	"time"
)

// Direction is a direction through a Proxy.
type Direction int

// The two directions.
const (
	ToServer Direction = iota
	ToClient
)

// Cut says what a Proxy does when it sees a message.
type Cut int

// The kinds of cut. All but the first reset the connection on both sides.
const (
	// NoCut passes the message on.
	NoCut Cut = iota
	// CutBefore withholds the message from the server.
	CutBefore
	// CutInside sends the server only the first half of the message.
	CutInside
	// CutAnswer sends the server the message, waits until the server has
	// finished and is ready for more, and withholds the whole answer from the
	// client. So a commit happens, and the client does not know.
	CutAnswer
	// CutByServer sends the server the message and the client the answer, up to
	// the point at which the server is ready for more. Instead of that, the
	// client gets the error of a session that an administrator terminates. So a
	// commit happens, and the client gets an error.
	CutByServer
)

// Bounds of a proxy.
const (
	proxyConnections = 1024      // at a time; further ones are refused
	proxyMessage     = 4 << 10   // bytes of a message that a hook sees
	proxyBuffer      = 64 << 10  // per direction of a connection
	proxyMost        = 1<<30 + 4 // no message is longer
	proxyDial        = 5 * time.Second
)

// Proxy stands between clients and a server, and does to their connections what
// networks and machines do. A proxy for PostgreSQL knows where messages begin
// and end, so that a test can choose the moment. It listens on 127.0.0.1 and is
// safe for concurrent use.
type Proxy struct {
	listener net.Listener
	postgres bool
	running  sync.WaitGroup

	mu      sync.Mutex
	changed *sync.Cond // when a field below or the state of a connection changes
	target  string
	links   map[*link]struct{}
	hook    func([]byte) Cut
	left    [2]int // bytes per direction until a cut; negative for no cut
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

// Addr returns the address that the proxy listens on, as host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// DSN changes a DSN, which must be a URL, to lead through the proxy.
func (p *Proxy) DSN(dsn string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		panic(err)
	}
	u.Host = p.Addr()
	return u.String()
}

// SetTarget sends new connections to another server.
func (p *Proxy) SetTarget(target string) { p.set(func() { p.target = target }) }

// Refuse begins or ends refusing new connections with a reset.
func (p *Proxy) Refuse(on bool) { p.set(func() { p.refused = on }) }

// Stall begins or ends a silence like that of a cut cable: connections stay
// open and new ones are accepted, but nothing passes, not even the end of a
// connection. Afterwards everything that was held back passes.
func (p *Proxy) Stall(on bool) { p.set(func() { p.stalled = on }) }

// CutAll resets all current connections.
func (p *Proxy) CutAll() {
	p.set(func() {
		for l := range p.links {
			p.cut(l)
		}
	})
}

// CutAfter lets this many further bytes pass in a direction, over all
// connections together, and then resets the connection that carried the last of
// them. It does so once; a negative number cancels it.
func (p *Proxy) CutAfter(d Direction, bytes int) { p.set(func() { p.left[d] = bytes }) }

// OnClientMessage calls hook for every message of a client, before any of it
// goes to the server. It needs a proxy for PostgreSQL. The hook gets the first
// 4 KiB of the message as on the wire, beginning with its type, and must not
// keep them. It may be called concurrently, and may block, which holds the
// message back; the server has all messages before it. A nil hook removes it.
func (p *Proxy) OnClientMessage(hook func(message []byte) Cut) { p.set(func() { p.hook = hook }) }

// Cuts returns how many connections the proxy has reset so far.
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

// accept accepts connections until the proxy ends.
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
			target := p.target
			p.running.Go(func() { l.run(target) })
		}
		p.mu.Unlock()
	}
}

// cut resets a connection. The caller holds p.mu.
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

// reset closes a connection so that the other side gets an error, not an end of
// file.
func reset(conn *net.TCPConn) {
	_ = conn.SetLinger(0) // fails only if the connection is already closed
	_ = conn.Close()
}
