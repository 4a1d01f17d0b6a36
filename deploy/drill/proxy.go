package main

import (
	"context"
	"io"
	"net"
	"sync"
	"time"
)

// proxyBuffer is what a cut connection holds back in each direction.
const proxyBuffer = 64 << 10

// proxy is a piece of network between two programs that can be cut. A cut is
// silent, as that of a cable: connections stay open and new ones are taken, but
// nothing goes through, not even the end of a connection. When it is healed,
// everything that was held back goes on its way.
type proxy struct {
	listener net.Listener
	target   string
	ctx      context.Context

	mu   sync.Mutex
	open chan struct{} // closed while bytes may pass
}

// newProxy starts a proxy on a free port of 127.0.0.1. It ends with the
// context.
func newProxy(ctx context.Context, target string) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: listener, target: target, ctx: ctx, open: make(chan struct{})}
	close(p.open)
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	go p.accept()
	return p, nil
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

// cut stops everything, or lets it flow again.
func (p *proxy) cut(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.open:
		if on {
			p.open = make(chan struct{})
		}
	default:
		if !on {
			close(p.open)
		}
	}
}

// pass waits while the proxy is cut. It is false when the proxy has ended.
func (p *proxy) pass() bool {
	p.mu.Lock()
	open := p.open
	p.mu.Unlock()
	select {
	case <-open:
		return p.ctx.Err() == nil
	case <-p.ctx.Done():
		return false
	}
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.link(client.(*net.TCPConn))
	}
}

// link joins a client to the target until both have ended.
func (p *proxy) link(client *net.TCPConn) {
	defer client.Close()
	if !p.pass() {
		return
	}
	dialer := net.Dialer{Timeout: 5 * time.Second}
	conn, err := dialer.DialContext(p.ctx, "tcp", p.target)
	if err != nil {
		_ = client.SetLinger(0) // the client sees a refusal, not an end
		return
	}
	server := conn.(*net.TCPConn)
	defer server.Close()
	stop := context.AfterFunc(p.ctx, func() { _, _ = client.Close(), server.Close() })
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { p.pump(server, client) })
	both.Go(func() { p.pump(client, server) })
	both.Wait()
}

// pump moves bytes one way, and then the end of the connection. Where one side
// breaks, the other one hears of it, too.
func (p *proxy) pump(to, from *net.TCPConn) {
	buffer := make([]byte, proxyBuffer)
	for {
		n, err := from.Read(buffer)
		if !p.pass() {
			return
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				_ = from.Close()
				return
			}
		}
		if err == io.EOF {
			_ = to.CloseWrite()
			return
		}
		if err != nil {
			_ = to.SetLinger(0)
			_ = to.Close()
			return
		}
	}
}
