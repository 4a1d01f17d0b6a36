package serving

import (
	"context"
	"net"
)

// besideMost bounds the small answers that are under way on one connection of HTTP/2.
const besideMost = 256 << 10

// Beside counts the bytes of a small answer on its connection, or no longer if there are
// fewer than 0. It returns false, and counts nothing, if the connection has too many
// already: HTTP/2 has many answers under way at once.
func Beside(ctx context.Context, bytes int64) bool {
	c, ok := ctx.Value(connKey{}).(conn)
	if !ok || c.slot.beside.Add(bytes) <= besideMost || bytes < 0 {
		return true
	}
	c.slot.beside.Add(-bytes)
	return false
}

// Taken returns how many bytes of all that was sent the client of a request has received,
// as far as the system knows, and whether there are others on their way.
func Taken(ctx context.Context) (bytes uint64, waiting bool) {
	c, ok := ctx.Value(connKey{}).(conn)
	if !ok {
		return 0, false
	}
	tcp, ok := c.slot.conn.(*net.TCPConn)
	if !ok {
		return 0, false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0, false
	}
	return received(raw)
}
