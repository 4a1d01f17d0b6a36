package recorder

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
)

// SessionStatus is the state of a session of a spool.
type SessionStatus struct {
	Dir   string // the folder of the session
	Block string // empty if it could not be read
	URL   string // of the archive's interface, without a password
	Held  bool   // a running process works on it

	Records int64 // waiting, without an incomplete last line
	Bytes   int64 // of the waiting lines
	Refused int64 // records in refused.log
	Damaged int64 // lines in damaged.log

	// Err says why the session cannot be resumed.
	Err error
}

// Status describes the sessions of a spool. It changes nothing, and may be
// called while recorders work.
func Status(dir string) ([]SessionStatus, error) {
	names, err := sessions(dir, func(*folder, string) {})
	if err != nil {
		return nil, fmt.Errorf("read the spool: %w", err)
	}
	var all []SessionStatus
	for _, name := range names {
		s := SessionStatus{Dir: filepath.Join(dir, name)}
		if s.Err = s.read(); !errors.Is(s.Err, errGone) {
			all = append(all, s)
		}
	}
	return all, nil
}

func (s *SessionStatus) read() error {
	found, err := lookInto(s.Dir)
	if err != nil {
		return err
	}
	defer found.release()
	file, err := found.readBlock()
	if err != nil {
		return err
	}
	s.Block = file.Block
	if u, err := url.Parse(file.URL); err == nil { // else nobody knows what is the password in it
		s.URL = u.Redacted()
	}
	s.Held = found.in.isLocked()
	at, _ := loadPosition(found.in)
	if s.Records, s.Bytes, err = waitingLines(found.in, at); err != nil {
		return err
	}
	if s.Refused, err = countAside(found.in, refusedName); err != nil {
		return err
	}
	s.Damaged, err = countAside(found.in, damagedName)
	return err
}

// waitingLines counts the lines after a position, and their bytes.
func waitingLines(in *folder, from position) (lines, size int64, err error) {
	found, err := segments(in)
	if err != nil {
		return 0, 0, fmt.Errorf("count what waits: %w", err)
	}
	for _, segment := range found {
		if segment < from.segment {
			continue
		}
		begin := int64(0)
		if segment == from.segment {
			begin = from.offset
		}
		n, length, err := countLines(in, segmentName(segment), begin)
		if err != nil {
			return 0, 0, fmt.Errorf("count what waits: %w", err)
		}
		lines, size = lines+n, size+length
	}
	return lines, size, nil
}

// countAside counts the lines that were put aside in a file.
func countAside(in *folder, name string) (int64, error) {
	n, _, err := countLines(in, name, 0)
	return n / 2, err // each has a comment before it
}

// countLines counts the line breaks and bytes of a file from an offset. A
// missing file has none.
func countLines(in *folder, name string, from int64) (lines, size int64, err error) {
	f, err := in.open(name, os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return 0, 0, err
	}
	buffer := make([]byte, 256<<10)
	for {
		n, err := f.Read(buffer)
		lines += int64(bytes.Count(buffer[:n], []byte("\n")))
		size += int64(n)
		if errors.Is(err, io.EOF) {
			return lines, size, nil
		}
		if err != nil {
			return 0, 0, err
		}
	}
}
