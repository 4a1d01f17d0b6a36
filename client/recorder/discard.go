package recorder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"oda/internal/files"
)

// discardedName is the folder of a spool that keeps what was discarded.
const discardedName = ".discarded"

// IsSession reports whether a folder is a session of a spool.
func IsSession(dir string) bool {
	_, _, ok := splitName(filepath.Base(filepath.Clean(dir)))
	_, err := os.Lstat(dir)
	return ok && err == nil
}

// OpenAside opens the file of a session with the records that were put aside:
// refused.log or damaged.log.
func OpenAside(dir, name string) (*os.File, error) {
	s, err := lookInto(dir)
	if err != nil {
		return nil, err
	}
	defer s.release()
	return s.in.open(name, os.O_RDONLY)
}

// Discard takes a session out of its spool for good: nobody sends it any more. It is
// kept, with all that is in it, in the folder .discarded of the spool; Discard returns
// where. It fails if a running process works on the session.
func Discard(dir string) (kept string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("discard the session %s: %w", dir, err)
		}
	}()
	s, err := lookInto(dir)
	if err != nil {
		return "", err
	}
	defer s.release()
	if err := s.take(); errors.Is(err, files.ErrLocked) {
		return "", errors.New("a running process works on it")
	} else if err != nil {
		return "", err
	}
	if err := s.spool.root.Mkdir(discardedName, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	aside, err := s.spool.folder(discardedName)
	if err != nil {
		return "", err
	}
	defer aside.close()
	name := filepath.Base(s.dir)
	to := name
	for n := 2; aside.exists(to); n++ { // it was discarded before, and put back
		to = fmt.Sprintf("%s-%d", name, n)
	}
	if err := s.spool.root.Rename(name, filepath.Join(discardedName, to)); err != nil {
		return "", err
	}
	return aside.at(to), errors.Join(aside.sync(), s.spool.sync())
}
