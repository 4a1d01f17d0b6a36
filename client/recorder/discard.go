package recorder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"oda/internal/files"
)

// discardedName is the folder of a spool that keeps what was discarded.
const discardedName = ".discarded"

// IsSession reports whether a folder is a session of a spool.
func IsSession(dir string) bool {
	_, _, ok := splitName(filepath.Base(filepath.Clean(dir)))
	return ok && exists(dir, ".")
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
	lock, err := files.Lock(filepath.Join(dir, lockName), 0o600)
	if errors.Is(err, files.ErrLocked) {
		return "", errors.New("a running process works on it")
	}
	if err != nil {
		return "", err
	}
	defer lock.Close()
	spool := filepath.Dir(filepath.Clean(dir))
	aside := filepath.Join(spool, discardedName)
	if err := makeDir(aside); err != nil {
		return "", err
	}
	kept = filepath.Join(aside, filepath.Base(dir))
	for n := 2; exists(aside, filepath.Base(kept)); n++ { // it was discarded before, and put back
		kept = fmt.Sprintf("%s-%d", filepath.Join(aside, filepath.Base(dir)), n)
	}
	if err := os.Rename(dir, kept); err != nil {
		return "", err
	}
	return kept, errors.Join(files.SyncDir(aside), files.SyncDir(spool))
}
