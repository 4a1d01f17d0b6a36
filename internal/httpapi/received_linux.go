package httpapi

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// received returns how many bytes of all that was sent on a connection the client has
// received, as far as the system knows, and whether there are others on their way.
func received(raw syscall.RawConn) (bytes uint64, waiting bool) {
	_ = raw.Control(func(fd uintptr) { // a connection that is closed moves no more
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			bytes, waiting = info.Bytes_acked, info.Unacked > 0 || info.Notsent_bytes > 0
		}
	})
	return bytes, waiting
}
