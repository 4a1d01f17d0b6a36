package serving

import (
	"context"
	"net"
	"time"
)

// Crowd says what a listener does when many connect.
type Crowd struct {
	// PerAddress is how many connections one source may have.
	PerAddress int
	// Source names who has opened a connection. Connections of the same source are
	// counted together. Without a name they are not.
	Source func(client net.Addr) string
	// Spare is how many more connections there may be when no place becomes free. They
	// are for requests that must be answered in any case; see IsSpare.
	Spare int
}

// Expect says what to do when many connect. It is called before the first Accept.
func (l *Listener) Expect(crowd Crowd) { l.crowd = crowd }

// IsSpare reports whether a request came on a spare connection. The handler answers it only
// if it must, and closes the connection.
func IsSpare(ctx context.Context) bool {
	c, ok := ctx.Value(connKey{}).(conn)
	return ok && c.slot.spare
}

// source names who has opened a connection, empty if that does not matter.
func (l *Listener) source(tcp net.Conn) string {
	if l.crowd.Source == nil {
		return ""
	}
	return l.crowd.Source(tcp.RemoteAddr())
}

// welcome reports whether a source may have one more connection. If it has as many as it
// may, another one of its own is given up.
func (l *Listener) welcome(source string) bool {
	if source == "" {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bySource[source] < l.crowd.PerAddress {
		return true
	}
	return l.giveUp(func(s *slot) bool { return s.source == source })
}

// giveUp closes the connection that is needed least: the oldest that has not sent a
// request, else the one that has been idle for longest. net/http notices and gives up its
// slot. Otherwise clients that connect and ask for nothing would shut out all others. It
// reports whether there was one. The mutex is held.
func (l *Listener) giveUp(of func(*slot) bool) bool {
	var least *slot
	asked, since := true, int64(0)
	latest := int64(time.Since(epoch) - idleLeast)
	for s := range l.all {
		at := s.idle.Load()
		if at == 0 || at > latest || !of(s) {
			continue
		}
		if a := s.asked.Load(); least == nil || asked && !a || asked == a && at < since {
			least, asked, since = s, a, at
		}
	}
	if least == nil || !least.idle.CompareAndSwap(since, 0) {
		return false
	}
	_ = least.conn.Close() // nothing is sent
	return true
}

// enterSpare takes a spare place, if there is one.
func (l *Listener) enterSpare() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spares >= l.crowd.Spare {
		l.giveUp(func(s *slot) bool { return s.spare })
		return false
	}
	l.spares++
	return true
}
