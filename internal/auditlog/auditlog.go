package auditlog

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"oda"
)

// Log is an audit log. It is safe for concurrent use. A nil Log keeps nothing and
// refuses nothing.
type Log struct {
	path    string
	mayFail bool
	log     *slog.Logger
	stop    chan struct{}
	ended   sync.WaitGroup

	mu       sync.Mutex
	file     *os.File
	size     int64 // as of the last look at the file
	reserved int64 // there is space up to here
	promised int   // lines that writes in progress will need
	waiting  [][]byte
	held     int       // bytes of waiting
	begun    int       // bytes of the first of waiting that are in the file
	lost     int       // lines that were dropped
	broken   error     // why nothing can be written
	probed   bool      // it is not a file, but can be written
	stuck    time.Time // it is not a file, and nobody reads it: when to try again
	dirty    bool      // something was written since the last sync
	last     int64     // the number of the last line
	refused  refusals
}

// mostHeld bounds the lines that wait while the log cannot be written. Those of
// writes that were done wait in any case: there are only as many as were in
// progress.
const mostHeld = 1 << 20

// Open opens the log at a path, and creates it if there is none. If mayFail is
// set, writes go on even while the log cannot be written.
func Open(path string, mayFail bool, log *slog.Logger) (*Log, error) {
	now := time.Now()
	l := &Log{path: path, mayFail: mayFail, log: log, stop: make(chan struct{}), refused: newRefusals(now)}
	file, err := openFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open the audit log (set it with --audit-log): %w", err)
	}
	// Earlier lines may be in files that were rotated away. There are fewer of them than
	// microseconds; if the clock was set back, the file tells.
	l.last = max(lastNumber(file), now.UnixMicro())
	l.use(file)
	_ = l.check(1) // on a full disk the archive starts, and can be read
	l.ended.Go(l.run)
	return l, nil
}

// openFile opens a log for appending. If a crash has cut its last line off, the
// next one begins on a new line.
func openFile(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if !info.Mode().IsRegular() || info.Size() == 0 {
		return file, nil
	}
	last := make([]byte, 1)
	if _, err := file.ReadAt(last, info.Size()-1); err == nil && last[0] != '\n' {
		_, err = file.WriteString("\n")
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
	}
	return file, nil
}

// use begins to write to a file.
func (l *Log) use(file *os.File) {
	l.file, l.size, l.reserved, l.begun, l.probed, l.stuck = file, 0, 0, 0, false, time.Time{}
}

// Begin must come before a write, with the number of lines that it will need. It
// fails if the log cannot be written. End must follow.
func (l *Log) Begin(lines int) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.check(lines); err != nil && !l.mayFail {
		return oda.Errorf(oda.Unaudited, "The audit log cannot be written, and without it nothing is stored. "+
			"Nothing was stored by this request. Tell the operator; it can be sent again when the log works.").Because(err)
	}
	l.promised += lines
	return nil
}

// End says that a write has come to its end, with or without its lines.
func (l *Log) End(lines int) {
	if l == nil || lines == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.promised -= lines
}

