package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"oda/internal/files"

	"zombiezen.com/go/sqlite"
)

// file is the archive's file, which only this process may use. SQLite derives the
// name of the write-ahead log from the name of the file, so all processes must use
// the same name. Therefore symbolic links are followed, and a file with several
// hard links is refused.
type file struct {
	path string        // absolute, without symbolic links
	side *os.File      // locked; its name is the path with .lock appended
	self *os.File      // the file itself, locked; nil until it is known to be an archive
	used []fs.FileInfo // what SQLite has open: the file and its write-ahead log
}

// claim makes this process the only one that uses the file. The locks end with the
// process, however it ends.
func claim(path string) (*file, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, reason(err)
	}
	path, err := resolve(path)
	if err != nil {
		return nil, err
	}
	f := &file{path: path}
	if f.side, err = lockSide(path + ".lock"); err != nil {
		return nil, err
	}
	return f, nil
}

// resolve follows symbolic links, even if the file does not exist yet.
func resolve(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	target, err := filepath.EvalSymlinks(path)
	if err == nil {
		return target, nil
	}
	if _, err := os.Stat(path); errors.Is(err, syscall.ELOOP) {
		return "", errors.New("it is a symbolic link that leads back to itself; name the file itself with --db")
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", reason(err)
	}
	if link, err := os.Readlink(path); err == nil {
		return "", fmt.Errorf("it is a symbolic link to %s, which does not exist; "+
			"mount the disk that it is on, or name the file itself with --db", link)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	return filepath.Join(dir, filepath.Base(path)), reason(err)
}

// errHeld says that another process uses the file.
var errHeld = errors.New("another oda has it open")

// lockSide locks the side file and writes into it which process holds the lock.
func lockSide(path string) (*os.File, error) {
	f, err := files.Lock(path, 0o640)
	if errors.Is(err, files.ErrLocked) {
		holder, _ := os.ReadFile(path) // the message works without it
		return nil, fmt.Errorf("%w (process %.32s); stop that one, or name another file with --db", errHeld, bytes.TrimSpace(holder))
	}
	if err != nil {
		return nil, reason(err)
	}
	if err = f.Truncate(0); err == nil {
		_, err = fmt.Fprintf(f, "%d\n", os.Getpid())
	}
	if err != nil {
		_ = os.Remove(path)
		_ = f.Close()
		return nil, reason(err)
	}
	return f, nil
}

// check returns an error if the file cannot be an archive. If there is no file, it
// makes a new archive.
func (f *file) check() error {
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := f.create(); err != nil {
			return err
		}
		info, err = os.Stat(f.path)
	}
	switch {
	case err != nil:
		return reason(err)
	case info.IsDir():
		return fmt.Errorf("it is a directory; name a file in it with --db, such as %s", filepath.Join(f.path, "archive.db"))
	case !info.Mode().IsRegular():
		return errors.New("it is not a regular file; name another file with --db")
	case info.Size() == 0:
		return errEmpty
	}
	if links := info.Sys().(*syscall.Stat_t).Nlink; links > 1 {
		return fmt.Errorf("the file has %d names (hard links), and under each of them SQLite would look for another write-ahead log; "+
			"keep the name that %s-wal belongs to, and remove the others", links, filepath.Base(f.path))
	}
	if err := f.lockSelf(); err != nil {
		return err
	}
	if err := checkLog(f.path); err != nil {
		return err
	}
	return rewriteLog(f.path + "-wal")
}

var errEmpty = errors.New("the file is empty, and oda never leaves one empty; " +
	"if it was an archive, restore it from a backup, else remove it and start again")

// lockSelf locks the file itself, since it may be mounted in several places with a
// side file in each. SQLite has locks of its own on the file, so this lock is on a
// byte that SQLite does not use. It belongs to the descriptor, not to the process;
// only Linux has such locks. The descriptor must not be closed before SQLite's,
// because that would remove SQLite's locks.
func (f *file) lockSelf() error {
	self, err := os.OpenFile(f.path, os.O_RDWR, 0)
	if err != nil {
		return reason(err)
	}
	f.self = self
	if runtime.GOOS != "linux" {
		return nil
	}
	err = syscall.FcntlFlock(self.Fd(), setLock, &syscall.Flock_t{Type: syscall.F_WRLCK, Start: lockStart, Len: 1})
	switch {
	case errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%w through another mount; stop that one, or name another file with --db", errHeld)
	case err != nil:
		return fmt.Errorf("cannot lock it: %w", err)
	}
	return nil
}

// setLock is F_OFD_SETLK, and lockStart the byte that is locked.
const setLock, lockStart = 37, 1 << 62

// note remembers which files SQLite has opened.
func (f *file) note() error {
	for _, suffix := range []string{"", "-wal"} {
		info, err := os.Stat(f.path + suffix)
		if err != nil {
			return reason(err)
		}
		f.used = append(f.used, info)
	}
	return nil
}

