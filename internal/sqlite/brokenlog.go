package sqlite

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/bits"
	"os"
)

// SQLite takes its write-ahead log to end at the first frame that does not fit its
// checksum. After a power cut that is right: the last transaction was still being written,
// and nobody was told that it is stored. If a frame is damaged later, SQLite does the same,
// and forgets without a word what was stored behind it. The two can be told apart: a
// transaction is on disk before the next one is written, so a power cut leaves the end of
// one transaction behind the break, and damage may leave many.

// brokenLog says that transactions in a write-ahead log cannot be read.
type brokenLog struct {
	path string
	at   int64 // the end of the last transaction that can be read
	lost int   // transactions behind it, or more
}

func (e *brokenLog) Error() string {
	return fmt.Sprintf("its write-ahead log %s is damaged behind byte %d, and %d or more transactions that were stored there cannot be read; "+
		"restore the last backup that verifies, or, to go on without them, keep a copy of both files and run: truncate -s %d %s", e.path, e.at, e.lost, e.at, e.path)
}

// checkLog returns a brokenLog if stored transactions in the write-ahead log of a database
// cannot be read.
func checkLog(database string) error {
	log, err := os.Open(database + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return reason(err)
	}
	defer log.Close()
	at, lost, err := scanLog(bufio.NewReaderSize(log, 1<<20))
	if err == nil && lost > 0 {
		err = &brokenLog{log.Name(), at, lost}
	}
	return err
}

// scanLog returns where the last transaction ends that SQLite reads, and how many
// transactions follow each other behind it. The end of a single one does not count.
func scanLog(log io.Reader) (end int64, lost int, err error) {
	var header [logHeader]byte
	if _, err := io.ReadFull(log, header[:]); err != nil {
		return 0, 0, ignoreEnd(err)
	}
	sum := logSum{big: header[3]&1 == 1}
	sum.add(header[:24])
	if magic := binary.BigEndian.Uint32(header[:]); magic&^1 != 0x377f0682 || sum.stored() != [8]byte(header[24:]) {
		return 0, 0, nil // it was cut off while the log started again, when there was nothing in it
	}
	pageSize := int(binary.BigEndian.Uint32(header[8:]))
	if bits.OnesCount(uint(pageSize)) != 1 || pageSize < 512 || pageSize > 1<<16 {
		return 0, 0, nil
	}
	frame := make([]byte, frameHeader+pageSize)
	place, end := int64(logHeader), int64(logHeader)
	broken, row := false, 0
	for ; ; place += int64(len(frame)) {
		if _, err := io.ReadFull(log, frame); err != nil {
			return end, lost, ignoreEnd(err)
		}
		sum.add(frame[:8])
		sum.add(frame[frameHeader:])
		stored := [8]byte(frame[16:])
		fits := bytes.Equal(frame[8:16], header[logSalts:24]) && sum.stored() == stored
		commits := binary.BigEndian.Uint32(frame[frameSize:]) != 0
		sum.restore(stored) // the next frame may fit this one though this one does not fit
		switch {
		case !fits:
			broken, row = true, 0
		case !broken && commits:
			end = place + int64(len(frame))
		case broken && commits:
			// What a failed transaction left behind fits neither what precedes nor what
			// follows it, so only frames in a row count.
			if row++; row > 1 {
				lost = max(lost, row)
			}
		}
	}
}

// ignoreEnd leaves out that a log ends.
func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// logSum is the checksum of a write-ahead log. That of a frame begins with that of the
// frame before it.
type logSum struct {
	big    bool // the byte order of the words that are summed up
	s0, s1 uint32
}

func (s *logSum) add(text []byte) {
	var order binary.ByteOrder = binary.LittleEndian
	if s.big {
		order = binary.BigEndian
	}
	s0, s1 := s.s0, s.s1
	for ; len(text) >= 8; text = text[8:] {
		s0 += order.Uint32(text) + s1
		s1 += order.Uint32(text[4:]) + s0
	}
	s.s0, s.s1 = s0, s1
}

// stored returns the sum as it is in the log.
func (s *logSum) stored() (text [8]byte) {
	binary.BigEndian.PutUint32(text[:], s.s0)
	binary.BigEndian.PutUint32(text[4:], s.s1)
	return text
}

func (s *logSum) restore(stored [8]byte) {
	s.s0, s.s1 = binary.BigEndian.Uint32(stored[:]), binary.BigEndian.Uint32(stored[4:])
}
