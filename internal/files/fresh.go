package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Fresh is a file that appears under its name when it is complete and on disk. Until
// then it has the name with .part appended, and is locked, so that two processes do
// not write the same one. What an interrupted process left is begun anew.
type Fresh struct {
	*os.File
	path    string
	replace bool
}

// ErrExists means that there is a file that must not be replaced.
var ErrExists = errors.New("the file exists")

// CreateFresh begins a file. If it exists and may not be replaced, the error is
// ErrExists.
func CreateFresh(path string, mode os.FileMode, replace bool) (*Fresh, error) {
	f := &Fresh{path: path, replace: replace}
	if err := f.mayAppear(); err != nil {
		return nil, err
	}
	part, err := Lock(path+".part", mode)
	if errors.Is(err, ErrLocked) {
		return nil, fmt.Errorf("%s.part: %w", path, err)
	}
	if err != nil {
		return nil, err
	}
	f.File = part
	// What was left may have had another mode.
	if err := errors.Join(part.Chmod(mode), part.Truncate(0)); err != nil {
		f.Discard()
		return nil, err
	}
	return f, nil
}

// mayAppear returns an error if the file is in the way of another one.
func (f *Fresh) mayAppear() error {
	info, err := os.Lstat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !f.replace || !info.Mode().IsRegular():
		return fmt.Errorf("%s: %w", f.path, ErrExists)
	}
	return nil
}

// Commit syncs the file and gives it its name. If that fails, nothing is left.
func (f *Fresh) Commit() error {
	err := f.mayAppear()
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
func (f *Fresh) Discard() {
	_ = os.Remove(f.Name()) // before it is unlocked
	_ = f.Close()
}