// errMoved says that a start would find other files than those that SQLite has open.
var errMoved = errors.New("the file of the archive, or its write-ahead log, was moved, removed or replaced")

// inPlace returns an error if the files that SQLite has open do not have their names any
// more. What is written to them is gone when the process ends.
func (f *file) inPlace() error {
	for i, suffix := range []string{"", "-wal"} {
		info, err := os.Stat(f.path + suffix)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(info, f.used[i]) {
			return errMoved
		}
	}
	return nil
}

// rewriteLog brings a write-ahead log that a crash left to disk, as it reads now.
// After a failed sync, the operating system may hold parts of the log in memory
// that never reached the disk and that no later sync would write. SQLite would
// treat them as committed, and later commits would build on them.
func rewriteLog(path string) error {
	log, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return reason(err)
	}
	return reason(errors.Join(rewrite(log), log.Close()))
}

// rewrite writes a file over itself and syncs it.
func rewrite(f interface {
	io.ReaderAt
	io.WriterAt
	Sync() error
},
) error {
	part := make([]byte, 1<<20)
	for at := int64(0); ; {
		n, err := f.ReadAt(part, at)
		if _, err := f.WriteAt(part[:n], at); err != nil {
			return err
		}
		if at += int64(n); errors.Is(err, io.EOF) {
			return f.Sync()
		}
		if err != nil {
			return err
		}
	}
}

// create makes a new archive. It makes it under another name and renames it when it
// is complete. So a start that is cut off leaves nothing that looks like an archive
// or hides that one was lost.
func (f *file) create() error {
	if info, err := os.Stat(f.path + "-wal"); err == nil && info.Size() > 0 {
		return fmt.Errorf("the file does not exist, but its write-ahead log %s does; "+
			"restore the file it belongs to, or move the log away", info.Name())
	}
	fresh := f.path + ".new"
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(fresh + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return reason(err)
		}
	}
	made, err := files.Anew(fresh, 0o640) // SQLite would let everybody read it
	if err != nil {
		return reason(err)
	}
	if err := made.Close(); err != nil {
		return reason(err)
	}
	c, err := openConn(fresh, sqlite.OpenReadWrite)
	if err != nil {
		return err
	}
	err = c.script(fmt.Sprintf("BEGIN IMMEDIATE; PRAGMA application_id = %d; %s; COMMIT", applicationID, migrations))
	if err = errors.Join(err, c.close()); err != nil { // closing checkpoints the write-ahead log, and syncs
		return err
	}
	if err := os.Rename(fresh, f.path); err != nil {
		return reason(err)
	}
	return reason(files.SyncDir(filepath.Dir(f.path)))
}

// release unlocks the file. SQLite must have closed it before.
func (f *file) release() {
	if f.self != nil {
		if runtime.GOOS == "linux" {
			// A process that is being started shares the descriptor for a moment, and the
			// lock with it, unless it is given up here.
			_ = syscall.FcntlFlock(f.self.Fd(), setLock, &syscall.Flock_t{Type: syscall.F_UNLCK, Start: lockStart, Len: 1})
		}
		_ = f.self.Close()
	}
	if f.side != nil {
		_ = os.Remove(f.side.Name()) // nobody else uses it while it is locked
		_ = f.side.Close()
	}
}

// recognise returns an error if the file is not an archive.
func recognise(c *conn) error {
	id, err := c.number("PRAGMA application_id")
	if err == nil && id != applicationID {
		err = errors.New("the file is a SQLite database, but not an archive of oda; name another file with --db")
	}
	if err != nil {
		return err
	}
	// SQLite would turn the text of a document into the file's encoding.
	return c.query("PRAGMA encoding", func(stmt *sqlite.Stmt) error {
		if name := stmt.ColumnText(0); name != "UTF-8" {
			return fmt.Errorf("its texts are in %s, so oda has not made it; restore it from a backup that oda made", name)
		}
		return nil
	})
}

// openError turns an error code of SQLite into a message for the operator.
func openError(err error) error {
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultNotADB:
		return errors.New("the file is not an archive of oda; name another file with --db")
	case sqlite.ResultCorrupt:
		return fmt.Errorf("the file is damaged (%v); keep a copy of it and of its -wal file, and restore it from a backup", sqlite.ErrCode(err))
	case sqlite.ResultCantOpen, sqlite.ResultPerm, sqlite.ResultReadOnly:
		return errors.New("the file cannot be opened for writing; check its owner and permissions")
	case sqlite.ResultFull:
		return errors.New("its disk is full; make room on it")
	case sqlite.ResultIOErr:
		return fmt.Errorf("its disk fails to read or write (%v); see the log of the operating system", sqlite.ErrCode(err))
	}
	return err
}

// reason shortens a file error to what it is about.
func reason(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("cannot write to %s: %w", p.Path, p.Err)
	}
	return err
}
