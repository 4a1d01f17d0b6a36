package serving

import (
	"context"
	"syscall"
)

// mostSmall bounds the small answers that are under way on one connection of HTTP/2.
const mostSmall = 256 << 10

// AddSmall counts the bytes of a small answer on its connection. When the answer has been
// sent, it is called with the negative number. It returns false, and counts nothing, if
// the connection has too many already: HTTP/2 has many answers under way at once.
func AddSmall(ctx context.Context, bytes int64) bool {
	c, ok := ctx.Value(connKey{}).(conn)
	if !ok || c.slot.small.Add(bytes) <= mostSmall || bytes < 0 {
		return true
	}
	c.slot.small.Add(-bytes)
	return false
}

// Raw returns the connection of a request as the system knows it, or nil. Other requests
// of HTTP/2 may share it.
func Raw(ctx context.Context) syscall.RawConn {
	c, _ := ctx.Value(connKey{}).(conn)
	if c.slot == nil {
		return nil
	}
	tcp, ok := c.slot.conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}
