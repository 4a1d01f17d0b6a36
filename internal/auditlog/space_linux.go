package auditlog

import (
	"errors"
	"os"
	"syscall"
)

// keepSize is FALLOC_FL_KEEP_SIZE: the space lies behind the end of the file, and
// what is appended goes into it.
const keepSize = 1

// allocate sets space aside in a file. Not all file systems can.
func allocate(file *os.File, offset, length int64) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		for {
			failed = syscall.Fallocate(int(fd), keepSize, offset, length)
			if !errors.Is(failed, syscall.EINTR) {
				return
			}
		}
	})
	if errors.Is(failed, errors.ErrUnsupported) {
		failed = nil
	}
	return errors.Join(err, failed)
}
