package sqlite

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"

	"oda/internal/backup"
	"oda/internal/sqlite/vfs"
)

// touched notes which pages of the file are in the write-ahead log, or have been
// there since a backup began. Only these can differ from what the file itself has,
// or change in it: SQLite writes a page to the log first and copies it to the file
// later. The format of the log is part of SQLite's documented file format.
type touched struct {
	path     string // of the log
	log      *os.File
	pageSize int64
	salts    [8]byte // they change when the log starts again from its beginning
	frames   int64   // of the log that were noted
	pages    backup.Set
	err      error // of reading the log; the backup must end
}

// Sizes and places in the write-ahead log.
const (
	logHeader   = 32
	logSalts    = 16              // in the header
	frameHeader = vfs.FrameHeader // page number, size of the database after a commit, salts, checksum
	frameSize   = vfs.FrameSize   // in the header of a frame; 0 if more frames of the transaction follow
)

// wholeLog stands for the number of frames in the log of an archive that nobody
// writes. A few that were never committed may be noted too, which does no harm.
const wholeLog = math.MaxInt64

// note adds the pages of the frames that were written since the last time. Frames is
// how many the log has now. The writer must call it after each commit, before the log can
// start again.
func (t *touched) note(frames int64) {
	if t.err != nil {
		return
	}
	if t.log == nil {
		log, err := os.Open(t.path)
		if errors.Is(err, fs.ErrNotExist) {
			return // nothing was written yet
		}
		if t.err = err; err != nil {
			return
		}
		t.log = log
	}
	var header [logHeader]byte
	if n, err := t.log.ReadAt(header[:], 0); n < logHeader {
		if !errors.Is(err, io.EOF) {
			t.err = err
		}
		return // the log is empty
	}
	if salts := [8]byte(header[logSalts:]); salts != t.salts {
		t.salts, t.frames = salts, 0
	}
	var frame [frameHeader]byte
	for ; t.frames < frames; t.frames++ {
		n, err := t.log.ReadAt(frame[:], logHeader+t.frames*(frameHeader+t.pageSize))
		if n < frameHeader && !errors.Is(err, io.EOF) {
			t.err = err
			return
		}
		if n < frameHeader || [8]byte(frame[8:]) != t.salts {
			return // what follows is from before the log started again
		}
		t.pages.Add(binary.BigEndian.Uint32(frame[:]))
	}
}

// take returns the pages that were noted, and begins a new set.
func (t *touched) take() (backup.Set, error) {
	pages := t.pages
	t.pages = backup.Set{}
	return pages, t.err
}

func (t *touched) close() {
	if t.log != nil {
		_ = t.log.Close() // it was only read
	}
}
