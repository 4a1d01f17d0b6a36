package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"oda"
)

// Usage implements oda.Engine.
func (s *Store) Usage(context.Context) (oda.Usage, error) {
	var u oda.Usage
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(s.file.path + suffix)
		switch {
		case err == nil:
			u.Bytes += info.Size()
		case suffix == "" || !errors.Is(err, fs.ErrNotExist):
			return oda.Usage{}, storageError(err)
		}
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(s.file.path), &disk); err != nil {
		return oda.Usage{}, storageError(err)
	}
	free := int64(disk.Bavail) * int64(disk.Bsize)
	u.Free = &free
	return u, nil
}
