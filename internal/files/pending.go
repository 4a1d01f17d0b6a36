package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Pending is a file that appears under its name when it is complete and on disk. Until
// then it has the name with .part appended, and is locked, so that two processes do
// not write the same one. What an interrupted process left is begun again.
type Pending struct {
	*os.File
	path    string
	replace bool
	dirty   int64      // bytes since the disk was last told to take what was written
	synced  chan error // of a sync that goes on while more is written; nil if there is none
}

// syncEvery is how many bytes are written between two syncs. The disk works while more
// comes, so little is left to wait for at the end.
const syncEvery = 64 << 20

// Why a file cannot be begun.
var (
	ErrExists   = errors.New("the file exists") // and must not be replaced
	ErrNotFile  = errors.New("not an ordinary file")
	ErrInTheWay = errors.New("another file is in the way") // under the name that it has until it is complete
)

// Begin begins a file. If one exists that may not be replaced, the error is
// ErrExists. An empty one, as mktemp makes it, may always be. Begins is how the content
// begins: an unfinished file with such content is begun again, and any other is in the way.
// Only the user may read it.
func Begin(path, begins string, replace bool) (*Pending, error) {
	const mode = 0o600
	f := &Pending{path: path, replace: replace}
	if err := f.mayAppear(); err != nil {
		return nil, err
	}
	if err := left(path+".part", begins); err != nil {
		return nil, err
	}
	left, err := Lock(path+".part", mode)
	if errors.Is(err, ErrLocked) {
		return nil, fmt.Errorf("%s.part: %w", path, err)
	}
	if err != nil {
		return nil, err
	}
	defer left.Close() // when its successor is locked
	if f.File, err = Anew(path+".part", mode); err != nil {
		return nil, err
	}
	if err = Hold(f.File); err == nil && !isNamed(f.File, f.Name()) {
		err = ErrLocked // another process has found it before it was locked, and begun again
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// left returns ErrInTheWay if there is a file that is not the beginning of a fresh one.
func left(path, begins string) error {
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return nil // locking it tells
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, int64(len(begins))))
	if err != nil || strings.HasPrefix(begins, string(content)) {
		return err
	}
	return fmt.Errorf("%s: %w", path, ErrInTheWay)
}

// mayAppear returns an error if the file is in the way of another one.
func (f *Pending) mayAppear() error {
	info, err := os.Lstat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s: %w", f.path, ErrNotFile)
	case !f.replace && info.Size() > 0:
		return fmt.Errorf("%s: %w", f.path, ErrExists)
	}
	return nil
}

// Write adds to the file.
func (f *Pending) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	if f.dirty += int64(n); err != nil || f.dirty < syncEvery {
		return n, err
	}
	if err := f.awaitSync(); err != nil {
		return n, err
	}
	f.dirty, f.synced = 0, make(chan error, 1)
	go func(synced chan<- error) { synced <- f.Sync() }(f.synced)
	return n, nil
}

// awaitSync waits for the sync that goes on, if there is one.
func (f *Pending) awaitSync() error {
	if f.synced == nil {
		return nil
	}
	err := <-f.synced
	f.synced = nil
	return err
}

// Commit syncs the file and gives it its name. If that fails, nothing is left.
func (f *Pending) Commit() error {
	err := f.mayAppear()
	if err == nil {
		err = f.awaitSync()
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(f.Name(), f.path)
	}
	if err != nil {
		f.Discard()
		return err
	}
	return errors.Join(f.Close(), SyncDir(filepath.Dir(f.path)))
}

// Discard removes what was written.
func (f *Pending) Discard() {
	_ = f.awaitSync()       // its outcome does not matter any more
	_ = os.Remove(f.Name()) // before it is unlocked
	_ = f.Close()
}
