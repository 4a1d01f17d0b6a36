package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"oda"
	"oda/internal/engine"
)

// Usage implements oda.Engine.
func (s *Store) Usage(ctx context.Context) (oda.Usage, error) {
	found, err := s.Storage(ctx)
	if err != nil {
		return oda.Usage{}, err
	}
	return oda.Usage{Bytes: found.Bytes + *found.Log, Free: found.Free}, nil
}

// Storage tells how large the files are, and how much room there is beside them.
func (s *Store) Storage(context.Context) (engine.Storage, error) {
	var sizes [3]int64
	for i, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(s.file.path + suffix)
		switch {
		case err == nil:
			sizes[i] = info.Size()
		case suffix == "" || !errors.Is(err, fs.ErrNotExist):
			return engine.Storage{}, storageError(err)
		}
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(s.file.path), &disk); err != nil {
		return engine.Storage{}, storageError(err)
	}
	free := int64(disk.Bavail) * int64(disk.Bsize)
	log := sizes[1] + sizes[2] // with its index
	return engine.Storage{Bytes: sizes[0], Log: &log, Free: &free}, nil
}

// Stats tells about the work of the engine.
func (s *Store) Stats() engine.Stats {
	found := engine.Stats{
		End:    s.tail.End(),
		Queues: []engine.Level{s.queue.Level("writer")},
		Pools:  []engine.Pool{s.readers.stats("readers"), s.listers.stats("listings")},
		Caches: []engine.Cache{s.cache.stats()},
	}
	s.commits.Tell(&found)
	return found
}
