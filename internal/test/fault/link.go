package fault

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
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

// run carries bytes until both sides have ended or the proxy cuts.
func (l *link) run(target string) {
	defer l.end()
	if !l.wait() {
		return
	}
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
	var both sync.WaitGroup
	both.Go(func() { l.carry(ToClient, l.server, l.client) })
	both.Go(func() { l.carry(ToServer, l.client, l.server) })
	both.Wait()
}

// wait waits while the proxy is stalled, and tells whether the connection goes
// on.
func (l *link) wait() bool {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	for l.p.stalled && !l.ended {
		l.p.changed.Wait()
	}
	return !l.ended
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

// carry brings bytes from one side to the other, and then the end: that of one
// direction only, or a reset where the connection broke.
func (l *link) carry(d Direction, from, to *net.TCPConn) {
	in, out := bufio.NewReaderSize(from, proxyBuffer), bufio.NewWriterSize(to, proxyBuffer)
	var err error
	if l.p.postgres {
		err = l.carryMessages(d, in, out, from)
	} else {
		err = l.carryBytes(d, in, out)
	}
	if err == nil || !l.wait() {
		return // the proxy has seen to it
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		_ = to.CloseWrite() // fails only if it is gone
		return
	}
	reset(to)
	_ = from.Close()
}

// carryBytes brings bytes as they come. It gives why that ended, or nil where
// the proxy ended it.
func (l *link) carryBytes(d Direction, in *bufio.Reader, out *bufio.Writer) error {
	for {
		if _, err := peek(in, out, 1); err != nil {
			return err
		}
		part, _ := in.Peek(in.Buffered()) // they are there
		if goesOn, err := l.pass(d, in, out, part, len(part)); !goesOn {
			return err
		}
	}
}

// Codes of the requests with which a client may begin instead of a start.
const (
	requestTLS    = 80877103
	requestGSSAPI = 80877104
)

var errNotPostgres = errors.New("this is not PostgreSQL's protocol")

// carryMessages is carryBytes for the messages of a PostgreSQL.
func (l *link) carryMessages(d Direction, in *bufio.Reader, out *bufio.Writer, from *net.TCPConn) error {
	// A first message of a client has no type before its length.
	header := 5
	if d == ToServer {
		header = 4
	}
	for {
		start, err := peek(in, out, header)
		if err != nil {
			return err
		}
		size := int(binary.BigEndian.Uint32(start[header-4:])) + header - 4
		if size < header || size > proxyMost {
			return errNotPostgres
		}
		message, err := peek(in, out, min(size, proxyMessage))
		if err != nil {
			return err
		}
		if header == 4 && size == 8 {
			if code := binary.BigEndian.Uint32(message[4:]); code == requestTLS || code == requestGSSAPI {
				// Nothing could be seen in what is encrypted, so there is none.
				if _, err := from.Write([]byte("N")); err != nil {
					return err
				}
				_, _ = in.Discard(size) // it is in the buffer
				continue
			}
		}
		header = 5
		if goesOn, err := l.pass(d, in, out, message, size); !goesOn {
			return err
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
// It tells whether the connection goes on, and the error if it broke.
func (l *link) pass(d Direction, in *bufio.Reader, out *bufio.Writer, message []byte, size int) (goesOn bool, err error) {
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
			l.end()
			return false, nil
		case answer == CutAnswer && last:
			l.p.set(func() { l.p.cut(l) })
			return false, nil
		case answer == CutAnswer:
			_, err := in.Discard(size)
			return err == nil, err
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
			return false, err
		}
		allowed, goesOn := l.allow(d, len(part))
		if _, err := out.Write(part[:allowed]); err != nil {
			return false, err
		}
		if !goesOn {
			l.cutAfter(out)
			return false, nil
		}
		_, _ = in.Discard(len(part)) // it is in the buffer
		size -= len(part)
	}
	if cut == CutBefore || cut == CutInside {
		l.cutAfter(out)
		return false, nil
	}
	return true, nil
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
func (l *link) cutAfter(out *bufio.Writer) {
	_ = out.Flush() // fails only if the other side is gone
	l.p.set(func() { l.p.cut(l) })
}

// allow waits while bytes are stalled, and tells how many of them may go on,
// and whether more may after them.
func (l *link) allow(d Direction, size int) (allowed int, goesOn bool) {
	if !l.wait() {
		return 0, false
	}
	p := l.p
	p.mu.Lock()
	defer p.mu.Unlock()
	switch left := p.left[d]; {
	case left < 0:
		return size, true
	case left <= size:
		p.left[d] = -1
		return left, false
	}
	p.left[d] -= size
	return size, true
}
