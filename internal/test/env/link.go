package env

import (
	"bufio"
	"encoding/binary"
	"net"
	"sync"
)

// link is one connection through a proxy.
type link struct {
	p      *Proxy
	client *net.TCPConn
	server *net.TCPConn // nil: not connected yet

	// With p.mu held:
	ended  bool
	answer Cut // what becomes of the answer: NoCut, CutAnswer or CutByServer
}

// run carries messages until a side ends or the proxy cuts.
func (l *link) run(target string) {
	defer l.end()
	server, err := net.DialTimeout("tcp", target, proxyDial)
	if err != nil {
		l.p.set(func() { l.p.cut(l) })
		return
	}
	alive := false
	l.p.set(func() {
		l.server = server.(*net.TCPConn)
		if alive = !l.ended; !alive {
			reset(l.server)
		}
	})
	if !alive {
		return
	}
	var back sync.WaitGroup
	back.Go(func() {
		defer l.end()
		carry(l, ToClient, l.server, l.client)
	})
	carry(l, ToServer, l.client, l.server)
	l.end()
	back.Wait()
}

// end closes both sides as they would close themselves.
func (l *link) end() {
	l.p.set(func() {
		delete(l.p.links, l)
		if l.ended {
			return
		}
		l.ended = true
		_ = l.client.Close()
		if l.server != nil {
			_ = l.server.Close()
		}
	})
}

// Codes of the requests with which a client may begin instead of a start.
const (
	requestTLS    = 80877103
	requestGSSAPI = 80877104
)

// carry takes messages from one side to the other until that is over.
func carry(l *link, d Direction, from, to *net.TCPConn) {
	in, out := bufio.NewReaderSize(from, proxyBuffer), bufio.NewWriterSize(to, proxyBuffer)
	// A first message of a client has no type before its length.
	header := 5
	if d == ToServer {
		header = 4
	}
	for {
		start, err := peek(in, out, header)
		if err != nil {
			return
		}
		size := int(binary.BigEndian.Uint32(start[header-4:])) + header - 4
		if size < header || size > proxyMost {
			return // not PostgreSQL's protocol
		}
		message, err := peek(in, out, min(size, proxyMessage))
		if err != nil {
			return
		}
		if header == 4 && size == 8 {
			if code := binary.BigEndian.Uint32(message[4:]); code == requestTLS || code == requestGSSAPI {
				// Nothing could be seen in what is encrypted, so there is none.
				if _, err := from.Write([]byte("N")); err != nil {
					return
				}
				_, _ = in.Discard(size) // it is in the buffer
				continue
			}
		}
		header = 5
		if !l.pass(d, in, out, message, size) {
			return
		}
	}
}

// peek gives the next bytes. What was passed on before is not kept back while
// they are awaited.
func peek(in *bufio.Reader, out *bufio.Writer, size int) ([]byte, error) {
	if in.Buffered() < size {
		if err := out.Flush(); err != nil {
			return nil, err
		}
	}
	return in.Peek(size)
}

// pass brings a message to the other side, or as much of it as shall get there.
// It tells whether the connection goes on.
func (l *link) pass(d Direction, in *bufio.Reader, out *bufio.Writer, message []byte, size int) bool {
	last := message[0] == 'Z' // the server is ready for more
	cut := NoCut
	l.p.mu.Lock()
	hook := l.p.hook
	l.p.mu.Unlock()
	if d == ToServer && hook != nil {
		cut = hook(message)
	}
	if d == ToClient {
		switch answer := l.answerCut(); {
		case answer == CutByServer && last:
			l.p.set(func() { l.p.cuts++ })
			_, _ = out.Write(terminated) // fails only if the client is gone
			_ = out.Flush()
			return false
		case answer == CutAnswer && last:
			l.p.set(func() { l.p.cut(l) })
			return false
		case answer == CutAnswer:
			_, err := in.Discard(size)
			return err == nil
		}
	}
	switch cut {
	case CutBefore:
		size = 0
	case CutInside:
		size /= 2
	case CutAnswer, CutByServer:
		l.p.set(func() { l.answer = cut })
	}
	for size > 0 {
		part, err := peek(in, out, min(size, proxyMessage))
		if err != nil {
			return false
		}
		allowed, goesOn := l.allow(d, len(part))
		if _, err := out.Write(part[:allowed]); err != nil {
			return false
		}
		if !goesOn {
			return l.cutAfter(out)
		}
		_, _ = in.Discard(len(part)) // it is in the buffer
		size -= len(part)
	}
	if cut == CutBefore || cut == CutInside {
		return l.cutAfter(out)
	}
	return true
}

func (l *link) answerCut() Cut {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	return l.answer
}

// terminated is the message with which a server ends a session that an
// administrator terminated.
var terminated = func() []byte {
	fields := "SFATAL\x00VFATAL\x00C57P01\x00Mterminating connection due to administrator command\x00\x00"
	return append(binary.BigEndian.AppendUint32([]byte{'E'}, uint32(4+len(fields))), fields...)
}()

// cutAfter resets the connection when what is on the way has left.
func (l *link) cutAfter(out *bufio.Writer) bool {
	_ = out.Flush() // fails only if the other side is gone
	l.p.set(func() { l.p.cut(l) })
	return false
}

// allow waits while bytes are stalled, and tells how many of them may go on,
// and whether more may after them.
func (l *link) allow(d Direction, size int) (allowed int, goesOn bool) {
	p := l.p
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.stalled && !l.ended {
		p.changed.Wait()
	}
	switch left := p.left[d]; {
	case l.ended:
		return 0, false
	case left < 0:
		return size, true
	case left <= size:
		p.left[d] = -1
		return left, false
	}
	p.left[d] -= size
	return size, true
}
