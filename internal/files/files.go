// Package files adds to the standard library what files shared between
// processes need: a lock that ends with its process, the atomic replacement
// of a file, and reading one that only its owner may write.
package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// ErrLocked means that a running process holds the lock.
var ErrLocked = errors.New("a running process holds the lock")

// ReadOwn reads a file of secrets. It fails if others than its owner can write it: they
// could put their own there.
func ReadOwn(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().IsRegular() && info.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("others than its owner can write %s and so put their own into it; change that with: chmod go-w %s", path, path)
	}
	return io.ReadAll(f)
}

// lockTries bounds how often a lock is tried while its holder removes the file, or
// others look at it.
const lockTries = 100

// Lock opens a file, creating it if necessary, and locks it, or returns
// ErrLocked. The lock ends when the file is closed or the process ends.
func Lock(path string, mode os.FileMode) (*os.File, error) {
	for range lockTries {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, mode)
		if errors.Is(err, syscall.ELOOP) {
			return nil, fmt.Errorf("%s is a symbolic link; remove it", path)
		}
		if err != nil {
			return nil, err
		}
		err = Hold(f)
		if err == nil && isNamed(f, path) {
			return f, nil
		}
		_ = f.Close()
		if err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("lock %s: it keeps being removed", path)
}

// Hold locks an open file, or returns ErrLocked. Who only looks, with IsLocked, has a
// share in the lock for a moment and is no holder, so Hold tries again.
func Hold(f *os.File) error {
	fd := int(f.Fd())
	for range lockTries {
		err := syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return nil
		}
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = syscall.Flock(fd, syscall.LOCK_SH|syscall.LOCK_NB) // a holder does not share
		}
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return ErrLocked
		}
		if err == nil {
			err = syscall.Flock(fd, syscall.LOCK_UN)
		}
		if err != nil {
			return fmt.Errorf("lock %s: %w", f.Name(), err)
		}
		time.Sleep(time.Millisecond)
	}
	return ErrLocked
}

// isNamed reports whether an open file still has its name. Its holder may have
// removed it after it was opened here and before it was locked.
func isNamed(f *os.File, path string) bool {
	locked, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(locked, named)
}

// IsLocked reports whether a process holds a lock.
func IsLocked(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return IsHeld(f)
}

// IsHeld reports whether a process holds the lock of an open file. It leaves a share in
// the lock, until the file is closed.
func IsHeld(f *os.File) bool {
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// Anew makes a file. What was left under its name is removed, never written to: it
// may be a link to another file, or belong to somebody else. A folder stays.
func Anew(path string, mode os.FileMode) (*os.File, error) {
	if err := syscall.Unlink(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, &fs.PathError{Op: "remove", Path: path, Err: err}
	}
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, mode)
}

// Replace atomically replaces the content of a file. It does not sync: a power
// cut may leave the old content, or an empty file.
func Replace(path string, content []byte, mode os.FileMode) error {
	return replace(path, content, mode, func(*os.File) error { return nil })
}

// ReplaceSynced is like Replace, but the new content is on disk when it
// returns. A power cut leaves the old or the new content.
func ReplaceSynced(path string, content []byte, mode os.FileMode) error {
	if err := replace(path, content, mode, (*os.File).Sync); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// Rewrite is like ReplaceSynced for a file that exists: the new one has the same owner,
// group and mode, whatever the umask. If it cannot have them, nothing changes.
func Rewrite(path string, content []byte) error {
	old, err := os.Stat(path)
	if err != nil {
		return err
	}
	err = replace(path, content, 0o600, func(f *os.File) error {
		if err := belongAs(f, old); err != nil {
			return fmt.Errorf("nothing was changed, because the new file cannot have the owner, group and mode of the old one; "+
				"try as its owner or as root: %w", err)
		}
		return f.Sync()
	})
	if err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// belongAs gives an open file the owner, the group and the mode of another. The mode
// comes last, so that no other group may read it meanwhile.
func belongAs(f *os.File, other os.FileInfo) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	has, want := info.Sys().(*syscall.Stat_t), other.Sys().(*syscall.Stat_t)
	if has.Uid != want.Uid || has.Gid != want.Gid {
		if err := f.Chown(int(want.Uid), int(want.Gid)); err != nil {
			return err
		}
	}
	return f.Chmod(other.Mode().Perm())
}

func replace(path string, content []byte, mode os.FileMode, finish func(*os.File) error) error {
	fresh := path + ".tmp"
	f, err := Anew(fresh, mode)
	if err != nil {
		return err
	}
	if _, err = f.Write(content); err == nil {
		err = finish(f)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		_ = os.Remove(fresh)
	}
	return err
}

// SyncDir makes the names in a directory durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
