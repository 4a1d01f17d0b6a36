package recorder

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"oda"
	"oda/internal/files"
	"oda/internal/rawjson"
)

// A spool is a folder in which records wait for the archive. docs/spool.md
// describes its format, which other programs also read and write.

const (
	spoolForm    = 2
	segmentBytes = 8 << 20  // a new segment begins here
	maxLine      = 64 << 20 // the largest body that an archive accepts by default

	lockName    = "lock"
	blockName   = "block.json"
	shippedName = "shipped"
	damagedName = "damaged.log"
	refusedName = "refused.log"

	// Folders with these prefixes are being created or removed, and are not
	// sessions.
	comingPrefix = ".new-"
	goingPrefix  = ".done-"
)

var errGone = errors.New("the session is gone: another process has finished it")

// blockFile describes the ExecutionBlock of a session.
type blockFile struct {
	Spool  int             `json:"spool"`
	Block  string          `json:"eb_id"`
	URL    string          `json:"url"`
	User   string          `json:"user,omitempty"`
	Create json.RawMessage `json:"create"` // nil or null if the archive has the block
}

// toCreate returns the document of a block that the archive does not have yet,
// or nil.
func (b blockFile) toCreate() []byte {
	if bytes.Equal(b.Create, []byte("null")) {
		return nil
	}
	return b.Create
}

// session is the folder of one recorder, with its lock.
type session struct {
	dir   string // its path, for people
	id    string // 16 hexadecimal digits
	block blockFile
	spool *folder
	in    *folder // of the session itself
	lock  *os.File
}

// createSession makes a new session in a spool. It appears complete and locked,
// so that nobody mistakes it for abandoned.
func createSession(spool string, block blockFile) (_ *session, err error) {
	spool = filepath.Clean(spool) // with a slash at its end, a link would be followed
	if err := makeDir(spool); err != nil {
		return nil, fmt.Errorf("make the spool: %w", err)
	}
	in, err := openFolder(spool)
	if err != nil {
		return nil, fmt.Errorf("open the spool: %w", err)
	}
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	s := &session{id: hex.EncodeToString(random[:]), block: block, spool: in}
	coming := comingPrefix + s.id
	defer func() {
		if err != nil {
			_ = in.root.RemoveAll(coming)
			s.release()
			err = fmt.Errorf("begin a session in the spool %s: %w", spool, err)
		}
	}()
	if err := in.root.Mkdir(coming, 0o700); err != nil {
		return nil, err
	}
	if s.in, err = in.folder(coming); err != nil {
		return nil, err
	}
	if s.lock, err = s.in.create(lockName); err != nil {
		return nil, err
	}
	if err := files.Hold(s.lock); err != nil {
		return nil, err
	}
	text, err := rawjson.Marshal(block) // keeps the document as it was given
	if err != nil {
		return nil, err
	}
	if err := s.in.replace(blockName, append(text, '\n'), true); err != nil {
		return nil, err
	}
	s.dir = in.at(block.Block + "." + s.id)
	s.in.path = s.dir
	if err := in.root.Rename(coming, filepath.Base(s.dir)); err != nil {
		return nil, err
	}
	return s, in.sync()
}

// openSession takes over a session that nobody holds. With files.ErrLocked or
// errGone there is nothing to take over.
func openSession(dir string) (_ *session, err error) {
	s, err := lookInto(dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.release()
		}
	}()
	// A folder without it is incomplete, and is left to the process that
	// completes it.
	if s.block, err = s.readBlock(); err != nil {
		return nil, err
	}
	return s, s.take()
}

// lookInto opens a session without taking its lock, to read what is in it.
func lookInto(dir string) (*session, error) {
	dir = filepath.Clean(dir)
	name := filepath.Base(dir)
	_, id, ok := splitName(name)
	if !ok {
		return nil, errors.New("its name is not that of a session")
	}
	spool, err := openFolder(filepath.Dir(dir))
	if err != nil {
		return nil, err
	}
	in, err := spool.folder(name)
	if err != nil {
		spool.close()
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errGone
	}
	return &session{dir: dir, id: id, spool: spool, in: in}, err
}

