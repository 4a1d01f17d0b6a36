package vfs

import (
	"errors"
	"syscall"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// syncData makes the data of a file durable, and its size, but not its times.
func syncData(_ *libc.TLS, file uintptr, _ int32) int32 {
	for {
		err := syscall.Fdatasync(int(At[lib.TunixFile](file).Fh))
		if err == nil {
			return lib.SQLITE_OK
		}
		if !errors.Is(err, syscall.EINTR) {
			return lib.SQLITE_IOERR_FSYNC
		}
	}
}