// Err returns why writes are refused, nil if they are not.
func (l *Log) Err() error {
	if l == nil || l.mayFail {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
}

// Write adds the lines of a write that was begun, together.
func (l *Log) Write(entries ...Entry) {
	if l == nil || len(entries) == 0 {
		return
	}
	lines := make([][]byte, len(entries))
	for i, e := range entries {
		lines[i] = line(e.clipped())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.append(!l.mayFail, lines...)
}

// append writes lines, or keeps them for later. Those that must be written are kept in
// any case.
func (l *Log) append(must bool, lines ...[]byte) {
	var text []byte
	for _, line := range lines {
		l.last++
		text = appendNumbered(text, l.last, line)
	}
	if !must && l.held+len(text) > mostHeld {
		l.lost += len(lines)
		return
	}
	l.waiting, l.held = append(l.waiting, text), l.held+len(text)
	if err := l.flush(); err != nil {
		l.note(err)
		if must {
			l.log.Error("the lines of a write wait for the audit log", "lines", string(text), "error", err)
		}
	}
}

// check tries to write what waits, and sees to it that there is space for lines
// to come. It notes whether the log can be written.
func (l *Log) check(lines int) error {
	err := l.flush()
	if err == nil {
		err = l.reserve(int64(lines) * room)
	}
	l.note(err)
	return err
}

// note notes whether the log can be written, and says so when that changes.
func (l *Log) note(err error) {
	switch {
	case err != nil && l.broken == nil && l.mayFail:
		l.log.Error("the audit log cannot be written; writes go on without it", "path", l.path, "error", err)
	case err != nil && l.broken == nil:
		l.log.Error("the audit log cannot be written; writes are refused until it can", "path", l.path, "error", err)
	case err == nil && l.broken != nil:
		l.log.Info("the audit log can be written again", "path", l.path)
	}
	l.broken = err
	l.probed = l.probed && err == nil
}

// flush writes what waits.
func (l *Log) flush() error {
	for len(l.waiting) > 0 {
		n, err := l.write(l.waiting[0][l.begun:])
		l.begun += n
		l.size += int64(n)
		l.dirty = l.dirty || n > 0
		if err != nil {
			return err
		}
		l.held -= len(l.waiting[0])
		l.waiting, l.begun = l.waiting[1:], 0
		if len(l.waiting) == 0 && l.lost > 0 {
			l.last++
			text := appendNumbered(nil, l.last, line(gap{time.Now().UTC(), l.lost}))
			l.waiting, l.held, l.lost = append(l.waiting, text), len(text), 0
		}
	}
	l.waiting = nil
	return nil
}

// There may be nobody who reads a pipe. These are how long a write waits for somebody, and
// how long it takes until the next one is tried.
const (
	pipeWait  = 100 * time.Millisecond
	pipePause = time.Second
)

// write writes to the file. If it is a pipe that nobody reads, it fails soon: writers
// wait for it.
func (l *Log) write(text []byte) (int, error) {
	now := time.Now()
	if now.Before(l.stuck) {
		return 0, errStuck
	}
	_ = l.file.SetWriteDeadline(now.Add(pipeWait)) // files have none, and do not wait
	n, err := l.file.Write(text)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		l.stuck, err = time.Now().Add(pipePause), errStuck
	}
	return n, err
}

var errStuck = errors.New("it is a pipe that nobody reads")

// renew begins a new file if the old one was removed: what is appended to that is lost.
func (l *Log) renew() (os.FileInfo, error) {
	info, err := l.file.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Sys().(*syscall.Stat_t).Nlink > 0 {
		return info, err
	}
	file, err := openFile(l.path)
	if err != nil {
		return nil, err
	}
	_ = l.file.Close() // nobody will read it
	l.use(file)
	l.log.Error("the audit log was removed, with the lines in it; a new one was begun", "path", l.path)
	return file.Stat()
}

// reserve sees to it that there is space for the lines of all writes in progress
// and for some more bytes. Others may have cut the file.
func (l *Log) reserve(more int64) error {
	info, err := l.renew()
	if err != nil {
		return err
	}
	if info.Size() < l.size {
		l.reserved = 0
	}
	l.size = info.Size()
	need := int64(l.promised)*room + more
	if !info.Mode().IsRegular() {
		return l.probe()
	}
	if l.size+need <= l.reserved {
		return nil
	}
	for _, length := range []int64{need + ahead, need} {
		if err = allocate(l.file, l.size, length); err == nil {
			l.reserved = l.size + length
			return nil
		}
	}
	return err
}

// ahead is how much space is reserved beyond what is needed at the moment.
const ahead = 64 << 10

// probe finds out whether something that is not a file, such as a pipe, can be
// written: no space can be reserved there.
func (l *Log) probe() error {
	if l.probed {
		return nil
	}
	_, err := l.write([]byte("\n"))
	l.probed = err == nil
	return err
}

// Reopen begins a new file at the same path, after the old one was renamed. If
// that fails, the old one stays in use.
func (l *Log) Reopen() error {
	if l == nil {
		return nil
	}
	file, err := openFile(l.path)
	if err != nil {
		return fmt.Errorf("reopen the audit log: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.file
	l.use(file)
	_ = l.check(1)
	return release(old)
}

// release closes a file. Space that was reserved behind its end stays so until
// the file is removed: to cut it off would not be append-only.
func release(file *os.File) error { return errors.Join(toDisk(file), file.Close()) }

// toDisk forces a file to disk, if it is one.
func toDisk(file *os.File) error {
	err := file.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, os.ErrClosed) { // a pipe, or closed when a new file was begun
		return nil
	}
	return err
}