// take takes the lock of a session, or returns files.ErrLocked or errGone.
func (s *session) take() (err error) {
	s.lock, err = s.in.open(lockName, os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) && s.isNamed() { // other programs need not make it
		s.lock, err = s.in.extend(lockName)
	}
	if err == nil {
		err = files.Hold(s.lock)
	}
	// Its holder may have finished the session after it was opened here.
	if (err == nil || errors.Is(err, fs.ErrNotExist)) && !s.isNamed() {
		return errGone
	}
	return err
}

// isNamed reports whether the folder of the session still has its name.
func (s *session) isNamed() bool { return s.spool.holds(filepath.Base(s.dir), s.in) }

// release lets other processes work on the session.
func (s *session) release() {
	if s.lock != nil {
		_ = s.lock.Close() // this also releases the lock
	}
	s.in.close()
	s.spool.close()
}

// remove removes a session that has nothing left to keep. Other processes see
// it complete or not at all.
func (s *session) remove() error {
	going := goingPrefix + s.id
	if err := s.spool.root.Rename(filepath.Base(s.dir), going); err != nil {
		return fmt.Errorf("remove the session %s: %w", s.dir, err)
	}
	return s.spool.root.RemoveAll(going)
}

// keeps reports whether the session has something for a person to look at.
func (s *session) keeps() bool { return s.in.exists(damagedName) || s.in.exists(refusedName) }

// splitName splits the name of a session.
func splitName(name string) (block, id string, ok bool) {
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 {
		return "", "", false
	}
	block, id = name[:dot], name[dot+1:]
	digits, err := hex.DecodeString(id)
	return block, id, err == nil && len(digits) == 8 && id == strings.ToLower(id) && oda.ValidID(block)
}

// readBlock reads the description of the session's block.
func (s *session) readBlock() (blockFile, error) {
	var b blockFile
	block, _, _ := splitName(filepath.Base(s.dir))
	text, err := s.in.read(blockName)
	if errors.Is(err, fs.ErrNotExist) && !s.isNamed() {
		return b, errGone
	}
	if err != nil {
		return b, fmt.Errorf("read which block it is for: %w", err)
	}
	if err := json.Unmarshal(text, &b); err != nil {
		return b, fmt.Errorf("its %s is damaged: %w", blockName, err)
	}
	switch {
	case b.Spool != spoolForm:
		return b, fmt.Errorf("its %s says that it is of form %d, and this program knows only form %d; send it with the release that wrote it", blockName, b.Spool, spoolForm)
	case b.Block != block:
		return b, fmt.Errorf("its %s names the block %q, its folder %q", blockName, b.Block, block)
	}
	return b, nil
}

// position is a position in the segments of a session.
type position struct {
	segment int
	offset  int64
}

// loadPosition returns the position up to which a session is shipped. If it was
// not saved or cannot be read, known is false and the position is the
// beginning: sending again is safe.
func loadPosition(in *folder) (at position, known bool) {
	text, err := in.read(shippedName)
	segment, offset, ok := strings.Cut(strings.TrimSuffix(string(text), "\n"), " ")
	if err == nil && ok {
		var errs [2]error
		at.segment, errs[0] = strconv.Atoi(segment)
		at.offset, errs[1] = strconv.ParseInt(offset, 10, 64)
		if errors.Join(errs[:]...) == nil && at.segment >= 1 && at.offset >= 0 {
			return at, true
		}
	}
	return position{segment: 1}, false
}

// storePosition saves the position up to which a session is shipped. It does
// not sync: if the position is lost, records are sent again, which is safe.
func storePosition(in *folder, at position) error {
	return in.replace(shippedName, fmt.Appendf(nil, "%d %d\n", at.segment, at.offset), false)
}

// segmentName returns the name of a segment's file.
func segmentName(segment int) string { return fmt.Sprintf("%08d.log", segment) }

// segments lists the segments of a session, in order.
func segments(in *folder) ([]int, error) {
	entries, err := in.entries()
	if err != nil {
		return nil, err
	}
	var found []int
	for _, entry := range entries {
		digits, ok := strings.CutSuffix(entry.Name(), ".log")
		n, err := strconv.Atoi(digits)
		if ok && err == nil && n > 0 && segmentName(n) == entry.Name() {
			found = append(found, n)
		}
	}
	slices.Sort(found)
	return found, nil
}

// makeDir makes a folder and its parents, and syncs their names.
func makeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	above := filepath.Dir(dir)
	if err := makeDir(above); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return files.SyncDir(above)
}
