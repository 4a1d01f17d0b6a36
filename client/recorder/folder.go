package recorder

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"oda/internal/files"
)

// folder is an open folder of a spool: the spool itself, or a session in it. It is
// of the effective user, nobody else can write to it, and so is every file that is
// opened in it: what others could have put there is neither sent nor written to.
// Names are looked up in the folder that was opened, whatever becomes of its path,
// and no link is followed.
type folder struct {
	root *os.Root
	path string // for people
}

// openFolder opens the folder of a spool.
func openFolder(path string) (*folder, error) {
	path = filepath.Clean(path)
	return enter(path, func() (fs.FileInfo, error) { return os.Lstat(path) },
		func() (*os.Root, error) { return os.OpenRoot(path + "/.") }) // what is no folder fails here, a pipe too
}

// folder opens a folder in another.
func (f *folder) folder(name string) (*folder, error) {
	return enter(f.at(name), func() (fs.FileInfo, error) { return f.root.Lstat(name) },
		func() (*os.Root, error) { return f.root.OpenRoot(name) })
}

// enter looks at a name, opens it, and makes sure that it has opened what it has
// looked at.
func enter(path string, look func() (fs.FileInfo, error), open func() (*os.Root, error)) (*folder, error) {
	named, err := look()
	if err != nil {
		return nil, err
	}
	if err := ours(path, named, fs.ModeDir); err != nil {
		return nil, err
	}
	root, err := open()
	if err != nil {
		return nil, err
	}
	opened, err := root.Stat(".")
	if err == nil {
		err = same(path, named, opened)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &folder{root, path}, nil
}

// at returns the path of a name, for people.
func (f *folder) at(name string) string { return filepath.Join(f.path, name) }

func (f *folder) close() {
	if f != nil {
		_ = f.root.Close() // nothing was written to it
	}
}

// open opens an existing file.
func (f *folder) open(name string, flag int) (*os.File, error) {
	named, err := f.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if err := ours(f.at(name), named, 0); err != nil {
		return nil, err
	}
	file, err := f.root.OpenFile(name, flag, 0)
	if err != nil {
		return nil, err
	}
	opened, err := file.Stat()
	if err == nil {
		err = same(f.at(name), named, opened)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// create makes a file to append to. It fails if there is anything of its name.
func (f *folder) create(name string) (*os.File, error) {
	return f.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_APPEND|os.O_RDWR, 0o600)
}

// extend opens a file to append to, and makes it if there is none.
func (f *folder) extend(name string) (*os.File, error) {
	file, err := f.create(name)
	if errors.Is(err, fs.ErrExist) {
		return f.open(name, os.O_APPEND|os.O_RDWR)
	}
	return file, err
}

// read returns the content of a file.
func (f *folder) read(name string) ([]byte, error) {
	file, err := f.open(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(file)
}

// replace atomically replaces the content of a file, or makes it. With sync it is on
// disk when replace returns; without, a power cut may leave the old content, or an
// empty file.
func (f *folder) replace(name string, content []byte, sync bool) error {
	fresh := name + ".tmp"
	if err := f.root.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := f.create(fresh)
	if err != nil {
		return err
	}
	if _, err = file.Write(content); err == nil && sync {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = f.root.Rename(fresh, name)
	}
	if err != nil {
		_ = f.root.Remove(fresh)
		return err
	}
	if sync {
		return f.sync()
	}
	return nil
}

// sync makes the names in the folder durable.
func (f *folder) sync() error {
	self, err := f.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(self.Sync(), self.Close())
}

// entries lists the folder.
func (f *folder) entries() ([]fs.DirEntry, error) { return fs.ReadDir(f.root.FS(), ".") }

// size returns the size of a file.
func (f *folder) size(name string) (int64, error) {
	info, err := f.root.Lstat(name)
	if err != nil {
		return 0, err
	}
	return info.Size(), ours(f.at(name), info, 0)
}

// exists reports whether there is anything of a name.
func (f *folder) exists(name string) bool {
	_, err := f.root.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}

// holds reports whether a name still leads to an open folder.
func (f *folder) holds(name string, open *folder) bool {
	named, err := f.root.Lstat(name)
	if err != nil {
		return false
	}
	opened, err := open.root.Stat(".")
	return err == nil && os.SameFile(named, opened)
}

// isLocked reports whether a process holds the lock of a session.
func (f *folder) isLocked() bool {
	file, err := f.open(lockName, os.O_RDONLY)
	if err != nil {
		return false
	}
	defer file.Close()
	return files.IsHeld(file)
}

// ours returns an error that says what to do if a file or folder of a spool may be
// somebody else's work. Kind is fs.ModeDir for a folder, and 0 for a file.
func ours(path string, info fs.FileInfo, kind fs.FileMode) error {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("%s is a link, which is not followed in a spool; name the folder that it leads to, or remove it", path)
	case info.Mode().Type() != kind && kind == fs.ModeDir:
		return fmt.Errorf("%s is not a folder; name another one, or move it away", path)
	case info.Mode().Type() != kind:
		return fmt.Errorf("%s is not a file; remove it", path)
	case !owned(info):
		return fmt.Errorf("%s does not belong to the user who runs this program; run it as the owner, or use a spool of your own", path)
	case info.Mode()&0o022 != 0:
		return fmt.Errorf("others may write to %s, so what is in it may be theirs; if it is not, take that right away: chmod go-w %s", path, quoted(path))
	case kind == 0 && info.Sys().(*syscall.Stat_t).Nlink > 1:
		return fmt.Errorf("%s is also another file, by a hard link; replace it by a copy: cp -p %[2]s %[2]s.copy && mv %[2]s.copy %[2]s", path, quoted(path))
	}
	return nil
}

// owned reports whether a file belongs to the effective user.
func owned(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// quoted returns a path as a shell takes it.
func quoted(path string) string {
	if strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-") == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// same returns an error if another file was opened than the one that was looked at.
func same(path string, named, opened fs.FileInfo) error {
	if !os.SameFile(named, opened) {
		return fmt.Errorf("%s was replaced while it was opened; see who can write to the folder that it is in", path)
	}
	return nil
}
