// Package files has what the standard library lacks for files that processes
// share and that outlast them: a lock that goes with its process, and replacing
// a file as a whole.
package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// ErrLocked is the error for a file that a running process holds.
var ErrLocked = errors.New("a running process holds it")

// lockTries bounds how often a lock file is opened that its holder removes just
// then.
const lockTries = 100

// Lock opens a file, makes it where there is none, and locks it, or gives
// ErrLocked. Closing the file ends the lock, as does the end of the process.
func Lock(path string, mode os.FileMode) (*os.File, error) {
	for range lockTries {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, mode)
		if err != nil {
			return nil, err
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil && isNamed(f, path) {
			return f, nil
		}
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, ErrLocked
		}
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
	}
	return nil, fmt.Errorf("lock %s: it keeps being removed", path)
}

// isNamed tells whether an open file is the one that has the name. Its holder may
// have removed it between opening it here and locking it.
func isNamed(f *os.File, path string) bool {
	locked, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(locked, named)
}

// IsLocked tells whether a process holds a lock.
func IsLocked(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// Replace gives a file a new content, whole or not at all. It is not synced: a
// power cut may leave the file with the content before, or empty.
func Replace(path string, content []byte, mode os.FileMode) error {
	return replace(path, content, mode, func(*os.File) error { return nil })
}

// ReplaceSynced is Replace whose new content is on disk when it returns. A power
// cut leaves the content before or the new one.
func ReplaceSynced(path string, content []byte, mode os.FileMode) error {
	if err := replace(path, content, mode, (*os.File).Sync); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

func replace(path string, content []byte, mode os.FileMode, sync func(*os.File) error) error {
	fresh := path + ".tmp"
	f, err := os.OpenFile(fresh, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	if _, err = f.Write(content); err == nil {
		err = sync(f)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		_ = os.Remove(fresh)
	}
	return err
}

// SyncDir makes the names in a folder durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
