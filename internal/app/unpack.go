package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"oda"
	"oda/internal/files"
	"oda/internal/moving"
)

// A temporary archive is in a folder of its own. The process that uses it holds the lock
// of a file in it.
const (
	unpackedFolder = "oda-export-"
	unpackedLock   = "lock"
)

// Unpack makes a temporary archive of an export that has documents of at most maxDocument
// bytes, or not much more, and returns its database. Done removes it.
func Unpack(ctx context.Context, export string, maxDocument int64, log *slog.Logger) (database string, done func() error, err error) {
	if err := CheckExport(export); err != nil {
		return "", nil, err
	}
	removeUnpacked(log)
	dir, err := os.MkdirTemp("", unpackedFolder+"*")
	if err != nil {
		return "", nil, err
	}
	remove := func() error { return os.RemoveAll(dir) }
	defer func() {
		if err != nil {
			err = errors.Join(err, remove())
		}
	}()
	// The file gets its name once it is locked, so that nobody finds it unlocked.
	lock, err := files.Lock(filepath.Join(dir, "unlocked"), 0o600)
	if err == nil {
		err = os.Rename(lock.Name(), filepath.Join(dir, unpackedLock))
	}
	if err != nil {
		return "", nil, err
	}
	database = "sqlite:" + filepath.Join(dir, "archive.db")
	var aside int64
	err = loaded(ctx, database, log, func(into moving.Loader) (err error) {
		aside, err = moving.Unpack(ctx, export, maxDocument, into)
		return err
	})
	if err != nil {
		if refused, ok := errors.AsType[*oda.Error](err); ok && refused.Unwrap() != nil {
			err = refused.Unwrap() // it is about the disk of this archive, which nobody has named
		}
		if _, damaged := errors.AsType[*moving.Damage](err); !damaged && ctx.Err() == nil {
			err = fmt.Errorf("%s cannot be unpacked in %s: %w; make room there, or name another folder with TMPDIR", export, os.TempDir(), err)
		}
		return "", nil, errors.Join(err, lock.Close())
	}
	if aside > 0 {
		return "", nil, errors.Join(fmt.Errorf("%s: %d of its lines cannot be read; make the export again, or use another copy", export, aside), lock.Close())
	}
	return database, func() error { return errors.Join(remove(), lock.Close()) }, nil
}

// CheckExport returns an error if a file does not begin as an export does.
func CheckExport(path string) error {
	isExport, err := moving.IsExport(path)
	if err == nil && !isExport {
		err = fmt.Errorf("%s is not an export of oda, or its beginning is damaged", path)
	}
	return err
}

// removeUnpacked removes the temporary archives of this user that processes have left
// that were killed.
func removeUnpacked(log *slog.Logger) {
	entries, err := os.ReadDir(os.TempDir())
	if err != nil {
		return // whoever makes a folder there says why that is not possible
	}
	for _, entry := range entries {
		if !entry.IsDir() || !strings.HasPrefix(entry.Name(), unpackedFolder) {
			continue
		}
		info, err := entry.Info()
		if err != nil || int(info.Sys().(*syscall.Stat_t).Uid) != os.Geteuid() {
			continue
		}
		dir := filepath.Join(os.TempDir(), entry.Name())
		lock := filepath.Join(dir, unpackedLock)
		if _, err := os.Lstat(lock); err != nil || files.IsLocked(lock) {
			continue
		}
		if err := os.RemoveAll(dir); err != nil {
			log.Warn("a temporary archive of a process that was killed cannot be removed", "folder", dir, "error", err)
			continue
		}
		log.Info("removed the temporary archive of a process that was killed", "folder", dir)
	}
}
