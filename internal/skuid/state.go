package skuid

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"oda/internal/files"
)

// reserveAhead is how many milliseconds are reserved beyond the one needed. The
// file is written at most this often, and after a kill the generator's time
// starts at most this far ahead of the clock.
const reserveAhead = 2000

// The state file has one line, readable by a person.
const (
	stateLine   = "identifiers reserved until "
	stateLayout = "2006-01-02T15:04:05.000Z"
	stateBound  = 256 // limit for the bytes of the file
)

// State is a file that says up to which millisecond a generator may have used
// identifiers. The file is always ahead: it is on disk before the first
// identifier of newly reserved time is returned. A generator that starts with
// it begins after that time, whatever the clock says. So a clock that was once
// wrongly in the future moves the generator's time there for good; identifiers
// stay unique.
//
// A side file, with .lock appended to the name, is locked while the state is
// open. (The file itself cannot be, since it is replaced at every write.) The
// lock ends with the process; the side file stays.
type State struct {
	path  string
	lock  *os.File
	until int64 // the last reserved millisecond, -1 for none
}

// OpenState opens the state file at path. A missing file is a fresh start. It
// fails if another process has the file open, or if the content was not written
// by a State.
func OpenState(path string) (*State, error) {
	// Follow a link here, since a rename would replace it.
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	lock, err := files.Lock(path+".lock", 0o644)
	if errors.Is(err, files.ErrLocked) {
		return nil, fmt.Errorf("the state file %s is in use by another process: give each identifier service its own file", path)
	}
	if err != nil {
		return nil, fmt.Errorf("locking the state file: %w", err)
	}
	until, err := readState(path)
	if err != nil {
		lock.Close()
		return nil, err
	}
	return &State{path: path, lock: lock, until: until}, nil
}

// cover makes sure that the millisecond at is reserved on disk.
func (s *State) cover(at int64) error {
	if at <= s.until {
		return nil
	}
	return s.write(min(at+reserveAhead, lastMillisecond))
}

// close returns the reserved time after the last millisecond used, so that the
// next start need not skip it, and releases the file.
func (s *State) close(last int64) error {
	var err error
	if last < s.until {
		err = s.write(last)
	}
	return errors.Join(err, s.lock.Close())
}

// write replaces the file atomically: after a crash it has either the old
// reservation or the new one.
func (s *State) write(until int64) error {
	text := stateLine + time.UnixMilli(epoch+until).UTC().Format(stateLayout) + "\n"
	if err := files.ReplaceSynced(s.path, []byte(text), 0o644); err != nil {
		return fmt.Errorf("writing the state file: %w", err)
	}
	s.until = until
	return nil
}

func readState(path string) (int64, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return -1, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading the state file: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, stateBound))
	if err != nil {
		return 0, fmt.Errorf("reading the state file: %w", err)
	}
	until, ok := parseState(string(text))
	if !ok {
		return 0, fmt.Errorf("the state file %s does not say until when identifiers are reserved: restore it, or remove it if you are sure that the clock was never set back", path)
	}
	return until, nil
}

func parseState(text string) (int64, bool) {
	word, ok := strings.CutPrefix(text, stateLine)
	if !ok {
		return 0, false
	}
	word, ok = strings.CutSuffix(word, "\n")
	if !ok {
		return 0, false
	}
	at, err := time.Parse(stateLayout, word)
	until := at.UnixMilli() - epoch
	if err != nil || at.Format(stateLayout) != word || until < 0 || until > lastMillisecond {
		return 0, false
	}
	return until, true
}
