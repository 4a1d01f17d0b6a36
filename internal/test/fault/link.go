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
	server *net.TCPConn // nil until connected

	// Protected by p.mu:
	ended  bool
	answer Cut // what to do with the answer: NoCut, CutAnswer or CutByServer
}

// run passes bytes on until both sides have ended or the proxy cuts.
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

// wait waits while the proxy is stalled, and reports whether the connection
// continues.
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

// carry passes bytes from one side to the other, and then the end: the end of
// one direction, or a reset if the connection broke.
func (l *link) carry(d Direction, from, to *net.TCPConn) {
	in, out := bufio.NewReaderSize(from, proxyBuffer), bufio.NewWriterSize(to, proxyBuffer)
	var err error
	if l.p.postgres {
		err = l.carryMessages(d, in, out, from)
	} else {
		err = l.carryBytes(d, in, out)
	}
	if err == nil || !l.wait() {
		return // the proxy has handled it
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		_ = to.CloseWrite() // fails only if the connection is gone
		return
	}
	reset(to)
	_ = from.Close()
}

// carryBytes passes bytes on as they arrive. It returns why that ended, or nil
// if the proxy ended it.
func (l *link) carryBytes(d Direction, in *bufio.Reader, out *bufio.Writer) error {
	for {
		if _, err := peek(in, out, 1); err != nil {
			return err
		}
		part, _ := in.Peek(in.Buffered()) // they are buffered
		if goesOn, err := l.pass(d, in, out, part, len(part)); !goesOn {
			return err
		}
	}
}

// Codes of the requests that a client may send before its startup message.
const (
	requestTLS    = 80877103
	requestGSSAPI = 80877104
)

var errNotPostgres = errors.New("this is not PostgreSQL's protocol")

// carryMessages is carryBytes for PostgreSQL messages.
func (l *link) carryMessages(d Direction, in *bufio.Reader, out *bufio.Writer, from *net.TCPConn) error {
	// The first message of a client has no type before its length.
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
				// Encrypted messages could not be inspected, so encryption is
				// refused.
				if _, err := from.Write([]byte("N")); err != nil {
					return err
				}
				_, _ = in.Discard(size) // it is buffered
				continue
			}
		}
		header = 5
		if goesOn, err := l.pass(d, in, out, message, size); !goesOn {
			return err
		}
	}
}

// peek returns the next bytes. Before it waits for them, it flushes what was
// passed on.
func peek(in *bufio.Reader, out *bufio.Writer, size int) ([]byte, error) {
	if in.Buffered() < size {
		if err := out.Flush(); err != nil {
			return nil, err
		}
	}
	return in.Peek(size)
}

// pass passes a message on, or the part that is to arrive. It reports whether
// the connection continues, and returns the error if it broke.
func (l *link) pass(d Direction, in *bufio.Reader, out *bufio.Writer, message []byte, size int) (goesOn bool, err error) {
	last := message[0] == 'Z' // the server is ready for more
	cut := NoCut
	l.p.mu.Lock()
	hook := l.p.hook
	l.p.mu.Unlock()
	if d == ToServer && hook != nil {
		// The hook may hold the message back.
		if err := out.Flush(); err != nil {
			return false, err
		}
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
		_, _ = in.Discard(len(part)) // it is buffered
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
// administrator terminates.
var terminated = func() []byte {
	fields := "SFATAL\x00VFATAL\x00C57P01\x00Mterminating connection due to administrator command\x00\x00"
	return append(binary.BigEndian.AppendUint32([]byte{'E'}, uint32(4+len(fields))), fields...)
}()

// cutAfter resets the connection after flushing what was passed on.
func (l *link) cutAfter(out *bufio.Writer) {
	_ = out.Flush() // fails only if the other side is gone
	l.p.set(func() { l.p.cut(l) })
}

// allow waits while the proxy is stalled. It returns how many of the bytes may
// pass, and whether more may follow.
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
