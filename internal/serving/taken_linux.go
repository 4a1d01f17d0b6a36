package serving

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// received asks the system what the other side has acknowledged.
func received(raw syscall.RawConn) (bytes uint64, waiting bool) {
	_ = raw.Control(func(fd uintptr) { // a connection that is closed moves no more
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			bytes, waiting = info.Bytes_acked, info.Unacked > 0 || info.Notsent_bytes > 0
		}
	})
	return bytes, waiting
}
